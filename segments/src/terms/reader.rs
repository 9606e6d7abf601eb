//! How is a term of a segment found?

use std::borrow::Cow;
use std::ops::Range;

use super::blocks::Keys;
use super::format::{
    BASE_BYTES, BLOCK_TERMS, ENTRY_BYTES, Entry, START_BYTES, Shape, TRAILER_BYTES, hash_of,
    is_wide, place_of, short_bounds, u40,
};
use super::index::Bucket;
use super::walk::TermWalk;
use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::index as row_index;
use crate::postings::{ListPlace, PostingLists, PostingsCursor, TermInfo};
use crate::read::{Near, Postings, TermBounds, TermStream, TermVisit};

type Result<T> = std::result::Result<T, SegmentError>;

/// Terms that are looked up together.
const TOGETHER: usize = 8;

/// The terms of one segment and their postings.
#[derive(Debug)]
pub(crate) struct Terms {
    section: Section,
    /// The section, where it is not mapped: a look-up touches three places of it.
    copy: Option<Vec<u8>>,
    shape: Shape,
    /// Where each block starts, from the first block's start, and where the last one ends:
    /// every look-up asks, and a block has one place among thousands of bytes.
    starts: Box<[u32]>,
    /// See [`is_wide`].
    wide: bool,
    lists: PostingLists,
}

/// One block of terms.
#[derive(Debug, Clone, Copy)]
pub(super) struct Block<'a> {
    /// Offset in section `postings` of its first short list.
    base: u64,
    entries: &'a [[u8; ENTRY_BYTES]],
    keys: &'a [u8],
}

impl<'a> Block<'a> {
    /// Its keys, from the first on.
    pub(super) fn keys(&self) -> Keys<'a> {
        Keys::new(self.keys)
    }

    /// Terms in it: 16, or less in the last one.
    pub(super) fn len(&self) -> u32 {
        u32::try_from(self.entries.len()).expect("at most 16")
    }
}

impl Terms {
    /// Opens sections `terms`, `postings` and `postings_skip` of a segment with `rows` rows.
    /// Reads the dictionary's trailer and where its blocks start, no terms and no postings.
    ///
    /// # Errors
    /// `Corrupt` where the parts of the dictionary do not fit each other.
    pub(crate) fn open(
        section: Section,
        postings: Section,
        skip: Section,
        rows: u32,
    ) -> Result<Self> {
        let at = section.len().saturating_sub(TRAILER_BYTES as u64);
        let trailer = section.get(at, TRAILER_BYTES)?;
        let shape = trailer.first_chunk();
        let Some(shape) = shape.and_then(|trailer| Shape::of(trailer, section.len())) else {
            let message = format!(
                "trailer {trailer:?} does not fit a section of {} bytes",
                section.len()
            );
            return Err(section.corrupt(at, message));
        };
        drop(trailer);
        let starts = read_starts(&section, &shape)?;
        let copy = match section.is_mapped() {
            true => None,
            false => Some(section.all()?.into_owned()),
        };
        let lists = PostingLists::new(postings, skip, rows);
        Ok(Self {
            section,
            copy,
            shape,
            starts,
            wide: is_wide(row_index(rows)),
            lists,
        })
    }

    /// See [`crate::Partition::bring_near`].
    pub(crate) fn bring_near(&self, terms: &[&[u8]], near: Near) {
        let bucket_bytes = self.shape.bucket_bytes();
        for term in terms {
            let (bucket, tag) = place_of(hash_of(term, self.shape.seed), self.shape.buckets);
            if near == Near::Index {
                let at = u64::from(bucket) * bucket_bytes as u64;
                self.section.prefetch(at, bucket_bytes);
                continue;
            }
            let Ok(places) = self.bucket(self.whole(), bucket) else {
                continue;
            };
            for number in places.with_tag(tag) {
                let place = number as usize;
                if let Some([start, end]) = self.starts.get(place..place + 2) {
                    let at = self.shape.blocks_at() + u64::from(*start);
                    self.section.prefetch(at, (end - start) as usize);
                }
            }
        }
    }

    /// See [`crate::Partition::bring_postings_near`].
    pub(crate) fn bring_postings_near(&self, place: ListPlace) {
        self.lists.bring_near(place);
    }

    /// What is known of a term; `None` where no row of the segment holds it.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn get(&self, term: &[u8]) -> Result<Option<TermInfo>> {
        let found = self.find(term)?;
        found
            .map(|(block, index)| self.info(&block, index))
            .transpose()
    }

    /// As [`Terms::get`] for each of `terms`, appended to `infos` in their order.
    ///
    /// A look-up waits for one place of memory after the other. Those of several terms wait
    /// together: each step is done for all of them before the next.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn get_all(&self, terms: &[&[u8]], infos: &mut Vec<Option<TermInfo>>) -> Result<()> {
        let whole = self.whole();
        for terms in terms.chunks(TOGETHER) {
            let mut homes = [None; TOGETHER];
            for (home, term) in homes.iter_mut().zip(terms) {
                let (bucket, tag) = place_of(hash_of(term, self.shape.seed), self.shape.buckets);
                *home = Some((self.bucket(whole, bucket)?, tag));
            }
            let mut blocks = [None; TOGETHER];
            for (block, home) in blocks.iter_mut().zip(&homes) {
                let number = home.and_then(|(bucket, tag)| bucket.with_tag(tag).next());
                *block = number
                    .map(|number| self.block_of(whole, number))
                    .transpose()?;
            }
            let mut found = [None; TOGETHER];
            for ((found, block), term) in found.iter_mut().zip(&blocks).zip(terms) {
                let first = block.and_then(|block| {
                    let index = block.keys().find(block.len(), term)??;
                    Some((block, index))
                });
                *found = match first {
                    Some(first) => Some(first),
                    // Another place of the bucket, another bucket, none, or damage.
                    None => self.find(term)?,
                };
            }
            for found in &found[..terms.len()] {
                let info = found.map(|(block, index)| self.info(&block, index));
                infos.push(info.transpose()?);
            }
        }
        Ok(())
    }

    /// The block that holds a term, and its place there.
    fn find(&self, term: &[u8]) -> Result<Option<(Block<'_>, u32)>> {
        let shape = &self.shape;
        let (home, tag) = place_of(hash_of(term, shape.seed), shape.buckets);
        let whole = self.whole();
        let mut bucket = home;
        // A place is free somewhere, unless the bytes lie.
        for _ in 0..shape.buckets {
            let places = self.bucket(whole, bucket)?;
            for number in places.with_tag(tag) {
                let block = self.block_of(whole, number)?;
                match block.keys().find(block.len(), term) {
                    Some(Some(index)) => return Ok(Some((block, index))),
                    Some(None) => {}
                    None => return Err(self.no_key(number * BLOCK_TERMS)),
                }
            }
            if places.ends_search() {
                return Ok(None);
            }
            bucket = (bucket + 1) % shape.buckets;
        }
        Err(self.corrupt(0, "the hash index has no free place"))
    }

    #[inline]
    fn bucket<'a>(&'a self, whole: Option<&'a [u8]>, number: u32) -> Result<Bucket<'a>> {
        let bytes = self.shape.bucket_bytes();
        let at = u64::from(number) * bytes as u64;
        let bytes = self.bytes(whole, at, bytes)?;
        Ok(Bucket::new(bytes, self.shape.number_bytes()))
    }

    /// The postings in a row range of a term that [`Terms::get`] gave; `None` where no row of
    /// the range holds it.
    ///
    /// # Errors
    /// Damage in the postings.
    pub(crate) fn postings_of(
        &self,
        info: &TermInfo,
        rows: Range<u32>,
    ) -> Result<Option<PostingsCursor<'_>>> {
        PostingsCursor::open(&self.lists, info, rows)
    }

    /// Calls `visit` with the terms from `from` on, ascending.
    ///
    /// # Errors
    /// Damage in the dictionary; those of `visit`.
    pub(crate) fn walk(
        &self,
        from: &[u8],
        visit: &mut dyn FnMut(&[u8], TermInfo) -> Result<TermVisit>,
    ) -> Result<()> {
        let mut walk = TermWalk::at(self, from)?;
        while let Some(term) = walk.term() {
            match visit(term, walk.info()?)? {
                TermVisit::Continue => walk.advance()?,
                TermVisit::SkipTo(to) => walk.skip_to(&to)?,
                TermVisit::Stop => break,
            }
        }
        Ok(())
    }

    /// All terms with their postings, ascending.
    pub(crate) fn stream(&self) -> TermsStream<'_> {
        TermsStream {
            terms: self,
            walk: None,
        }
    }

    /// The bounds that a term's list states for its blocks, the tail included; none for a
    /// list without blocks.
    ///
    /// # Errors
    /// Damage in the skip data.
    pub(crate) fn block_bounds(&self, info: &TermInfo) -> Result<Vec<TermBounds>> {
        self.lists.block_bounds(info)
    }

    /// Block `index`, which is below the count of blocks in a sound file.
    pub(super) fn block(&self, index: u32) -> Result<Block<'_>> {
        self.block_of(self.whole(), index)
    }

    fn block_of<'a>(&'a self, whole: Option<&'a [u8]>, index: u32) -> Result<Block<'a>> {
        let place = index as usize;
        let Some([start, end]) = self.starts.get(place..place + 2) else {
            return Err(self.corrupt(0, format!("block {index} of {}", self.blocks())));
        };
        let at = self.shape.blocks_at() + u64::from(*start);
        let bytes = self.bytes(whole, at, (end - start) as usize)?;
        let terms = self.shape.terms_of(index) as usize;
        let (base, rest) = bytes.split_first_chunk().expect("the length was checked");
        let (entries, keys) = rest.split_at(terms * ENTRY_BYTES);
        Ok(Block {
            base: u40(base),
            entries: entries.as_chunks().0,
            keys,
        })
    }

    /// Blocks of terms.
    pub(super) fn blocks(&self) -> u32 {
        self.shape.blocks()
    }

    /// What the entry at `index` of a block says. `index` is below [`Block::len`].
    pub(super) fn info(&self, block: &Block<'_>, index: u32) -> Result<TermInfo> {
        let (before, rest) = block.entries.split_at(index as usize);
        let entry = rest
            .first()
            .and_then(|entry| Entry::decode(entry, self.wide));
        let Some(entry) = entry else {
            return Err(self.corrupt(self.shape.blocks_at(), format!("entry {rest:?} is none")));
        };
        Ok(match entry {
            Entry::One { row, freq, length } => TermInfo {
                df: 1,
                bounds: TermBounds::one(freq, u32::from(length)),
                place: ListPlace::One { row, freq },
            },
            Entry::Short { df, bytes, bounds } => {
                let skipped: u64 = before.iter().map(Entry::short_bytes).sum();
                TermInfo {
                    df,
                    bounds: short_bounds(bounds),
                    place: ListPlace::Short {
                        offset: block.base + skipped,
                        bytes,
                    },
                }
            }
            Entry::Long { skip_offset } => {
                let (df, bounds) = self.lists.read_header(skip_offset)?;
                TermInfo {
                    df,
                    bounds,
                    place: ListPlace::Long { skip_offset },
                }
            }
        })
    }

    /// The section, where all of it is at hand and verified.
    #[inline]
    fn whole(&self) -> Option<&[u8]> {
        match &self.copy {
            Some(copy) => Some(copy),
            None => self.section.if_verified(),
        }
    }

    /// `len` bytes at `at` of the section, of which `whole` may be all.
    #[inline]
    fn bytes<'a>(&'a self, whole: Option<&'a [u8]>, at: u64, len: usize) -> Result<&'a [u8]> {
        if let Some(whole) = whole {
            let range = usize::try_from(at)
                .ok()
                .map(|at| at..at.saturating_add(len));
            let bytes = range.and_then(|range| whole.get(range));
            return bytes.ok_or_else(|| self.corrupt(at, format!("{len} bytes past the end")));
        }
        match self.section.get(at, len)? {
            Cow::Borrowed(bytes) => Ok(bytes),
            Cow::Owned(_) => unreachable!("a section that is not mapped was copied"),
        }
    }

    /// No key where the count of terms says that one is.
    pub(super) fn no_key(&self, ordinal: u32) -> SegmentError {
        let message = format!("no key with number {ordinal} of {}", self.shape.terms);
        self.corrupt(self.shape.blocks_at(), message)
    }

    pub(super) fn corrupt(&self, at: u64, message: impl Into<String>) -> SegmentError {
        self.section.corrupt(at, message)
    }
}

/// Where the blocks start and the last one ends, checked: each has room for its entries.
fn read_starts(section: &Section, shape: &Shape) -> Result<Box<[u32]>> {
    let count = shape.blocks() as usize + 1;
    let bytes = section.get(shape.starts_at(), count * START_BYTES)?;
    let (starts, _) = bytes.as_chunks();
    let starts: Box<[u32]> = starts
        .iter()
        .map(|start| u32::from_le_bytes(*start))
        .collect();
    for (index, block) in (0..).zip(starts.windows(2)) {
        let least = BASE_BYTES + shape.terms_of(index) as usize * ENTRY_BYTES;
        let bytes = block[1].checked_sub(block[0]);
        if block[1] > shape.blocks_bytes || bytes.is_none_or(|bytes| (bytes as usize) < least) {
            let at = shape.starts_at() + u64::from(index) * START_BYTES as u64;
            let message = format!("block {index} from {} to {}", block[0], block[1]);
            return Err(section.corrupt(at, message));
        }
    }
    Ok(starts)
}

/// All terms of a segment, ascending.
#[derive(Debug)]
pub(crate) struct TermsStream<'a> {
    terms: &'a Terms,
    /// `None` before the first term.
    walk: Option<TermWalk<'a>>,
}

impl TermStream for TermsStream<'_> {
    fn next_term(&mut self) -> Result<Option<&[u8]>> {
        match &mut self.walk {
            Some(walk) => walk.advance()?,
            None => self.walk = Some(TermWalk::at(self.terms, &[])?),
        }
        Ok(self.walk.as_ref().and_then(TermWalk::term))
    }

    fn read_postings(&mut self, rows: &mut Vec<u32>, freqs: &mut Vec<u32>) -> Result<()> {
        rows.clear();
        freqs.clear();
        let walk = self.walk.as_ref();
        let info = walk
            .expect("a term was asked for before its postings")
            .info()?;
        if let Some(mut cursor) = self.terms.postings_of(&info, 0..u32::MAX)? {
            // Bounded by the list's bytes: opening it read its skip data.
            let count = cursor.count() as usize;
            rows.reserve(count);
            freqs.reserve(count);
            cursor.read_until(u32::MAX, rows, freqs)?;
        }
        Ok(())
    }
}
