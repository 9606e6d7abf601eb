//! How age changes a score, and by which number rows are ordered then.
//!
//! Under decay rows are ordered by ln(base) - age / tau in f64, so that very old rows do not
//! underflow into ties; what is shown is base * exp(-age / tau). `ln` and `exp` come from the
//! `libm` crate: the same everywhere.

use super::request::Recency;

/// Share by which bounds are rounded outward: far more than the error of a few operations,
/// far less than any two scores that it would keep apart.
const SLACK: f64 = 1e-12;

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

    /// No row with at most this base and at most this time has a larger key. Rounded outward:
    /// `ln` and `exp` are not promised to rise with every last bit.
    pub(crate) fn key_bound(&self, base: f64, newest_us: i64) -> f64 {
        if self.recency == Recency::Off {
            return base;
        }
        let key = self.key(base, newest_us);
        key + key.abs() * SLACK + SLACK
    }

    /// A row at most this new needs at least this base for a key of `key`. Rounded outward,
    /// at least 0.
    pub(crate) fn base_floor(&self, key: f64, newest_us: i64) -> f64 {
        let base = match self.recency {
            Recency::Off => return key,
            Recency::Decay { tau_us } => libm::exp(key + self.ages(newest_us, tau_us)),
            Recency::Boost { beta, tau_us } => {
                key / (1.0 + beta * libm::exp(-self.ages(newest_us, tau_us)))
            }
        };
        // Under decay the exponent itself is rounded, so the slack grows with its size.
        let exponent = match self.recency {
            Recency::Decay { tau_us } => key.abs() + self.ages(newest_us, tau_us),
            _ => 1.0,
        };
        (base * (1.0 - SLACK * (1.0 + exponent))).max(0.0)
    }

    /// The final score as it is shown.
    pub(crate) fn shown(&self, base: f64, time_us: i64) -> f64 {
        match self.recency {
            Recency::Decay { tau_us } => base.max(0.0) * libm::exp(-self.ages(time_us, tau_us)),
            Recency::Off | Recency::Boost { .. } => self.key(base, time_us),
        }
    }

    /// No row with at most this base and at most this time shows a larger score.
    pub(crate) fn shown_bound(&self, base: f64, newest_us: i64) -> f64 {
        let shown = self.shown(base, newest_us);
        if self.is_on() {
            shown * (1.0 + SLACK)
        } else {
            shown
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
        assert_eq!(aging.key(2.0, 100), aging.key(2.0, i64::MAX));
    }

    #[test]
    fn bounds_hold_for_every_row() {
        let kinds = [
            Recency::Off,
            Recency::Decay { tau_us: 7 },
            Recency::Boost {
                beta: 0.3,
                tau_us: 7,
            },
        ];
        for aging in kinds.map(|recency| Aging::new(recency, 1000)) {
            for base in (1..200).map(|step| f64::from(step) * 0.37) {
                for time_us in [0, 1, 300, 999, 1000, 2000] {
                    let key = aging.key(base, time_us);
                    assert!(aging.key_bound(base, time_us) >= key);
                    assert!(aging.key_bound(base, time_us + 500) >= key);
                    assert!(aging.base_floor(key, time_us) <= base);
                    assert!(aging.base_floor(key, time_us + 500) <= base);
                }
            }
        }
    }
}
