//! How does a model's weight of a token stand among a record's terms?
//!
//! A learned-sparse model (SPLADE and its kin) gives a text tokens with weights of its own. They
//! are stored as postings like any word's: the token under a name that no text has, the weight
//! as its frequency, in steps of [`IMPACT_STEP`]. They count in no length.
//!
//! | what | form | range |
//! | --- | --- | --- |
//! | term | [`IMPACT_MARK`], token | 2 to 256 bytes; the mark begins no UTF-8 text |
//! | frequency | weight / step, to the nearest, at least 1 | 1 to [`IMPACT_FREQ_MAX`] |

use crate::error::Refused;
use crate::limits::TERM_BYTES_MAX;

/// First byte of the term of a token: no text in UTF-8 holds it, so no analyzer gives it.
pub const IMPACT_MARK: u8 = 0xff;
/// Most tokens of a record.
pub const IMPACTS_MAX: usize = 512;
/// Longest token, bytes.
pub const IMPACT_TOKEN_BYTES_MAX: usize = TERM_BYTES_MAX - 1;
/// Largest weight of a token in a record.
pub const IMPACT_MAX: f32 = 64.0;
/// Weights are kept in whole steps of this size, so that they are exact as f32 and f64.
pub const IMPACT_STEP: f64 = 1.0 / 256.0;
/// Largest frequency: [`IMPACT_MAX`] in steps.
pub const IMPACT_FREQ_MAX: u32 = 64 * 256;

/// The term of a token.
pub fn impact_term(token: &str) -> Vec<u8> {
    let mut term = Vec::with_capacity(token.len() + 1);
    term.push(IMPACT_MARK);
    term.extend_from_slice(token.as_bytes());
    term
}

/// The token of a term; `None` of a word's.
pub fn impact_token(term: &[u8]) -> Option<&str> {
    let token = term.strip_prefix(&[IMPACT_MARK])?;
    std::str::from_utf8(token).ok()
}

/// The frequency that stands for a weight above 0 and at most [`IMPACT_MAX`].
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a float to an integer saturates, and the ends are those of the range"
)]
pub(crate) fn impact_freq(weight: f32) -> u32 {
    let steps = (f64::from(weight) / IMPACT_STEP).round() as u32;
    steps.clamp(1, IMPACT_FREQ_MAX)
}

/// The weight that a frequency stands for: exact.
#[expect(
    clippy::cast_possible_truncation,
    reason = "15 bits and a power of two: an f32 holds it"
)]
pub(crate) fn impact_weight(freq: u32) -> f32 {
    (f64::from(freq) * IMPACT_STEP) as f32
}

/// Ascending by token, weights in whole steps: as they are stored.
pub(crate) fn settle(impacts: &mut [(String, f32)]) {
    impacts.sort_by(|a, b| a.0.cmp(&b.0));
    for (_, weight) in impacts {
        *weight = impact_weight(impact_freq(*weight));
    }
}

/// Checks a token, of a record or of a request.
///
/// # Errors
/// [`Refused`] on `impacts`.
pub fn check_impact_token(token: &str) -> Result<(), Refused> {
    if token.is_empty() {
        return Err(Refused::new("impacts", "names an empty token"));
    }
    if token.len() > IMPACT_TOKEN_BYTES_MAX {
        let message = format!(
            "names a token of {} bytes; at most {IMPACT_TOKEN_BYTES_MAX}",
            token.len()
        );
        return Err(Refused::new("impacts", message));
    }
    Ok(())
}

/// Checks a record's.
pub(crate) fn check_impacts(impacts: &[(String, f32)]) -> Result<(), Refused> {
    if impacts.len() > IMPACTS_MAX {
        let message = format!("has {} tokens; at most {IMPACTS_MAX}", impacts.len());
        return Err(Refused::new("impacts", message));
    }
    for (token, weight) in impacts {
        check_impact_token(token)?;
        if !(*weight > 0.0 && *weight <= IMPACT_MAX) {
            let message = format!("must have weights above 0 and at most {IMPACT_MAX}");
            return Err(Refused::new("impacts", message));
        }
    }
    let mut tokens: Vec<&str> = impacts.iter().map(|(token, _)| token.as_str()).collect();
    tokens.sort_unstable();
    if tokens.windows(2).any(|pair| pair[0] == pair[1]) {
        return Err(Refused::new("impacts", "names a token twice"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_weight_is_kept_to_half_a_step_and_then_for_good() {
        for weight in [1e-30, 0.001, 0.5, 1.234_567, 63.999, IMPACT_MAX] {
            let kept = impact_weight(impact_freq(weight));
            let error = (f64::from(kept) - f64::from(weight)).abs();
            assert!(
                error <= IMPACT_STEP / 2.0 || kept == impact_weight(1),
                "{weight}"
            );
            assert_eq!(impact_weight(impact_freq(kept)), kept);
        }
        assert_eq!(impact_freq(IMPACT_MAX), IMPACT_FREQ_MAX);
    }

    #[test]
    fn what_cannot_be_kept_is_refused() {
        let one = |token: &str, weight: f32| check_impacts(&[(token.to_owned(), weight)]);
        assert!(one("a", IMPACT_MAX).is_ok());
        assert!(one(&"x".repeat(IMPACT_TOKEN_BYTES_MAX), 1.0).is_ok());
        for weight in [0.0, -1.0, 64.01, f32::NAN, f32::INFINITY] {
            assert_eq!(one("a", weight).expect_err("no weight").field, "impacts");
        }
        assert!(one("", 1.0).is_err());
        assert!(one(&"x".repeat(IMPACT_TOKEN_BYTES_MAX + 1), 1.0).is_err());
        let many = |count: usize| -> Vec<(String, f32)> {
            (0..count).map(|at| (at.to_string(), 1.0)).collect()
        };
        assert!(check_impacts(&many(IMPACTS_MAX)).is_ok());
        assert!(check_impacts(&many(IMPACTS_MAX + 1)).is_err());
        let twice = [("a".to_owned(), 1.0), ("b".into(), 1.0), ("a".into(), 2.0)];
        assert!(check_impacts(&twice).is_err());
    }

    #[test]
    fn a_term_is_no_text() {
        let term = impact_term("port");
        assert!(std::str::from_utf8(&term).is_err());
        assert_eq!(impact_token(&term), Some("port"));
        assert_eq!(impact_token(b"port"), None);
    }
}
