//! Text from callers: scopes, whatever an analyzer is given, requests.

use chronolith::{
    AnalyzerKind, AnalyzerOptions, Fusion, Language, Mode, Recency, Request, ScopeSelector,
    SourceClass, TokenBudget,
};
use chronolith::{PackPolicy, limits};
use chronolith_segments::analyze::{Analyzed, Analyzer, Fields};
use chronolith_segments::{KeyRange, Scope, ScopeRanges};

use super::disk::{fixed, number};
use super::store::snapshot;

/// Parses scopes, selectors and keys; what is taken comes back the same.
pub(super) fn run_scope(bytes: &[u8]) -> bool {
    let key = Scope::from_key(bytes);
    if let Some(scope) = &key {
        assert_eq!(scope.key(), bytes);
        assert_eq!(Scope::parse(&scope.path()).ok().as_ref(), key.as_ref());
    }
    let text = String::from_utf8_lossy(bytes);
    let selectors: Vec<ScopeSelector> = text
        .split('\n')
        .filter_map(|line| ScopeSelector::parse(line).ok())
        .collect();
    if let Ok(ranges) = ScopeRanges::new(&selectors) {
        let disjoint = |pair: &[KeyRange]| pair[0].to.as_ref().is_some_and(|to| *to < pair[1].from);
        assert!(ranges.ranges().windows(2).all(disjoint));
    }
    match Scope::parse(&text) {
        Ok(scope) => {
            assert_eq!(scope.path(), text);
            assert_eq!(Scope::from_key(scope.key()), Some(scope.clone()));
            let mut up = scope.parent();
            while let Some(ancestor) = up {
                assert!(KeyRange::subtree(&ancestor).contains(scope.key()));
                up = ancestor.parent();
            }
            true
        }
        Err(_) => key.is_some() || !selectors.is_empty(),
    }
}

/// Analyses text as every kind of analyzer; an id as text too.
pub(super) fn run_analyzer(bytes: &[u8]) -> bool {
    let text = String::from_utf8_lossy(bytes);
    let _ = Analyzer::parse_id(&text);
    let options = AnalyzerOptions {
        summary: true,
        speaker: true,
        event_date: true,
    };
    let mut found = Analyzed::new();
    for (kind, language) in [
        (AnalyzerKind::Default, Language::ENGLISH),
        (AnalyzerKind::PlainEn, Language::ENGLISH),
    ] {
        let analyzer = Analyzer::new(kind, language, options).expect("English");
        analyzer.analyze_fields(
            &Fields {
                text: &text,
                summary: Some(&text),
                speaker: Some(&text),
                event_time_us: Some(i64::from_le_bytes(fixed(bytes))),
            },
            &mut found,
        );
        assert!(
            found
                .terms()
                .all(|(term, freq)| term.len() <= limits::TERM_BYTES_MAX && freq > 0)
        );
        assert!(found.terms().is_sorted_by(|a, b| a.0 < b.0));
        analyzer.analyze_query(&text);
        let _ = analyzer.tokens(&text);
    }
    true
}

/// Reads a request out of the bytes and asks a small store. Each step of the bytes is one
/// setter: its number, then what it takes.
pub(super) fn run_request(bytes: &[u8]) -> bool {
    let mut at = 0;
    let mut request = Request::within(ScopeSelector::Root).now_us(1_700_000_000_000_000);
    while let Some(step) = bytes.get(at) {
        let word = number(bytes, at + 1, 8).unwrap_or(u64::from(*step));
        let len = usize::from(bytes.get(at + 1).copied().unwrap_or(0));
        let rest = bytes.get(at + 2..).unwrap_or_default();
        let text = String::from_utf8_lossy(&rest[..len.min(rest.len())]).into_owned();
        let (next, took) = set(request, *step, word, text);
        request = next;
        at += match took {
            Took::Word => 9,
            Took::Text => 2 + len,
        };
    }
    snapshot().retrieve(&request).is_ok()
}

enum Took {
    Word,
    Text,
}

#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_possible_wrap,
    reason = "any value will do"
)]
fn set(request: Request, step: u8, word: u64, text: String) -> (Request, Took) {
    let float = f64::from_bits(word);
    let small = word as usize & 0xffff;
    let request = match step % 20 {
        0 => return (request.text(text), Took::Text),
        1 => return (request.tag(text), Took::Text),
        2 => return (request.any_of(text.split(',')), Took::Text),
        3 => {
            return match ScopeSelector::parse(&text) {
                Ok(scope) => (request.and_within(scope), Took::Text),
                Err(_) => (request, Took::Text),
            };
        }
        4 => return (request.vector_model(text), Took::Text),
        5 => request.k(small),
        6 => request.mode(
            *[Mode::Auto, Mode::Sparse, Mode::Dense, Mode::Hybrid]
                .get(small % 4)
                .expect("four"),
        ),
        7 => request.since_us(word as i64),
        8 => request.until_us(word as i64),
        9 => request.now_us(word as i64),
        10 => request.recency(Recency::Decay {
            tau_us: word as i64,
        }),
        11 => request.recency(Recency::Boost {
            beta: float,
            tau_us: word as i64,
        }),
        12 => request.fusion(Fusion::Convex {
            dense_weight: float,
        }),
        13 => request.fusion(Fusion::Rrf {
            sparse_weight: float,
            dense_weight: f64::from_bits(word.rotate_left(7)),
        }),
        14 => request.distinct(word.is_multiple_of(2)),
        15 => request.context(small % 2000, (word >> 16) as usize & 0x7ff),
        16 => request.budget(TokenBudget {
            tokens: word,
            overhead_tokens: word.rotate_left(13),
            policy: [
                PackPolicy::RankPrefix,
                PackPolicy::RankSkip,
                PackPolicy::Density,
            ][small % 3],
        }),
        17 => request.min_source(SourceClass::ALL[small % SourceClass::ALL.len()]),
        18 => request.vector(
            word.to_le_bytes()
                .chunks(2)
                .map(|two| f32::from_bits(u32::from_le_bytes(fixed(two)) << 16))
                .collect(),
        ),
        _ => request.explain(),
    };
    (request, Took::Word)
}
