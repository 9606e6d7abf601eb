//! How does a merge read all rows of a partition? One after the other, with what a row costs
//! less behind its neighbour than alone.

use std::borrow::Cow;

use crate::error::SegmentError;
use crate::read::Partition;
use crate::text::{Detailed, encode_detailed, encode_distilled};

type Result<T> = std::result::Result<T, SegmentError>;

/// The rows of a partition, for a merge. Rows may be asked for in any order; ascending ones are
/// cheap.
///
/// Numbers of scopes, tags and source ids are private to the stream: equal numbers are equal
/// names, and a name may have more than one.
pub trait RowStream {
    /// Number of the row's scope.
    ///
    /// # Errors
    /// Damage in the scope directory.
    fn scope(&mut self, row: u32) -> Result<u32>;

    /// Key of a scope that [`RowStream::scope`] gave.
    ///
    /// # Errors
    /// As [`RowStream::scope`].
    fn scope_key(&self, number: u32) -> Result<Cow<'_, [u8]>>;

    /// Appends the row's record id.
    ///
    /// # Errors
    /// Damage in the ids.
    fn id(&mut self, row: u32, out: &mut String) -> Result<()>;

    /// Appends the numbers of the row's tags, ascending by name.
    ///
    /// # Errors
    /// Damage in the tags.
    fn tags(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()>;

    /// Name of a tag that [`RowStream::tags`] gave.
    ///
    /// # Errors
    /// Damage in the tags.
    fn tag_name(&self, number: u32) -> Result<Cow<'_, str>>;

    /// Name of a source id, by its value in [`crate::Column::SourceId`], which is above 0.
    ///
    /// # Errors
    /// Damage in the source ids.
    fn source_name(&self, value: u32) -> Result<Cow<'_, str>>;

    /// Appends the row's text, speaker, source, attributes and impacts as a segment keeps them.
    ///
    /// # Errors
    /// Damage in the text blocks.
    fn detailed(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()>;

    /// Appends the row's summary as a segment keeps it: nothing where there is none.
    ///
    /// # Errors
    /// As [`RowStream::detailed`].
    fn distilled(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()>;
}

/// The stream of a partition that has none of its own: each row for itself, by the calls that
/// queries use. The twin of the faster ones.
#[derive(Debug)]
pub(crate) struct EachRow<'a, P: ?Sized> {
    partition: &'a P,
    /// Tags by number.
    tags: Vec<String>,
}

impl<'a, P: Partition + ?Sized> EachRow<'a, P> {
    pub(crate) fn new(partition: &'a P) -> Self {
        Self {
            partition,
            tags: Vec::new(),
        }
    }
}

impl<P: Partition + ?Sized> RowStream for EachRow<'_, P> {
    fn scope(&mut self, row: u32) -> Result<u32> {
        Ok(row)
    }

    fn scope_key(&self, number: u32) -> Result<Cow<'_, [u8]>> {
        self.partition.scope_key(number)
    }

    fn id(&mut self, row: u32, out: &mut String) -> Result<()> {
        out.push_str(&self.partition.id(row)?);
        Ok(())
    }

    fn tags(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()> {
        for tag in self.partition.tags(row)? {
            out.push(u32::try_from(self.tags.len()).map_err(too_many)?);
            self.tags.push(tag);
        }
        Ok(())
    }

    fn tag_name(&self, number: u32) -> Result<Cow<'_, str>> {
        Ok(Cow::Borrowed(&self.tags[number as usize]))
    }

    fn source_name(&self, value: u32) -> Result<Cow<'_, str>> {
        let name = self.partition.source_id(value - 1)?;
        Ok(name.expect("only a row with a source id has this value"))
    }

    fn detailed(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        encode_detailed(&Detailed::of(&self.partition.stored(row)?), out);
        Ok(())
    }

    fn distilled(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        encode_distilled(self.partition.stored(row)?.summary.as_deref(), out);
        Ok(())
    }
}

fn too_many(_: std::num::TryFromIntError) -> SegmentError {
    SegmentError::Limit("2^32 tags on the rows of an input; merge fewer rows at once".into())
}
