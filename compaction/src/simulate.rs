//! What would a store look like when idle? Picks replayed over metadata alone.

use crate::pick::{Candidate, pick};

/// Replays picks over metadata until none pays: what a store would look like when idle, and
/// how many rows were rewritten on the way.
pub fn simulate(
    mut segments: Vec<Candidate>,
    base_us: i64,
    ladder: &[u32],
    now_us: i64,
) -> (Vec<Candidate>, u64) {
    let mut rewritten = 0;
    let mut next = segments
        .iter()
        .map(|segment| segment.file_number)
        .max()
        .map_or(1, |number| number + 1);
    while let Some(pick) = pick(&segments, base_us, ladder, now_us, false) {
        let (inputs, kept): (Vec<_>, Vec<_>) = segments
            .into_iter()
            .partition(|segment| pick.inputs.contains(&segment.file_number));
        segments = kept;
        let rows: u32 = inputs
            .iter()
            .map(|segment| segment.rows - segment.dead_rows)
            .sum();
        rewritten += u64::from(rows);
        if rows > 0 {
            let bytes = inputs.iter().map(|segment| segment.bytes).sum();
            segments.push(Candidate {
                file_number: next,
                bucket: pick.bucket,
                rows,
                dead_rows: 0,
                bytes,
                loose_rows: 0,
                dropped_rows: 0,
            });
            next += 1;
        }
    }
    (segments, rewritten)
}
