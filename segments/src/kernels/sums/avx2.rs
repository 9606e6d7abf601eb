//! The forms with AVX2. What is wide is the proof that all rows lie in the window and the
//! search for sums that are large enough; adding itself goes row by row, without a check each,
//! which is faster than gathers and scatters on processors of today.

use std::arch::x86_64::{
    __m256i, _mm256_castsi256_ps, _mm256_cmpgt_epi32, _mm256_loadu_si256, _mm256_movemask_ps,
    _mm256_or_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_storeu_si256,
    _mm256_testz_si256,
};

use super::{ADDED_MAX, RowSums};
use crate::scores::{Needs, ScoreRow, ScoreTable};

/// Sums of a register.
const LANES: usize = 8;
/// Sums that are looked at together.
const STEP: usize = 4 * LANES;
/// The same, as rows.
const STEP_ROWS: u32 = 32;
const _: () = assert!(STEP == STEP_ROWS as usize);

/// Proof that this processor has AVX2: only [`Avx2::detect`] makes one.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the processor; std keeps the answer.
    #[inline]
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// See [`super::add_once`].
    #[inline]
    pub(super) fn add_once(
        self,
        rows: &[u32],
        start: u32,
        once: &ScoreRow,
        lengths: &[u8],
        sums: &mut [i32],
    ) -> i32 {
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { add_once(rows, start, once, lengths, sums) }
    }

    /// See [`super::add`].
    #[inline]
    pub(super) fn add(
        self,
        postings: (&[u32], &[u32]),
        start: u32,
        table: &ScoreTable,
        lengths: &[u8],
        sums: &mut [i32],
    ) -> i32 {
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { add(postings, start, table, lengths, sums) }
    }

    /// See [`super::take_all`].
    pub(super) fn take_all(
        self,
        start: u32,
        sums: &mut [i32],
        least: i32,
        needs: &Needs<'_>,
        found: RowSums<'_>,
    ) {
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { take_all(start, sums, least, needs, found) }
    }

    /// See [`super::take_touched`].
    pub(super) fn take_touched(
        self,
        touched: &[u32],
        start: u32,
        sums: &mut [i32],
        least: (i32, &Needs<'_>),
        found: RowSums<'_>,
    ) {
        // SAFETY: `self` proves that the processor has AVX2.
        unsafe { take_touched(touched, start, sums, least, found) }
    }
}

/// # Panics
/// If a row lies outside the `len` rows from `start` on.
#[target_feature(enable = "avx2")]
#[inline]
fn check_rows(rows: &[u32], start: u32, len: usize) {
    let furthest = rows
        .iter()
        .fold(0, |most, row| row.wrapping_sub(start).max(most));
    assert!(
        rows.is_empty() || (furthest as usize) < len,
        "row {furthest} of a window of {len}"
    );
}

#[target_feature(enable = "avx2")]
fn add_once(rows: &[u32], start: u32, once: &ScoreRow, lengths: &[u8], sums: &mut [i32]) -> i32 {
    assert!(rows.len() <= ADDED_MAX);
    add_checked(rows, start, once, lengths, sums)
}

/// Adds single occurrences, after a look at where the rows lie.
#[target_feature(enable = "avx2")]
#[inline]
fn add_checked(rows: &[u32], start: u32, once: &ScoreRow, lengths: &[u8], sums: &mut [i32]) -> i32 {
    assert_eq!(lengths.len(), sums.len());
    check_rows(rows, start, sums.len());
    let mut seen = 0;
    for row in rows {
        let place = row.wrapping_sub(start) as usize;
        // SAFETY: `check_rows` found every place below `sums.len()`, and lengths are as many.
        let length = unsafe { *lengths.get_unchecked(place) };
        // SAFETY: as above.
        let sum = unsafe { sums.get_unchecked_mut(place) };
        let score = once[usize::from(length)];
        seen |= score;
        *sum += score;
    }
    seen
}

#[target_feature(enable = "avx2")]
fn add(
    (rows, freqs): (&[u32], &[u32]),
    start: u32,
    table: &ScoreTable,
    lengths: &[u8],
    sums: &mut [i32],
) -> i32 {
    assert!(rows.len() <= ADDED_MAX);
    assert_eq!(rows.len(), freqs.len());
    assert_eq!(lengths.len(), sums.len());
    check_rows(rows, start, sums.len());
    // Where each frequency's scores begin: many at once, and no branch that depends on one. (To
    // add all as single occurrences and mend the others is fewer instructions and slower: which
    // ones they are cannot be foreseen.)
    let mut from = [0; ADDED_MAX];
    for (from, freq) in from.iter_mut().zip(freqs) {
        *from = ScoreTable::row_of(*freq) * ScoreTable::ROW_LEN;
    }
    let (scores, mut seen) = (table.flat(), 0);
    for (row, from) in rows.iter().zip(&from) {
        let place = row.wrapping_sub(start) as usize;
        // SAFETY: `check_rows` found every place below `sums.len()`, and lengths are as many.
        let length = unsafe { *lengths.get_unchecked(place) };
        // SAFETY: as above.
        let sum = unsafe { sums.get_unchecked_mut(place) };
        let score = scores[*from as usize + usize::from(length)];
        seen |= score;
        *sum += score;
    }
    seen
}

#[target_feature(enable = "avx2")]
fn take_all(
    start: u32,
    sums: &mut [i32],
    least: i32,
    needs: &Needs<'_>,
    (rows, found): RowSums<'_>,
) {
    // No sum is larger than what fits: one less is below every one that is enough.
    let below = _mm256_set1_epi32(least.saturating_sub(1));
    let (steps, rest) = sums.as_chunks_mut::<STEP>();
    let mut first = start;
    for step in steps {
        let (eights, _) = step.as_chunks::<LANES>();
        let above: [__m256i; STEP / LANES] = std::array::from_fn(|at| {
            let eight = eights[at].as_ptr();
            // SAFETY: eight sums of a live borrow, read unaligned.
            let eight = unsafe { _mm256_loadu_si256(eight.cast()) };
            _mm256_cmpgt_epi32(eight, below)
        });
        let any = _mm256_or_si256(
            _mm256_or_si256(above[0], above[1]),
            _mm256_or_si256(above[2], above[3]),
        );
        if _mm256_testz_si256(any, any) == 0 {
            for ((eight, above), first) in eights.iter().zip(above).zip((first..).step_by(LANES)) {
                let mut left = _mm256_movemask_ps(_mm256_castsi256_ps(above)).cast_unsigned();
                while left != 0 {
                    let place = left.trailing_zeros();
                    left &= left - 1;
                    let (row, sum) = (first.wrapping_add(place), eight[place as usize % LANES]);
                    if sum >= needs.of(row) {
                        rows.push(row);
                        found.push(sum);
                    }
                }
            }
        }
        first = first.wrapping_add(STEP_ROWS);
        let (eights, _) = step.as_chunks_mut::<LANES>();
        for eight in eights {
            let (to, zeros) = (eight.as_mut_ptr().cast(), _mm256_setzero_si256());
            // SAFETY: eight sums of a live exclusive borrow, written unaligned.
            unsafe { _mm256_storeu_si256(to, zeros) };
        }
    }
    super::scalar::take_all(first, rest, least, needs, (rows, found));
}

#[target_feature(enable = "avx2")]
fn take_touched(
    touched: &[u32],
    start: u32,
    sums: &mut [i32],
    (least, needs): (i32, &Needs<'_>),
    (rows, found): RowSums<'_>,
) {
    let Some((of_length, lengths)) = needs.window(start, sums.len()) else {
        return super::scalar::take_touched(touched, start, sums, (least, needs), (rows, found));
    };
    check_rows(touched, start, sums.len());
    rows.reserve(touched.len());
    found.reserve(touched.len());
    let (to_rows, to_found) = (rows.spare_capacity_mut(), found.spare_capacity_mut());
    let mut len = 0;
    for row in touched {
        let place = row.wrapping_sub(start) as usize;
        // SAFETY: `check_rows` found every place below `sums.len()`, and lengths are as many.
        // `len` counts rows of `touched` before this one, and both lists have room for all.
        let sum = unsafe { sums.get_unchecked_mut(place) };
        // SAFETY: as above.
        let length = unsafe { *lengths.get_unchecked(place) };
        // SAFETY: as above.
        let to_row = unsafe { to_rows.get_unchecked_mut(len) };
        // SAFETY: as above.
        let to_sum = unsafe { to_found.get_unchecked_mut(len) };
        let sum = std::mem::take(sum);
        // One that is not taken is written over: no branch.
        to_row.write(*row);
        to_sum.write(sum);
        len += usize::from((sum >= least) & (sum >= of_length[usize::from(length)]));
    }
    let (rows_len, found_len) = (rows.len() + len, found.len() + len);
    // SAFETY: the first `len` places after the old ends were written above.
    unsafe { rows.set_len(rows_len) };
    // SAFETY: as above.
    unsafe { found.set_len(found_len) };
}
