//! What do postings add to the sums of a window, and which rows have enough?
//!
//! A window is a stretch of rows with a sum and a byte of length each. Postings come in rows
//! that ascend; `start` is the window's first row.

#[cfg(target_arch = "x86_64")]
#[expect(
    unsafe_code,
    reason = "the kernels are this crate's one home of unsafe code"
)]
mod avx2;
mod scalar;

use crate::scores::{Needs, ScoreRow, ScoreTable};

/// Most rows that are added at once: a block of a list.
pub(crate) const ADDED_MAX: usize = 128;

/// Adds a single occurrence in each of `rows`; gives all scores that were looked at, or-ed:
/// negative where one that was added was not known.
///
/// # Panics
/// For a row outside the window, more rows than [`ADDED_MAX`], or where lengths and sums are
/// not as many.
#[inline]
pub(crate) fn add_once(
    rows: &[u32],
    start: u32,
    once: &ScoreRow,
    lengths: &[u8],
    sums: &mut [i32],
) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return avx2.add_once(rows, start, once, lengths, sums);
    }
    scalar::add_once(rows, start, once, lengths, sums)
}

/// As [`add_once`], with the frequencies of the rows.
///
/// # Panics
/// As [`add_once`], and where rows and frequencies are not as many.
#[inline]
pub(crate) fn add(
    (rows, freqs): (&[u32], &[u32]),
    start: u32,
    table: &ScoreTable,
    lengths: &[u8],
    sums: &mut [i32],
) -> i32 {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return avx2.add((rows, freqs), start, table, lengths, sums);
    }
    scalar::add((rows, freqs), start, table, lengths, sums)
}

/// Rows with their sums, as two lists of one length.
pub type RowSums<'a> = (&'a mut Vec<u32>, &'a mut Vec<i32>);

/// Appends the rows with enough and at least `least`, ascending, and leaves all sums zero.
pub(crate) fn take_all(
    start: u32,
    sums: &mut [i32],
    least: i32,
    needs: &Needs<'_>,
    found: RowSums<'_>,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return avx2.take_all(start, sums, least, needs, found);
    }
    scalar::take_all(start, sums, least, needs, found);
}

/// Appends those of the rows that were `touched` with enough and at least `least`, each once,
/// in the order of their first touches, and leaves their sums zero. `least` is above zero, or
/// no row was touched twice.
///
/// # Panics
/// For a row outside the window.
pub(crate) fn take_touched(
    touched: &[u32],
    start: u32,
    sums: &mut [i32],
    (least, needs): (i32, &Needs<'_>),
    found: RowSums<'_>,
) {
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = avx2::Avx2::detect() {
        return avx2.take_touched(touched, start, sums, (least, needs), found);
    }
    scalar::take_touched(touched, start, sums, (least, needs), found);
}

#[cfg(test)]
mod tests;
