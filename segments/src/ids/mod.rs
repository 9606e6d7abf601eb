//! What is the id of a row, and which row has an id?
//!
//! ids: names by row. id order: rows of each scope by (id, seq), as offsets from the scope's
//! first row, or nothing where the rows stand so already. id filter: see `filter`.
//!
//! A permutation searched by bisection and not a transducer: it takes some 17 bits a row where
//! a transducer repeats most of each id, several versions of an id are no special case, and no
//! damage in it can do more than give an error or a miss.

mod filter;
mod strings;

pub(crate) use filter::{IdFilter, encode_filter, id_hash};
pub(crate) use strings::{NameWalk, Names, write_names};

use std::ops::Range;

use crate::columns::{Columns, Packed, partition_point, write_packed};
use crate::error::SegmentError;
use crate::format::bytes::{head, index};
use crate::format::{Section, SectionSink};
use crate::limits::ID_BYTES_MAX;
use crate::scope_dir::{ScopeDir, ScopeFacts, shared_prefix};

type Result<T> = std::result::Result<T, SegmentError>;

/// The ids of all rows in memory, for a writer.
#[derive(Debug, Default)]
pub(crate) struct IdList {
    text: String,
    ends: Vec<usize>,
}

impl IdList {
    /// Appends the next row's id, which `push` appends to all before it.
    ///
    /// # Errors
    /// Those of `push`.
    pub(crate) fn push(&mut self, push: impl FnOnce(&mut String) -> Result<()>) -> Result<()> {
        push(&mut self.text)?;
        self.ends.push(self.text.len());
        Ok(())
    }

    /// The id of a row.
    pub(crate) fn get(&self, row: u32) -> &str {
        let start = row
            .checked_sub(1)
            .map_or(0, |before| self.ends[index(before)]);
        &self.text[start..self.ends[index(row)]]
    }

    /// All ids, by row.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &str> {
        (0_u32..).take(self.ends.len()).map(|row| self.get(row))
    }
}

/// Writes the section that orders rows by id.
///
/// # Errors
/// The sink's.
pub(crate) fn write_id_order(
    sink: &mut dyn SectionSink,
    ids: &IdList,
    seqs: &[u64],
    scopes: &[ScopeFacts],
) -> Result<()> {
    let (mut order, mut sorted) = (Vec::with_capacity(seqs.len()), Vec::new());
    for scope in scopes {
        sort_by_id(ids, seqs, scope.rows.clone(), &mut sorted);
        let offsets = sorted.iter().map(|(_, row)| row - scope.rows.start);
        order.extend(offsets.map(u64::from));
    }
    let natural = scopes
        .iter()
        .flat_map(|scope| 0..u64::from(scope.rows.end - scope.rows.start));
    if order.iter().copied().eq(natural) {
        order.clear();
    }
    write_packed(sink, &order)
}

/// Replaces `sorted` by `rows` in order of (id, seq, row), each with the eight bytes of its id
/// behind those that all ids share: they tell most ids apart.
fn sort_by_id(ids: &IdList, seqs: &[u64], rows: Range<u32>, sorted: &mut Vec<(u64, u32)>) {
    let first = ids.get(rows.start).as_bytes();
    let shared = rows.clone().fold(first.len(), |shared, row| {
        shared_prefix(&first[..shared], ids.get(row).as_bytes())
    });
    sorted.clear();
    sorted.extend(rows.map(|row| (head(&ids.get(row).as_bytes()[shared..]), row)));
    let full = |row: u32| (ids.get(row), seqs[index(row)], row);
    sorted.sort_unstable_by(|(a_head, a), (b_head, b)| {
        a_head.cmp(b_head).then_with(|| full(*a).cmp(&full(*b)))
    });
}

/// The ids of a segment.
#[derive(Debug, Clone)]
pub(crate) struct Ids {
    names: Names,
    order: Packed,
    filter: IdFilter,
}

impl Ids {
    /// Opens the three sections of a segment of `rows` rows.
    ///
    /// # Errors
    /// `Corrupt` where their counts do not agree.
    pub(crate) fn open(
        names: &Section,
        order: &Section,
        filter: &Section,
        rows: u32,
    ) -> Result<Self> {
        let list = Names::open(names, ID_BYTES_MAX)?;
        if list.count() != rows {
            return Err(names.corrupt(0, format!("{} ids for {rows} rows", list.count())));
        }
        let (column, end) = Packed::open(order, 0)?;
        if (column.count() != 0 && column.count() != rows) || end != order.len() {
            return Err(order.corrupt(0, format!("{} places for {rows} rows", column.count())));
        }
        Ok(Self {
            names: list,
            order: column,
            filter: IdFilter::open(filter)?,
        })
    }

    /// The ids, one row after the other.
    pub(crate) fn walk(&self) -> NameWalk<'_> {
        NameWalk::new(&self.names)
    }

    /// The id of a row.
    ///
    /// # Errors
    /// Damage in the ids.
    pub(crate) fn get(&self, row: u32) -> Result<String> {
        self.names.get(row)
    }

    /// The newest row of `scope` with this id and a seq of at most `at_seq`.
    ///
    /// # Errors
    /// Damage in the ids, their order or the seqs.
    pub(crate) fn find(
        &self,
        scopes: &ScopeDir,
        columns: &Columns,
        scope: usize,
        id: &str,
        at_seq: u64,
    ) -> Result<Option<u32>> {
        if !self.filter.may_hold(id_hash(scope, id))? {
            return Ok(None);
        }
        let rows = scopes.rows_of(scope);
        let after = partition_point(rows.clone(), |at| {
            let row = self.row_at(at, &rows)?;
            Ok(match self.names.get(row)?.as_str().cmp(id) {
                std::cmp::Ordering::Less => true,
                std::cmp::Ordering::Equal => columns.commit_seq(row)? <= at_seq,
                std::cmp::Ordering::Greater => false,
            })
        })?;
        if after == rows.start {
            return Ok(None);
        }
        let row = self.row_at(after - 1, &rows)?;
        Ok((self.names.get(row)? == id).then_some(row))
    }

    /// The row at a place of the order; `own` are the rows of the place's scope.
    pub(crate) fn row_at(&self, at: u32, own: &Range<u32>) -> Result<u32> {
        if self.order.count() == 0 {
            return Ok(at);
        }
        let offset = self.order.get_u32(at)?;
        if offset >= own.end - own.start {
            return Err(self.order.corrupt(format!(
                "row {offset} of a scope of {}",
                own.end - own.start
            )));
        }
        Ok(own.start + offset)
    }

    /// Damage in the order of ids.
    pub(crate) fn corrupt(&self, message: impl Into<String>) -> SegmentError {
        self.order.corrupt(message)
    }
}
