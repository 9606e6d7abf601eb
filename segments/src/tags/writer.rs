//! How do tags get into a segment?

use std::collections::BTreeMap;

use roaring::RoaringBitmap;

use super::format::trailer;
use super::row_tags;
use crate::error::SegmentError;
use crate::terms::FstBuilder;

/// Collects the tags of one segment, row by row; all in memory until the end.
#[derive(Debug, Default)]
pub(crate) struct TagsWriter {
    /// Number of each name in order of first sight, which indexes `sets`.
    names: BTreeMap<String, u32>,
    sets: Vec<RoaringBitmap>,
    untagged: RoaringBitmap,
    counts: Vec<u32>,
    /// Numbers of all rows' tags, rows in order.
    numbers: Vec<u32>,
}

/// The bytes of the three sections.
#[derive(Debug)]
pub(crate) struct TagsBytes {
    /// Section `tags`.
    pub(crate) tags: Vec<u8>,
    /// Section `tag_sets`.
    pub(crate) sets: Vec<u8>,
    /// Section `row_tags`.
    pub(crate) row_tags: Vec<u8>,
}

impl TagsWriter {
    /// A writer without rows.
    pub(crate) fn new() -> Self {
        Self::default()
    }

    /// The writer's number of a tag, which a row that is pushed may hold.
    ///
    /// # Errors
    /// A passed limit.
    pub(crate) fn number(&mut self, name: &str) -> Result<u32, SegmentError> {
        if let Some(number) = self.names.get(name) {
            return Ok(*number);
        }
        let number = u32::try_from(self.sets.len()).map_err(limit)?;
        self.names.insert(name.to_owned(), number);
        self.sets.push(RoaringBitmap::new());
        Ok(number)
    }

    /// Appends the next row with the numbers of its tags, in any order. A tag for which no row
    /// is pushed must not have a number.
    ///
    /// # Errors
    /// A passed limit.
    pub(crate) fn push(&mut self, tags: impl IntoIterator<Item = u32>) -> Result<(), SegmentError> {
        let row = u32::try_from(self.counts.len()).map_err(limit)?;
        let start = self.numbers.len();
        for number in tags {
            // Rows ascend: a set that does not take the row has it already.
            if self.sets[number as usize].try_push(row).is_ok() {
                self.numbers.push(number);
            }
        }
        let count = u32::try_from(self.numbers.len() - start).map_err(limit)?;
        if count == 0 {
            self.untagged.insert(row);
        }
        self.counts.push(count);
        Ok(())
    }

    /// The bytes of all three sections.
    ///
    /// # Errors
    /// A passed limit.
    pub(crate) fn finish(mut self) -> Result<TagsBytes, SegmentError> {
        let mut fst = FstBuilder::new();
        let mut ordinals = vec![0; self.sets.len()];
        let (mut sets, mut ends) = (Vec::new(), Vec::new());
        for (name, number) in &self.names {
            ordinals[*number as usize] = fst.push(name.as_bytes())?;
            push_set(&mut self.sets[*number as usize], &mut sets, &mut ends);
        }
        push_set(&mut self.untagged, &mut sets, &mut ends);
        let rows = u32::try_from(self.counts.len())
            .map_err(|_| SegmentError::Limit("2^32 rows in a segment".into()))?;
        let tags = fst.keys();
        let mut bytes = fst.finish();
        bytes.extend_from_slice(&trailer([tags, 0, 0], 0));
        sets.extend_from_slice(&ends);
        sets.extend_from_slice(&trailer([tags, rows, 0], 0));
        let row_tags = row_tags::encode(&self.counts, &self.row_ordinals(&ordinals), tags)?;
        Ok(TagsBytes {
            tags: bytes,
            sets,
            row_tags,
        })
    }

    /// The tags of all rows as ordinals, ascending inside each row.
    fn row_ordinals(&self, ordinals: &[u32]) -> Vec<u32> {
        let mut all: Vec<u32> = self
            .numbers
            .iter()
            .map(|number| ordinals[*number as usize])
            .collect();
        let mut rest = &mut all[..];
        for count in &self.counts {
            let (row, after) = rest.split_at_mut(*count as usize);
            row.sort_unstable();
            rest = after;
        }
        all
    }
}

fn limit(_: std::num::TryFromIntError) -> SegmentError {
    SegmentError::Limit("2^32 rows or tags in a segment".into())
}

fn push_set(set: &mut RoaringBitmap, sets: &mut Vec<u8>, ends: &mut Vec<u8>) {
    // Runs shrink a set of neighbouring rows twentyfold.
    set.optimize();
    set.serialize_into(&mut *sets)
        .expect("memory takes every write");
    ends.extend_from_slice(&(sets.len() as u64).to_le_bytes());
}
