//! How does a merge read the rows of a segment? Blocks and groups are decoded once.

use std::borrow::Cow;

use super::{InOrder, Result, Segment};
use crate::error::SegmentError;
use crate::ids::NameWalk;
use crate::stream::RowStream;
use crate::tags::{Tags, TagsWalk};
use crate::text::{TextWalk, check_detailed, check_distilled};

/// The rows of a segment.
#[derive(Debug)]
pub(super) struct SegmentRows<'a> {
    segment: &'a Segment,
    /// The scope of the row that was asked for last.
    scope: usize,
    ids: NameWalk<'a>,
    tags: &'a Tags,
    row_tags: TagsWalk<'a>,
    detailed: TextWalk<'a>,
    distilled: Option<TextWalk<'a>>,
    /// Read ahead as long as this lives.
    _in_order: InOrder<'a>,
}

impl<'a> SegmentRows<'a> {
    pub(super) fn new(segment: &'a Segment) -> Result<Self> {
        let (tags, texts) = (segment.tags()?, segment.texts()?);
        Ok(Self {
            segment,
            scope: 0,
            ids: segment.ids.walk(),
            tags,
            row_tags: tags.walk(),
            detailed: TextWalk::new(&texts.detailed),
            distilled: texts.distilled.as_ref().map(TextWalk::new),
            _in_order: segment.read_in_order(),
        })
    }
}

impl RowStream for SegmentRows<'_> {
    fn scope(&mut self, row: u32) -> Result<u32> {
        let scopes = &self.segment.scopes;
        self.segment.check_row(row)?;
        if !scopes.rows_of(self.scope).contains(&row) {
            self.scope = scopes.of_row(row);
        }
        Ok(u32::try_from(self.scope).expect("a scope has a row"))
    }

    fn scope_key(&self, number: u32) -> Result<Cow<'_, [u8]>> {
        Ok(Cow::Borrowed(self.segment.scopes.key(number as usize)))
    }

    fn id(&mut self, row: u32, out: &mut String) -> Result<()> {
        self.ids.push(row, out)
    }

    fn tags(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()> {
        self.row_tags.push(row, out)
    }

    fn tag_name(&self, number: u32) -> Result<Cow<'_, str>> {
        self.tags.name(number).map(Cow::Owned)
    }

    fn source_name(&self, value: u32) -> Result<Cow<'_, str>> {
        match (&self.segment.source_ids, value.checked_sub(1)) {
            (Some(names), Some(at)) => names.get(at).map(Cow::Owned),
            _ => Err(SegmentError::corrupt(
                &*self.segment.loaded.name,
                "source_ids",
                0,
                format!("no name for source id {value}"),
            )),
        }
    }

    fn detailed(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        self.segment.check_row(row)?;
        self.detailed.push(row, check_detailed, out)
    }

    fn distilled(&mut self, row: u32, out: &mut Vec<u8>) -> Result<()> {
        self.segment.check_row(row)?;
        match &mut self.distilled {
            Some(distilled) => distilled.push(row, check_distilled, out),
            None => Ok(()),
        }
    }
}
