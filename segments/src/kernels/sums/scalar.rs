//! The plain forms: the fallback and the oracle.

use super::{ADDED_MAX, RowSums};
use crate::scores::{Needs, ScoreRow, ScoreTable};

/// See [`super::add_once`].
pub(super) fn add_once(
    rows: &[u32],
    start: u32,
    once: &ScoreRow,
    lengths: &[u8],
    sums: &mut [i32],
) -> i32 {
    add_each(rows, start, lengths, sums, |_, length| {
        once[usize::from(length)]
    })
}

/// See [`super::add`].
pub(super) fn add(
    (rows, freqs): (&[u32], &[u32]),
    start: u32,
    table: &ScoreTable,
    lengths: &[u8],
    sums: &mut [i32],
) -> i32 {
    assert_eq!(rows.len(), freqs.len());
    add_each(rows, start, lengths, sums, |at, length| {
        table.at(freqs[at], length)
    })
}

fn add_each(
    rows: &[u32],
    start: u32,
    lengths: &[u8],
    sums: &mut [i32],
    score: impl Fn(usize, u8) -> i32,
) -> i32 {
    assert!(rows.len() <= ADDED_MAX && lengths.len() == sums.len());
    let mut seen = 0;
    for (at, row) in rows.iter().enumerate() {
        let place = row.wrapping_sub(start) as usize;
        let score = score(at, lengths[place]);
        seen |= score;
        sums[place] += score;
    }
    seen
}

/// See [`super::take_all`].
pub(super) fn take_all(
    start: u32,
    sums: &mut [i32],
    least: i32,
    needs: &Needs<'_>,
    (rows, found): RowSums<'_>,
) {
    for (row, sum) in (start..).zip(sums) {
        let sum = std::mem::take(sum);
        if sum >= least && sum >= needs.of(row) {
            rows.push(row);
            found.push(sum);
        }
    }
}

/// See [`super::take_touched`].
pub(super) fn take_touched(
    touched: &[u32],
    start: u32,
    sums: &mut [i32],
    (least, needs): (i32, &Needs<'_>),
    (rows, found): RowSums<'_>,
) {
    for row in touched {
        // The sum is whole, and gone when another posting comes to the row.
        let sum = std::mem::take(&mut sums[row.wrapping_sub(start) as usize]);
        if sum >= least && sum >= needs.of(*row) {
            rows.push(*row);
            found.push(sum);
        }
    }
}
