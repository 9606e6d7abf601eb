//! How does a flush read the rows of a memtable? From where they lie, without a copy of them.

use std::borrow::Cow;

use super::{Memtable, SCOPE};
use crate::error::SegmentError;
use crate::stream::RowStream;
use crate::text::{Detailed, encode_detailed, encode_distilled};

type Result<T> = std::result::Result<T, SegmentError>;

/// The rows of a memtable.
#[derive(Debug)]
pub(super) struct MemtableRows<'a>(pub(super) &'a Memtable);

impl RowStream for MemtableRows<'_> {
    fn scope(&mut self, row: u32) -> Result<u32> {
        Ok(self.0.column(row, SCOPE))
    }

    fn scope_key(&self, number: u32) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(&self.0.scope(number).key))
    }

    fn id(&mut self, row: u32, out: &mut String) -> Result<()> {
        out.push_str(&self.0.body(row).id);
        Ok(())
    }

    fn tags(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()> {
        out.extend_from_slice(&self.0.body(row).tags);
        Ok(())
    }

    fn tag_name(&self, number: u32) -> Result<Cow<'_, str>> {
        Ok(Cow::Borrowed(&self.0.tag(number).name))
    }

    fn source_name(&self, value: u32) -> Result<Cow<'_, str>> {
        let name = self.0.body(value - 1).source_id.as_deref();
        Ok(Cow::Borrowed(
            name.expect("only a row with a source id has this value"),
        ))
    }

    fn detailed(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        let body = self.0.body(row);
        let row = Detailed {
            text: &body.text,
            speaker: body.speaker.as_deref(),
            source: body.source.as_deref(),
            attributes: &body.attributes,
            impacts: &body.impacts,
        };
        encode_detailed(&row, out);
        Ok(())
    }

    fn distilled(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        encode_distilled(self.0.body(row).summary.as_deref(), out);
        Ok(())
    }
}
