//! Bytes of runs of vectors.
//!
//! Section `vector_runs`; absent where no scope has runs:
//!
//! ```text
//! +-----------------+---------------+------------------------------+------------+
//! | scopes, 24 each | runs, 16 each | centroids, vector bytes each | trailer 24 |
//! +-----------------+---------------+------------------------------+------------+
//! ```
//!
//! Runs and centroids stand in the order of their rows. The runs of a scope follow each other
//! without a gap and end where the scope ends; its rows before the first have no vector.
//! Centroids are stored as the vectors of the space are.
//!
//! | field | width | range | verified by |
//! |---|---|---|---|
//! | scope: number in the scope directory | 4 | ascending, below the scope count | `VectorRuns::open` |
//! | scope: first row of its first run | 4 | a row of the scope | `VectorRuns::open` |
//! | scope: runs | 4 | at least 1 | `VectorRuns::open` |
//! | scope: rows to look at to find 95 % and 99 % of the nearest, millionths of those in runs | 2 x 4 | 1 to 1,000,000 | `VectorRuns::open` |
//! | scope: zeros | 4 | 0 | `VectorRuns::open` |
//! | run: row after its last | 4 | ascending; the last of a scope: its end | `VectorRuns::open` |
//! | run: zeros | 4 | 0 | `VectorRuns::open` |
//! | run: radius, f64 | 8 | at least 0, finite | `VectorRuns::open`; that it bounds, scrub |
//! | centroid: components | as the space says | finite | scrub |
//! | trailer: rows | 4 | rows of the segment | `VectorRuns::open` |
//! | trailer: scopes with runs, runs | 2 x 4 | at least 1; lengths add up | `VectorRuns::open` |
//! | trailer: dimension | 4 | of the vector space | `VectorRuns::open` |
//! | trailer: bytes of a component | 1 | 2 = f16, 4 = f32 | `VectorRuns::open` |
//! | trailer: zeros | 7 | 0 | `VectorRuns::open` |

/// Bytes of a scope's entry.
pub(super) const SCOPE_BYTES: usize = 24;
/// Bytes of a run's entry.
pub(super) const RUN_BYTES: usize = 16;
/// Bytes of the trailer.
pub(super) const TRAILER_BYTES: usize = 24;

const _: () = assert!(4 + 4 + 4 + 2 * 4 + 4 == SCOPE_BYTES);
const _: () = assert!(4 + 4 + 8 == RUN_BYTES);
const _: () = assert!(4 + 2 * 4 + 4 + 1 + 7 == TRAILER_BYTES);

/// What the trailer says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Trailer {
    pub(super) rows: u32,
    pub(super) scopes: u32,
    pub(super) runs: u32,
    pub(super) dim: u32,
    pub(super) component_bytes: u8,
}

impl Trailer {
    pub(super) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = [0; TRAILER_BYTES];
        bytes[0..4].copy_from_slice(&self.rows.to_le_bytes());
        bytes[4..8].copy_from_slice(&self.scopes.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.runs.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.dim.to_le_bytes());
        bytes[16] = self.component_bytes;
        bytes
    }

    /// Where the runs start.
    pub(super) fn runs_at(&self) -> u64 {
        u64::from(self.scopes) * SCOPE_BYTES as u64
    }

    /// Where the centroids start.
    pub(super) fn centroids_at(&self) -> u64 {
        self.runs_at() + u64::from(self.runs) * RUN_BYTES as u64
    }

    /// Where the trailer starts. No overflow: counts have 32 bits, a vector far fewer bytes.
    pub(super) fn trailer_at(&self, vector_bytes: usize) -> u64 {
        self.centroids_at() + u64::from(self.runs) * vector_bytes as u64
    }
}
