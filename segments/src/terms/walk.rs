//! Which terms follow a key, in order?

use super::blocks::Keys;
use super::format::BLOCK_TERMS;
use super::reader::{Block, Terms};
use crate::error::SegmentError;
use crate::postings::TermInfo;

type Result<T> = std::result::Result<T, SegmentError>;

/// A place among the terms of a segment, ascending; behind the last one at the end.
#[derive(Debug)]
pub(super) struct TermWalk<'a> {
    terms: &'a Terms,
    /// The block of the current term and its number; `None` at the end.
    block: Option<(u32, Block<'a>)>,
    /// Keys of the block after the current one.
    keys: Keys<'a>,
    /// Place of the current term in its block.
    index: u32,
    key: Vec<u8>,
}

impl<'a> TermWalk<'a> {
    /// Starts at the first term that is not below `from`.
    pub(super) fn at(terms: &'a Terms, from: &[u8]) -> Result<Self> {
        let mut walk = Self {
            terms,
            block: None,
            keys: Keys::new(&[]),
            index: 0,
            key: Vec::new(),
        };
        if terms.blocks() > 0 {
            walk.search(0, from)?;
        }
        Ok(walk)
    }

    /// The current term; `None` at the end.
    pub(super) fn term(&self) -> Option<&[u8]> {
        self.block.map(|_| &self.key[..])
    }

    /// What is known of the current term.
    pub(super) fn info(&self) -> Result<TermInfo> {
        let (_, block) = self.block.as_ref().expect("asked before the end");
        self.terms.info(block, self.index)
    }

    /// Moves to the next term. At the end it stays there.
    pub(super) fn advance(&mut self) -> Result<()> {
        let Some((number, block)) = self.block else {
            return Ok(());
        };
        if self.index + 1 < block.len() {
            self.index += 1;
        } else if number + 1 < self.terms.blocks() {
            self.enter(number + 1)?;
        } else {
            self.block = None;
            return Ok(());
        }
        let (shared, rest) = self.keys.step().ok_or_else(|| self.no_key())?;
        if *rest <= self.key[shared..] {
            let message = format!("term {} is not above the one before", self.ordinal());
            return Err(self.terms.corrupt(0, message));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(rest);
        Ok(())
    }

    /// Moves to the first term that is not below `to`, and at least to the next one.
    pub(super) fn skip_to(&mut self, to: &[u8]) -> Result<()> {
        self.advance()?;
        let Some((number, _)) = self.block else {
            return Ok(());
        };
        if *self.key < *to {
            self.search(number, to)?;
        }
        Ok(())
    }

    /// Moves to the first term that is not below `to`, which lies in block `from` or later.
    fn search(&mut self, from: u32, to: &[u8]) -> Result<()> {
        // The last block whose head is not above `to`; steps double, since most are near.
        let (mut low, mut step) = (from, 1);
        let mut head = Vec::new();
        while low + step < self.terms.blocks() && self.head_is_upto(low + step, to, &mut head)? {
            low += step;
            step = step.saturating_mul(2).min(self.terms.blocks());
        }
        let mut high = self.terms.blocks().min(low + step);
        while high - low > 1 {
            let middle = low.midpoint(high);
            if self.head_is_upto(middle, to, &mut head)? {
                low = middle;
            } else {
                high = middle;
            }
        }
        self.enter(low)?;
        self.key.clear();
        let read = self.keys.step_into(&mut self.key);
        read.ok_or_else(|| self.no_key())?;
        while self.block.is_some() && *self.key < *to {
            self.advance()?;
        }
        Ok(())
    }

    fn head_is_upto(&self, number: u32, to: &[u8], head: &mut Vec<u8>) -> Result<bool> {
        head.clear();
        let read = self.terms.block(number)?.keys().step_into(head);
        read.ok_or_else(|| self.terms.no_key(number * BLOCK_TERMS))?;
        Ok(**head <= *to)
    }

    /// Moves to a block, before its first key.
    fn enter(&mut self, number: u32) -> Result<()> {
        let block = self.terms.block(number)?;
        self.keys = block.keys();
        self.block = Some((number, block));
        self.index = 0;
        Ok(())
    }

    fn no_key(&self) -> SegmentError {
        self.terms.no_key(self.ordinal())
    }

    fn ordinal(&self) -> u32 {
        self.block
            .map_or(0, |(number, _)| number * BLOCK_TERMS + self.index)
    }
}
