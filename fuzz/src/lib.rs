//! What do all libFuzzer targets share? One macro over the list of `chronolith_tests::fuzz`.
//!
//! ```text
//!   fuzz_targets/NAME.rs --attack!--> run: the bytes as they are, and with right checksums
//!                                     mutate: libFuzzer's own change, or one of a part, put
//!                                     together again under right checksums
//! ```
//!
//! The targets, the corpus and what may go wrong are the suite's: `tests/src/fuzz`.

#[doc(hidden)]
pub use libfuzzer_sys;

use chronolith_tests::fuzz::{Target, corpus, remake, run_both, target};
use std::sync::OnceLock;

/// The target of this process with the inputs of its corpus.
#[derive(Debug)]
pub struct Attack {
    target: Target,
    others: Vec<Vec<u8>>,
}

impl Attack {
    /// The attack on the target of this name: a process has one.
    pub fn on(name: &str) -> &'static Self {
        static ATTACK: OnceLock<Attack> = OnceLock::new();
        ATTACK.get_or_init(|| {
            let target = target(name);
            let others = corpus(target.corpus).into_iter().map(|(_, bytes)| bytes);
            Self {
                target,
                others: others.collect(),
            }
        })
    }

    /// Runs the bytes as they are and with right checksums.
    pub fn run(&self, bytes: &[u8]) {
        run_both(&self.target, bytes);
    }

    /// Changes the first `size` of `data` and gives the new size. Every other time libFuzzer's
    /// own mutations do it.
    pub fn mutate(&self, data: &mut [u8], size: usize, max_size: usize, seed: u32) -> usize {
        if seed.is_multiple_of(2) {
            return libfuzzer_sys::fuzzer_mutate(data, size, max_size);
        }
        let other = &self.others[seed as usize / 2 % self.others.len()];
        let mut bytes = remake(&self.target, &data[..size], other, u64::from(seed));
        bytes.truncate(max_size.min(data.len()));
        data[..bytes.len()].copy_from_slice(&bytes);
        bytes.len()
    }
}

/// A libFuzzer target by its name in the list.
#[macro_export]
macro_rules! attack {
    ($name:literal) => {
        use $crate::libfuzzer_sys::{fuzz_mutator, fuzz_target};

        fuzz_target!(|bytes: &[u8]| $crate::Attack::on($name).run(bytes));
        fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
            $crate::Attack::on($name).mutate(data, size, max_size, seed)
        });
    };
}
