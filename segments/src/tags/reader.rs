//! How are the tags of a segment read?

use std::sync::OnceLock;

use roaring::RoaringBitmap;

use super::format::{END_BYTES, TRAILER_BYTES, trailer};
use super::row_tags::{RowTags, RowTagsWalk};
use crate::error::SegmentError;
use crate::format::Section;
use crate::format::bytes::index;
use crate::postings::u32_at;
use crate::terms::{FstDictionary, Keys};

type Result<T> = std::result::Result<T, SegmentError>;

/// Rows of one container of a roaring set.
const CONTAINER_ROWS: u32 = 1 << 16;
/// First two bytes of a roaring set with containers of runs; its containers - 1 follow.
const RUNS_COOKIE: u16 = 12347;
/// First four bytes of one without; its containers follow.
const NO_RUNS_COOKIE: u32 = 12346;

/// Names that are taken from the dictionary at a time.
const BATCH_NAMES: usize = 512;

/// Most tags of a segment whose names are remembered.
const KNOWN_MAX: u32 = 1 << 15;

/// The tags of one segment.
#[derive(Debug)]
pub(crate) struct Tags {
    dictionary: FstDictionary,
    /// Section `tags`, for errors about names.
    section: Section,
    sets: Section,
    /// Where the ends of the sets start in `sets`.
    ends: u64,
    rows: u32,
    row_tags: RowTags,
    /// Names that rows were asked for, by ordinal: a transducer takes half a microsecond to
    /// tell one. Empty where there are more than [`KNOWN_MAX`] tags.
    known: Box<[OnceLock<Box<str>>]>,
}

impl Tags {
    /// Opens sections `tags`, `tag_sets` and `row_tags` of a segment with `rows` rows.
    ///
    /// # Errors
    /// `Corrupt` where they do not fit each other or the segment.
    pub(crate) fn open(
        section: Section,
        sets: Section,
        row_tags: Section,
        rows: u32,
    ) -> Result<Self> {
        let (tags, at) = open_trailer(&section, |tags| [tags, 0, 0])?;
        let dictionary = FstDictionary::open(section.clone(), 0, at, tags)?;
        let (sets_tags, at) = open_trailer(&sets, |tags| [tags, rows, 0])?;
        // One end a tag and one for the untagged rows.
        let ends = at.checked_sub((u64::from(tags) + 1) * END_BYTES as u64);
        let Some(ends) = ends.filter(|_| sets_tags == tags) else {
            let message = format!("{sets_tags} sets in {at} bytes, expected {tags}");
            return Err(sets.corrupt(at, message));
        };
        let row_tags = RowTags::open(row_tags, rows, tags)?;
        Ok(Self {
            dictionary,
            section,
            sets,
            ends,
            rows,
            row_tags,
            known: room(tags),
        })
    }

    /// Opens `tags` and `row_tags` alone, for [`Tags::of_row`]: every other question is damage.
    ///
    /// # Errors
    /// As [`Tags::open`].
    pub(crate) fn open_by_row(section: Section, row_tags: Section, rows: u32) -> Result<Self> {
        let (tags, at) = open_trailer(&section, |tags| [tags, 0, 0])?;
        Ok(Self {
            dictionary: FstDictionary::open(section.clone(), 0, at, tags)?,
            sets: section.clone(),
            section,
            ends: 0,
            rows,
            row_tags: RowTags::open(row_tags, rows, tags)?,
            known: room(tags),
        })
    }

    /// Rows that carry exactly this tag; `None` where there are none.
    ///
    /// # Errors
    /// Damage in the dictionary or the set.
    pub(crate) fn rows_of(&self, tag: &str) -> Result<Option<RoaringBitmap>> {
        match self.dictionary.ordinal(tag.as_bytes())? {
            Some(ordinal) => self.set(ordinal).map(Some),
            None => Ok(None),
        }
    }

    /// Rows without any tag.
    ///
    /// # Errors
    /// Damage in the set.
    pub(crate) fn untagged(&self) -> Result<RoaringBitmap> {
        self.set(self.dictionary.len())
    }

    /// Tag names of a row, ascending.
    ///
    /// # Errors
    /// Damage, or a row outside the segment.
    pub(crate) fn of_row(&self, row: u32) -> Result<Vec<String>> {
        let ordinals = self.row_tags.ordinals(row)?;
        ordinals.into_iter().map(|tag| self.name(tag)).collect()
    }

    /// The ordinals of rows' tags, one row after the other.
    pub(crate) fn walk(&self) -> TagsWalk<'_> {
        TagsWalk(RowTagsWalk::new(&self.row_tags))
    }

    /// Name of a tag.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn name(&self, ordinal: u32) -> Result<String> {
        let known = self.known.get(index(ordinal));
        if let Some(name) = known.and_then(OnceLock::get) {
            return Ok(name.to_string());
        }
        let mut name = Vec::new();
        self.dictionary.key(ordinal, &mut name)?;
        let name = self.text(&name)?;
        if let Some(known) = known {
            known.get_or_init(|| name.as_str().into());
        }
        Ok(name)
    }

    /// All tag names, ascending.
    ///
    /// # Errors
    /// Damage in the dictionary.
    pub(crate) fn names(&self) -> Result<Vec<String>> {
        let mut names: Vec<String> = Vec::new();
        let mut batch = Keys::default();
        let mut next = 0;
        while next < self.dictionary.len() {
            let after = names.last().map(|name| name.as_bytes());
            self.dictionary
                .keys_after(after, next, BATCH_NAMES, &mut batch)?;
            for i in 0..batch.len() {
                names.push(self.text(batch.get(i))?);
                next += 1;
            }
            if batch.len() == 0 {
                let message = format!("{next} names found, {} expected", self.dictionary.len());
                return Err(self.section.corrupt(0, message));
            }
        }
        Ok(names)
    }

    /// Set `index`: of a tag, or after the last one of the untagged rows.
    fn set(&self, index: u32) -> Result<RoaringBitmap> {
        let start = match index.checked_sub(1) {
            Some(before) => self.end(before)?,
            None => 0,
        };
        let end = self.end(index)?;
        let last = index == self.dictionary.len();
        let len = end
            .checked_sub(start)
            .and_then(|len| usize::try_from(len).ok());
        let Some(len) = len.filter(|_| end <= self.ends && (!last || end == self.ends)) else {
            let message = format!("set {index} from {start} to {end} of {}", self.ends);
            return Err(self.sets.corrupt(self.ends, message));
        };
        let bytes = self.sets.get(start, len)?;
        if containers(&bytes).is_none_or(|count| count > self.rows.div_ceil(CONTAINER_ROWS)) {
            let message = format!("set {index} has more containers than its rows can fill");
            return Err(self.sets.corrupt(start, message));
        }
        let mut rest = &bytes[..];
        let set = RoaringBitmap::deserialize_from(&mut rest)
            .map_err(|error| self.sets.corrupt(start, format!("set {index}: {error}")))?;
        if !rest.is_empty() || set.max().is_some_and(|row| row >= self.rows) {
            let message = format!(
                "set {index} ends at row {:?} of {}, {} bytes left over",
                set.max(),
                self.rows,
                rest.len()
            );
            return Err(self.sets.corrupt(start, message));
        }
        Ok(set)
    }

    fn end(&self, index: u32) -> Result<u64> {
        let bytes = self
            .sets
            .get(self.ends + u64::from(index) * END_BYTES as u64, END_BYTES)?;
        Ok(u64::from(u32_at(&bytes, 0)) | u64::from(u32_at(&bytes, 4)) << 32)
    }

    fn text(&self, name: &[u8]) -> Result<String> {
        let text = std::str::from_utf8(name)
            .map_err(|_| self.section.corrupt(0, "a tag name is not UTF-8"))?;
        Ok(text.to_owned())
    }
}

/// Places for the names of so many tags.
fn room(tags: u32) -> Box<[OnceLock<Box<str>>]> {
    let places = if tags > KNOWN_MAX { 0 } else { tags };
    (0..places).map(|_| OnceLock::new()).collect()
}

/// How many containers a roaring set claims: it allocates for that many before it reads them.
/// `None` where the bytes start as no set does.
///
/// Source: <https://github.com/RoaringBitmap/RoaringFormatSpec>, "Cookie header".
fn containers(bytes: &[u8]) -> Option<u32> {
    let word = |at: usize| Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
    match word(0)? {
        NO_RUNS_COOKIE => word(4),
        cookie if cookie & 0xffff == u32::from(RUNS_COOKIE) => Some((cookie >> 16) + 1),
        _ => None,
    }
}

/// Reads the tags of one row after the other.
#[derive(Debug)]
pub(crate) struct TagsWalk<'a>(RowTagsWalk<'a>);

impl TagsWalk<'_> {
    /// Appends the ordinals of a row's tags, ascending.
    ///
    /// # Errors
    /// Damage, or a row outside the segment.
    pub(crate) fn push(&mut self, row: u32, out: &mut Vec<u32>) -> Result<()> {
        self.0.push(row, out)
    }
}

/// Number of tags and start of a trailer that holds what `numbers` makes of them.
fn open_trailer(section: &Section, numbers: impl Fn(u32) -> [u32; 3]) -> Result<(u32, u64)> {
    let at = section.len().saturating_sub(TRAILER_BYTES as u64);
    let found = section.get(at, TRAILER_BYTES)?;
    let tags = u32_at(&found, 0);
    let expected = trailer(numbers(tags), 0);
    if *found != expected {
        return Err(section.corrupt(at, format!("trailer is {found:?}, expected {expected:?}")));
    }
    Ok((tags, at))
}
