//! How age changes a score, and by which number rows are ordered then.
//!
//! Under decay rows are ordered by ln(base) - age / tau in f64, so that very old rows do not
//! underflow into ties; what is shown is base * exp(-age / tau). `ln` and `exp` come from the
//! `libm` crate: the same everywhere.

use super::request::Recency;

/// A request's recency with its instant.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Aging {
    recency: Recency,
    now_us: i64,
}

impl Aging {
    pub(crate) fn new(recency: Recency, now_us: i64) -> Self {
        Self { recency, now_us }
    }

    /// No aging at all: for the lists that a fusion starts from.
    pub(crate) fn off() -> Self {
        Self {
            recency: Recency::Off,
            now_us: 0,
        }
    }

    /// age / tau, at least 0.
    #[expect(
        clippy::cast_precision_loss,
        reason = "an age is a shown quantity; 2^-53 of it does not matter"
    )]
    fn ages(&self, time_us: i64, tau_us: i64) -> f64 {
        let age_us = i128::from(self.now_us) - i128::from(time_us);
        age_us.max(0) as f64 / tau_us as f64
    }

    /// What rows are ordered by. `base` is at least 0; a base of 0 under decay comes last.
    pub(crate) fn key(&self, base: f64, time_us: i64) -> f64 {
        match self.recency {
            Recency::Off => base,
            Recency::Decay { tau_us } => libm::log(base.max(0.0)) - self.ages(time_us, tau_us),
            Recency::Boost { beta, tau_us } => {
                base * (1.0 + beta * libm::exp(-self.ages(time_us, tau_us)))
            }
        }
    }

    /// The largest key a row of this base can have at any time.
    pub(crate) fn key_bound(&self, base: f64) -> f64 {
        match self.recency {
            Recency::Off => base,
            Recency::Decay { .. } => libm::log(base.max(0.0)),
            Recency::Boost { beta, .. } => base * (1.0 + beta),
        }
    }

    /// The final score as it is shown.
    pub(crate) fn shown(&self, base: f64, time_us: i64) -> f64 {
        match self.recency {
            Recency::Decay { tau_us } => base.max(0.0) * libm::exp(-self.ages(time_us, tau_us)),
            Recency::Off | Recency::Boost { .. } => self.key(base, time_us),
        }
    }

    /// The recency signal alone, in [0, 1]; `None` where recency is off.
    pub(crate) fn signal(&self, time_us: i64) -> Option<f64> {
        match self.recency {
            Recency::Off => None,
            Recency::Decay { tau_us } | Recency::Boost { tau_us, .. } => {
                Some(libm::exp(-self.ages(time_us, tau_us)))
            }
        }
    }

    /// True where recency changes the order at all.
    pub(crate) fn is_on(&self) -> bool {
        self.recency != Recency::Off
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn very_old_rows_keep_their_order_under_decay() {
        let aging = Aging::new(Recency::Decay { tau_us: 1 }, 1_000_000_000_000);
        assert_eq!(aging.shown(1.0, 5), 0.0, "the shown score underflows");
        assert!(aging.key(1.0, 6) > aging.key(1.0, 5), "the order does not");
    }

    #[test]
    fn the_future_is_as_young_as_now() {
        let aging = Aging::new(Recency::Decay { tau_us: 10 }, 100);
        assert_eq!(aging.shown(2.0, i64::MAX), 2.0);
        assert_eq!(aging.key(2.0, 100), aging.key_bound(2.0));
    }
}
