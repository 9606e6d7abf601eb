//! Which rows lie in a window, for those who need no times?

use std::ops::Range;

use super::{CHUNK, Listed, Result, Stretch, TimeWalk, Timeline, merges_faster, window};
use crate::columns::Columns;
use crate::read::{Run, WindowRows};
use crate::scope_dir::ScopeDir;

impl Timeline {
    /// The rows of `rows` in the window; `None` where they are more than `rows_max` and no
    /// plain range.
    ///
    /// # Errors
    /// Damage in timeline or columns.
    pub(crate) fn window_rows(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        rows: &Range<u32>,
        walk: TimeWalk,
        rows_max: usize,
    ) -> Result<Option<WindowRows>> {
        if rows.is_empty() || walk.from_us >= walk.to_us {
            return Ok(Some(WindowRows::Listed(Vec::new())));
        }
        let of_rows = scopes.of_rows(rows);
        let mut stretches = Vec::new();
        if of_rows.len() == 1 {
            let stretch = self.stretch(scopes, columns, of_rows.start, rows, walk)?;
            if stretch.listed.is_none() {
                let rows = stretch.positions;
                return Ok(Some(WindowRows::Run(Run { key: 0, rows })));
            }
            stretches.push(stretch);
        } else {
            let all = 0..scopes.rows();
            let whole = Stretch {
                own: all.clone(),
                listed: Some(Listed::Whole),
                positions: window(columns, all, walk, |at| self.whole_row(at, scopes.rows()))?,
            };
            if merges_faster(&whole, rows, of_rows.len()) {
                for scope in of_rows {
                    stretches.push(self.stretch(scopes, columns, scope, rows, walk)?);
                }
            } else if *rows == whole.own && whole.positions.len() > rows_max {
                return Ok(None);
            } else {
                stretches.push(whole);
            }
        }
        let (mut found, mut chunk) = (RowSet::new(rows.clone()), [0; CHUNK as usize]);
        for stretch in stretches {
            let mut left = stretch.positions.clone();
            while !left.is_empty() {
                let part = left.start..left.end.min(left.start + CHUNK);
                left.start = part.end;
                found.extend(self.rows_at(&stretch, part, rows, &mut chunk)?);
                if found.len > rows_max {
                    return Ok(None);
                }
            }
        }
        Ok(Some(WindowRows::Listed(found.into_rows())))
    }
}

/// Rows that come in any order, each once, and leave ascending: one bit a row of the range,
/// which is far cheaper than sorting them.
#[derive(Debug)]
struct RowSet {
    within: Range<u32>,
    bits: Vec<u64>,
    len: usize,
}

impl RowSet {
    fn new(within: Range<u32>) -> Self {
        let bits = vec![0; within.len().div_ceil(64)];
        let len = 0;
        Self { within, bits, len }
    }

    /// Adds rows of the range.
    fn extend(&mut self, rows: &[u32]) {
        for row in rows {
            let at = row - self.within.start;
            self.bits[at as usize / 64] |= 1 << (at % 64);
        }
        self.len += rows.len();
    }

    fn into_rows(self) -> Vec<u32> {
        let mut rows = Vec::with_capacity(self.len);
        for (first, word) in (self.within.start..).step_by(64).zip(self.bits) {
            let mut left = word;
            while left != 0 {
                rows.push(first + left.trailing_zeros());
                left &= left - 1;
            }
        }
        rows
    }
}
