//! Which decoders read bytes that nobody may trust, and how are such bytes made?
//!
//! ```text
//!   corpus --mutate--> raw bytes ------------------> Target::run --> taken / refused
//!      |                   '--patch: checksums right--^                 |
//!      '--forge: take apart, mutate one part, put together--^           a panic, a hang, too
//!                                                                       much memory: a finding
//! ```
//!
//! * [`Target`]: one decoder, and how its checksums are made right again. [`TARGETS`] is the
//!   one list that the suite (`tests/tests/fuzz`) and the libFuzzer targets (`fuzz/`) share.
//! * [`mutate`]: flips, cuts, splices, interesting numbers, longer lengths.
//! * [`hunt`]: runs a target from a seed, catches what goes wrong, makes the input smaller.
//!
//! A decoder that is reached through the engine alone (tag edges in a batch, a query) is
//! attacked there: see `store` and `words`.

mod corpus;
mod disk;
mod hunt;
mod log;
mod log_bytes;
mod manifest;
mod mutate;
mod seal;
mod segment;
mod store;
mod words;

pub use corpus::{corpus, corpus_dir, seeds};
pub use hunt::{Finding, Hunt, Memory, Tally, check_one, hunt, remake};
pub use mutate::mutate;
pub use store::put_segment;

/// Makes the checksums of damaged bytes right, and puts parts together under right ones.
#[derive(Debug, Clone, Copy)]
pub struct Forge {
    /// Corrects every checksum that can be found, in place; lengths stay what they claim.
    pub patch: fn(&mut Vec<u8>),
    /// The parts that a checksum covers, without the checksums. `None` for bytes whose shape
    /// cannot be read.
    pub take_apart: fn(&[u8]) -> Option<Vec<Vec<u8>>>,
    /// The same parts, maybe changed, as whole bytes with right lengths and checksums.
    pub put_together: fn(&[Vec<u8>]) -> Vec<u8>,
}

/// One decoder under attack.
#[derive(Debug, Clone, Copy)]
pub struct Target {
    /// Its name.
    pub name: &'static str,
    /// Directory of its inputs below `tests/fuzz-corpus`.
    pub corpus: &'static str,
    /// Feeds the bytes to the decoder and reads all that it gives. True: they were taken.
    pub run: fn(&[u8]) -> bool,
    /// How checksums are made right; `None` where there are none.
    pub forge: Option<Forge>,
    /// Share of the time.
    pub weight: u32,
}

/// Every decoder.
pub const TARGETS: [Target; 16] = [
    Target {
        name: "segment",
        corpus: "segment",
        run: segment::run,
        forge: Some(segment::FORGE),
        weight: 8,
    },
    Target {
        name: "segment_merge",
        corpus: "segment",
        run: segment::run_merge,
        forge: Some(segment::FORGE),
        weight: 3,
    },
    Target {
        name: "salvage",
        corpus: "segment",
        run: segment::run_salvage,
        forge: Some(segment::FORGE),
        weight: 3,
    },
    Target {
        name: "seal",
        corpus: "seal",
        run: seal::run,
        forge: Some(seal::FORGE),
        weight: 1,
    },
    Target {
        name: "store",
        corpus: "segment",
        run: store::run,
        forge: Some(segment::FORGE),
        weight: 3,
    },
    Target {
        name: "batch",
        corpus: "batch",
        run: log::run_batch,
        forge: None,
        weight: 2,
    },
    Target {
        name: "replay",
        corpus: "batch",
        run: store::run_replay,
        forge: None,
        weight: 2,
    },
    Target {
        name: "log",
        corpus: "log",
        run: log::run,
        forge: Some(log_bytes::FORGE),
        weight: 3,
    },
    Target {
        name: "status",
        corpus: "status",
        run: log::run_status,
        forge: Some(log::STATUS_FORGE),
        weight: 1,
    },
    Target {
        name: "pointer",
        corpus: "pointer",
        run: manifest::run_pointer,
        forge: Some(manifest::POINTER_FORGE),
        weight: 1,
    },
    Target {
        name: "manifest",
        corpus: "manifest",
        run: manifest::run_copy,
        forge: Some(manifest::COPY_FORGE),
        weight: 2,
    },
    Target {
        name: "deletes",
        corpus: "deletes",
        run: manifest::run_deletes,
        forge: Some(manifest::SIDE_FORGE),
        weight: 1,
    },
    Target {
        name: "tag_graph",
        corpus: "tag_graph",
        run: manifest::run_tag_graph,
        forge: Some(manifest::SIDE_FORGE),
        weight: 1,
    },
    Target {
        name: "scope",
        corpus: "scope",
        run: words::run_scope,
        forge: None,
        weight: 1,
    },
    Target {
        name: "analyzer",
        corpus: "analyzer",
        run: words::run_analyzer,
        forge: None,
        weight: 2,
    },
    Target {
        name: "request",
        corpus: "request",
        run: words::run_request,
        forge: None,
        weight: 2,
    },
];

/// The target of this name.
///
/// # Panics
/// If there is none.
pub fn target(name: &str) -> Target {
    let found = TARGETS.into_iter().find(|target| target.name == name);
    found.unwrap_or_else(|| panic!("no target {name}"))
}

/// Runs a target as libFuzzer does: the bytes as they are, and with their checksums right.
pub fn run_both(target: &Target, bytes: &[u8]) {
    (target.run)(bytes);
    if let Some(forge) = target.forge {
        let mut patched = bytes.to_vec();
        (forge.patch)(&mut patched);
        (target.run)(&patched);
    }
}
