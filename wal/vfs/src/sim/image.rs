//! How may a disk look after the power was cut?

use super::random::Stream;

/// One way in which a disk may look after a crash. Synced things survive all of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum CrashImage {
    /// Nothing unsynced survives: no bytes, no lengths, no names.
    LoseUnsynced,
    /// All survives, though nobody asked for it.
    KeepAll,
    /// Names, lengths and sectors survive one by one, as the seed decides.
    Subset {
        /// Decides what survives.
        seed: u64,
    },
    /// Names and lengths survive, sectors one by one: torn writes.
    Torn {
        /// Decides what survives.
        seed: u64,
    },
    /// Names and lengths survive, no unsynced data: zeros where it would be.
    LengthLeads,
    /// Names survive; files are as of their last sync, new ones empty.
    NamesOnly,
    /// Data and lengths survive; names are as of the last directory sync.
    DataOnly,
    /// Only the process died: the page cache is all there, and still unsynced.
    ProcessKill,
}

impl CrashImage {
    /// The eight images, with fixed seeds.
    pub fn all() -> [Self; 8] {
        Self::all_seeded(0)
    }

    /// The eight images; `seed` varies what the random ones keep.
    pub fn all_seeded(seed: u64) -> [Self; 8] {
        [
            Self::LoseUnsynced,
            Self::KeepAll,
            Self::Subset { seed },
            Self::Torn { seed },
            Self::LengthLeads,
            Self::NamesOnly,
            Self::DataOnly,
            Self::ProcessKill,
        ]
    }

    /// What survives a power cut; `None` where the power stays on.
    pub(super) fn survival(self) -> Option<Survival> {
        use Choice::{All, Nothing, Random};
        let (names, sizes, sectors, seed) = match self {
            Self::LoseUnsynced => (Nothing, Nothing, Nothing, 0),
            Self::KeepAll => (All, All, All, 0),
            Self::Subset { seed } => (Random, Random, Random, seed),
            Self::Torn { seed } => (All, All, Random, seed),
            Self::LengthLeads => (All, All, Nothing, 0),
            Self::NamesOnly => (All, Nothing, Nothing, 0),
            Self::DataOnly => (Nothing, All, All, 0),
            Self::ProcessKill => return None,
        };
        Some(Survival {
            names,
            sizes,
            sectors,
            seed,
        })
    }
}

/// How much of something survives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Choice {
    Nothing,
    All,
    Random,
}

impl Choice {
    /// How many of the first `total` steps survive. The ends are favoured: most bugs live there.
    pub(super) fn count(self, total: usize, stream: &mut Stream) -> usize {
        match self {
            Self::Nothing => 0,
            Self::All => total,
            Self::Random => match stream.below(3) {
                0 => 0,
                1 => total,
                _ => stream.below(total + 1),
            },
        }
    }

    /// Whether one thing survives on its own.
    pub(super) fn one(self, stream: &mut Stream) -> bool {
        match self {
            Self::Nothing => false,
            Self::All => true,
            Self::Random => stream.coin(),
        }
    }
}

/// What survives of the unsynced names, lengths and sectors.
#[derive(Debug, Clone, Copy)]
pub(super) struct Survival {
    pub(super) names: Choice,
    pub(super) sizes: Choice,
    pub(super) sectors: Choice,
    pub(super) seed: u64,
}

impl Survival {
    /// A mode is metadata like a length.
    pub(super) fn keeps_mode(&self, stream: &mut Stream) -> bool {
        self.sizes.one(stream)
    }
}
