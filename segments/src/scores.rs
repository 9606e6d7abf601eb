//! What is one posting worth? Said by the query, added up by whoever reads the postings.
//!
//! Most frequencies are 1 to 4 and most rows shorter than 255 tokens, so a [`ScoreTable`] by
//! (frequency, length) answers for nearly all postings without a division or a branch; what it
//! does not know is asked of the query, which computes it.

use crate::error::SegmentError;
use crate::kernels::sums::{self, ADDED_MAX, RowSums};
use crate::read::LENGTH_LONG;

type Result<T> = std::result::Result<T, SegmentError>;

/// Contributions by length: a place for each value of a byte, so that no index leaves it.
pub(crate) type ScoreRow = [i32; 256];

/// Says of a place of a [`ScoreTable`] that the query must be asked.
const ASK: i32 = -1;

/// One term's contributions by frequency and length, as far as they are computed.
#[derive(Debug, Clone)]
pub struct ScoreTable {
    /// By frequency - 1; the last one is of all larger frequencies, and asks.
    rows: [ScoreRow; Self::FREQS_MAX + 1],
}

impl ScoreTable {
    /// Frequencies of which a table may know contributions: 1 to this.
    pub const FREQS_MAX: usize = 4;

    /// A table that knows nothing.
    pub const UNKNOWN: Self = Self {
        rows: [[ASK; 256]; Self::FREQS_MAX + 1],
    };

    /// Sets the contributions of rows with `freq` occurrences, from length 0 on. `scores` are
    /// at most 255, each at most 2^31 - 1.
    ///
    /// # Panics
    /// For a frequency that is 0 or above [`Self::FREQS_MAX`].
    pub fn set(&mut self, freq: usize, scores: impl Iterator<Item = i32>) {
        assert!((1..=Self::FREQS_MAX).contains(&freq), "frequency {freq}");
        // The last place stands for all longer rows.
        let known = &mut self.rows[freq - 1][..usize::from(LENGTH_LONG)];
        for (place, score) in known.iter_mut().zip(scores) {
            debug_assert!(score >= 0);
            *place = score;
        }
    }

    /// The contribution of `freq` occurrences in a row whose byte of
    /// [`crate::Partition::short_lengths`] is `length`; `None` where it was not set.
    pub fn get(&self, freq: u32, length: u8) -> Option<i32> {
        Some(self.at(freq, length)).filter(|score| *score >= 0)
    }

    /// As [`ScoreTable::get`]; negative where the query must be asked.
    #[inline]
    pub(crate) fn at(&self, freq: u32, length: u8) -> i32 {
        self.rows[Self::row_of(freq) as usize][usize::from(length)]
    }

    /// Scores of a row.
    pub(crate) const ROW_LEN: u32 = 256;

    /// The row of a frequency.
    #[inline]
    pub(crate) fn row_of(freq: u32) -> u32 {
        const OTHERS: u32 = 4;
        const { assert!(OTHERS as usize == Self::FREQS_MAX) };
        freq.wrapping_sub(1).min(OTHERS)
    }

    /// All scores, row by row.
    #[inline]
    pub(crate) fn flat(&self) -> &[i32] {
        self.rows.as_flattened()
    }

    /// Contributions of a single occurrence.
    #[inline]
    pub(crate) fn once(&self) -> &ScoreRow {
        &self.rows[0]
    }
}

/// What the postings of one term in one partition are worth.
#[derive(Clone, Copy)]
pub struct Scores<'a> {
    /// What is known beforehand.
    pub table: &'a ScoreTable,
    /// The partition's [`crate::Partition::short_lengths`]; empty = ask for every posting.
    pub lengths: &'a [u8],
    /// Computes what `row` gets for a frequency: 0 to 2^31 - 1.
    pub ask: &'a dyn Fn(u32, u32) -> Result<i32>,
}

impl Scores<'_> {
    /// What `row` gets for `freq` occurrences.
    ///
    /// # Errors
    /// Damage in the row's length.
    #[inline]
    pub fn of(&self, row: u32, freq: u32) -> Result<i32> {
        let known = match self.lengths.get(row as usize) {
            Some(length) => self.table.at(freq, *length),
            None => ASK,
        };
        if known < 0 {
            return (self.ask)(row, freq);
        }
        Ok(known)
    }

    /// Adds what `rows` get for `freqs`, which are as many; at most 128.
    ///
    /// # Errors
    /// Damage in a row's length.
    ///
    /// # Panics
    /// For a row outside the window, and for more rows than 128.
    #[inline]
    pub(crate) fn add(&self, rows: &[u32], freqs: &[u32], sums: &mut Sums<'_>) -> Result<()> {
        let start = sums.start;
        let Some((window, lengths)) = sums.with_lengths(self.lengths) else {
            return self.add_asked(rows, freqs, sums);
        };
        let seen = sums::add((rows, freqs), start, self.table, lengths, window);
        if seen < 0 {
            self.ask_unknown(rows, freqs, sums)?;
        }
        sums.note(rows);
        Ok(())
    }

    /// As [`Scores::add`] where every frequency is 1.
    #[inline]
    pub(crate) fn add_once(&self, rows: &[u32], sums: &mut Sums<'_>) -> Result<()> {
        let start = sums.start;
        let Some((window, lengths)) = sums.with_lengths(self.lengths) else {
            return self.add_asked(rows, &[1; ADDED_MAX], sums);
        };
        let seen = sums::add_once(rows, start, self.table.once(), lengths, window);
        if seen < 0 {
            self.ask_unknown(rows, &[1; ADDED_MAX], sums)?;
        }
        sums.note(rows);
        Ok(())
    }

    /// Puts what the query says in the place of what the table did not know and was added.
    fn ask_unknown(&self, rows: &[u32], freqs: &[u32], sums: &mut Sums<'_>) -> Result<()> {
        for (row, freq) in rows.iter().zip(freqs) {
            let known = self.table.at(*freq, self.lengths[*row as usize]);
            if known < 0 {
                let place = row.wrapping_sub(sums.start) as usize;
                // Apart: what the query says may be all that fits.
                sums.sums[place] -= known;
                sums.sums[place] += (self.ask)(*row, *freq)?;
            }
        }
        Ok(())
    }

    /// One posting after the other: the plain way, which is right for all of them.
    #[cold]
    fn add_asked(&self, rows: &[u32], freqs: &[u32], sums: &mut Sums<'_>) -> Result<()> {
        for (row, freq) in rows.iter().zip(freqs) {
            sums.add_one(*row, self.of(*row, *freq)?);
        }
        Ok(())
    }
}

/// One sum a row of a window, and which rows were added to.
pub struct Sums<'a> {
    /// Row of the first sum.
    pub start: u32,
    /// One a row from there on. What all postings together can be worth fits.
    pub sums: &'a mut [i32],
    /// Gets the row of every posting that was added, in the order of adding, where the window
    /// is so sparse that looking at each sum would cost more.
    pub touched: Option<&'a mut Vec<u32>>,
    /// Gets the count of them.
    pub postings: u64,
}

impl Sums<'_> {
    /// The sums and the lengths of their rows, of all rows' `lengths`; `None` where those are
    /// not known.
    #[inline]
    fn with_lengths<'l>(&mut self, lengths: &'l [u8]) -> Option<(&mut [i32], &'l [u8])> {
        let lengths = lengths.get(self.start as usize..)?;
        let lengths = lengths.get(..self.sums.len())?;
        Some((self.sums, lengths))
    }

    /// Notes the rows that were added to.
    #[inline]
    fn note(&mut self, rows: &[u32]) {
        if let Some(touched) = &mut self.touched {
            touched.extend_from_slice(rows);
        }
        self.postings += rows.len() as u64;
    }

    /// Adds to one row, which lies in the window.
    #[inline]
    pub fn add_one(&mut self, row: u32, score: i32) {
        self.sums[row.wrapping_sub(self.start) as usize] += score;
        if let Some(touched) = &mut self.touched {
            touched.push(row);
        }
        self.postings += 1;
    }
}

/// Lengths that differ by less than this need the same.
pub const CLASS_LENGTHS: u8 = 8;
/// Classes of lengths; the last one is of all longer rows.
pub const LENGTH_CLASSES: usize = 8;

/// What each row must have to be taken, by its length.
#[derive(Debug)]
pub struct Needs<'a> {
    of_length: ScoreRow,
    least: i32,
    /// One byte a row; empty where they are not known.
    lengths: &'a [u8],
}

impl<'a> Needs<'a> {
    /// Of the rows of each class; `lengths` has a byte a row, or none at all: then each row
    /// needs the least of them.
    pub fn new(by_class: [i32; LENGTH_CLASSES], lengths: &'a [u8]) -> Self {
        let mut of_length = [by_class[LENGTH_CLASSES - 1]; 256];
        let classes = of_length.chunks_mut(usize::from(CLASS_LENGTHS));
        for (lengths, need) in classes.zip(by_class) {
            lengths.fill(need);
        }
        Self {
            least: by_class.into_iter().min().unwrap_or(0),
            of_length,
            lengths,
        }
    }

    /// What any row needs at least.
    #[inline]
    pub fn least(&self) -> i32 {
        self.least
    }

    /// What `row` needs.
    #[inline]
    pub fn of(&self, row: u32) -> i32 {
        match self.lengths.get(row as usize) {
            Some(length) => self.of_length[usize::from(*length)],
            None => self.least,
        }
    }

    /// What rows of each length need, and the lengths of `len` rows from `start` on; `None`
    /// where they are not known.
    #[inline]
    pub(crate) fn window(&self, start: u32, len: usize) -> Option<(&ScoreRow, &'a [u8])> {
        let lengths = self.lengths.get(start as usize..)?.get(..len)?;
        Some((&self.of_length, lengths))
    }

    /// Leaves of `rows` those whose sums are enough.
    ///
    /// # Panics
    /// Where rows and sums are not as many.
    pub fn keep(&self, rows: &mut Vec<u32>, found: &mut Vec<i32>) {
        assert_eq!(rows.len(), found.len(), "rows and their sums");
        let mut len = 0;
        for at in 0..rows.len() {
            let (row, sum) = (rows[at], found[at]);
            (rows[len], found[len]) = (row, sum);
            len += usize::from(sum >= self.of(row));
        }
        rows.truncate(len);
        found.truncate(len);
    }

    /// Appends the rows with enough and at least `least`, ascending, and leaves the sums of a
    /// window that begins at row `start` zero.
    pub fn take_all(&self, start: u32, window: &mut [i32], least: i32, found: RowSums<'_>) {
        sums::take_all(start, window, least, self, found);
    }

    /// As [`Needs::take_all`], from the rows that were `touched`, in the order of their first
    /// touches. `least` is above zero, or no row was touched twice.
    ///
    /// # Panics
    /// For a row outside the window.
    pub fn take_touched(
        &self,
        touched: &[u32],
        start: u32,
        window: &mut [i32],
        least: i32,
        found: RowSums<'_>,
    ) {
        sums::take_touched(touched, start, window, (least, self), found);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Knows single and double occurrences; the rest is asked.
    fn table() -> ScoreTable {
        let mut table = ScoreTable::UNKNOWN;
        table.set(1, (0..).map(|length| 1000 - length));
        table.set(2, (0..).map(|length| 2000 - length));
        table
    }

    fn ask(row: u32, freq: u32) -> Result<i32> {
        Ok(i32::try_from(freq * 1000 + row % 7).expect("small"))
    }

    #[test]
    fn a_table_asks_for_what_it_was_not_told() {
        let table = table();
        assert_eq!(table.get(1, 0), Some(1000));
        assert_eq!(table.get(2, 254), Some(1746));
        for (freq, length) in [(1, LENGTH_LONG), (3, 0), (5, 9), (u32::MAX, 9), (0, 9)] {
            assert_eq!(table.get(freq, length), None, "{freq} {length}");
        }
    }

    #[test]
    fn what_is_asked_may_be_all_that_fits() {
        let (table, most) = (ScoreTable::UNKNOWN, |_, _| Ok(i32::MAX));
        let scores = Scores {
            table: &table,
            lengths: &[3, 4],
            ask: &most,
        };
        let mut window = [0; 2];
        let mut sums = Sums {
            start: 0,
            sums: &mut window,
            touched: None,
            postings: 0,
        };
        scores.add(&[0], &[7], &mut sums).unwrap();
        scores.add_once(&[1], &mut sums).unwrap();
        assert_eq!(window, [i32::MAX; 2]);
    }

    #[test]
    fn many_at_once_is_one_after_the_other() {
        let table = table();
        let lengths: Vec<u8> = (0..=255).cycle().take(1000).collect();
        let no_lengths: &[u8] = &[];
        for lengths in [&*lengths, no_lengths] {
            let scores = Scores {
                table: &table,
                lengths,
                ask: &ask,
            };
            // Rows of known lengths alone, then some of unknown ones, too; all frequencies.
            for (step, highest) in [(2, 2), (7, 2), (3, 9)] {
                let rows: Vec<u32> = (0..120).map(|place| 100 + place * step).collect();
                let freqs: Vec<u32> = (0..120).map(|place| 1 + place % highest).collect();
                let (mut once, mut many, mut plain) = ([0; 900], [0; 900], [0; 900]);
                let mut touched = Vec::new();
                let mut sums = Sums {
                    start: 100,
                    sums: &mut many,
                    touched: Some(&mut touched),
                    postings: 0,
                };
                scores.add(&rows, &freqs, &mut sums).unwrap();
                assert_eq!(sums.postings, 120);
                assert_eq!(touched, rows);
                for (row, freq) in rows.iter().zip(&freqs) {
                    plain[*row as usize - 100] += scores.of(*row, *freq).unwrap();
                }
                assert_eq!(many, plain);

                let mut sums = Sums {
                    start: 100,
                    sums: &mut once,
                    touched: None,
                    postings: 0,
                };
                scores.add_once(&rows, &mut sums).unwrap();
                for row in &rows {
                    let place = *row as usize - 100;
                    assert_eq!(once[place], scores.of(*row, 1).unwrap());
                }
            }
        }
    }
}
