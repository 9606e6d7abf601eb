//! How does a reader see a section's bytes, and when are they checked?

use std::borrow::Cow;
use std::fmt;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use chronolith_vfs::planted::{self, Bug};
use chronolith_vfs::{Access, FileBytes, VfsFile};

use super::{BLOCK_BYTES, SECTION_ALIGN};
use crate::error::SegmentError;

type Result<T> = std::result::Result<T, SegmentError>;

/// Bytes that the processor fetches at once.
const CACHE_LINE: usize = 64;

/// How a segment's bytes reach the reader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ReadMode {
    /// Through a mapping; each block is verified once, before first use. A fault of the disk
    /// under a live mapping is a signal of the operating system and not an error.
    #[default]
    Mapped,
    /// Through positioned reads; each block is verified whenever it is read.
    Positioned,
}

/// Who a file is: what every checksum in it starts from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    /// The store's id.
    pub(crate) store_id: [u8; 16],
    /// The file's number in the store.
    pub(crate) file_number: u64,
}

impl FileIdentity {
    /// The state of a crc32 from which the blocks of one section go on.
    pub(crate) fn seed(&self, kind: u16) -> crc32fast::Hasher {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(&self.store_id);
        hasher.update(&self.file_number.to_le_bytes());
        hasher.update(&kind.to_le_bytes());
        hasher
    }

    /// Checksum of one block of one section, from the section's `seed`.
    pub(crate) fn block_crc(seed: &crc32fast::Hasher, block: u64, bytes: &[u8]) -> u32 {
        let mut hasher = seed.clone();
        hasher.update(&block.to_le_bytes());
        hasher.update(bytes);
        hasher.finalize()
    }
}

/// Where a file's bytes come from.
#[derive(Debug, Clone)]
pub(crate) enum Source {
    /// All of the file.
    Mapped(FileBytes),
    /// An open file.
    Positioned(Arc<dyn VfsFile>),
}

/// Place and checksums of a section in its file.
#[derive(Debug, Clone)]
pub(crate) struct SectionPlace {
    /// Number of the kind.
    pub(crate) kind: u16,
    /// Offset in the file.
    pub(crate) offset: u64,
    /// Bytes.
    pub(crate) len: u64,
    /// Of each block, in order.
    pub(crate) checksums: Arc<[u32]>,
}

/// A verified view of one section. Cheap to clone; clones share what was verified.
#[derive(Clone)]
pub struct Section(Arc<Inner>);

struct Inner {
    file: Arc<str>,
    name: &'static str,
    source: Source,
    place: SectionPlace,
    seed: crc32fast::Hasher,
    /// One bit a block of a mapping: set once its checksum was seen to match.
    verified: Box<[AtomicU64]>,
    /// Blocks of a mapping that were not yet verified.
    unverified: AtomicU64,
    /// The block that positioned reads verified last: neighbours are asked for in a row.
    last_block: Mutex<Option<(u64, Arc<[u8]>)>>,
}

impl Section {
    /// A section of an open file. `place` lies inside the file: the footer's reader checked.
    pub(crate) fn new(
        file: Arc<str>,
        name: &'static str,
        source: Source,
        identity: &FileIdentity,
        place: SectionPlace,
    ) -> Self {
        let words = place.checksums.len().div_ceil(64);
        Self(Arc::new(Inner {
            file,
            name,
            source,
            seed: identity.seed(place.kind),
            unverified: AtomicU64::new(place.checksums.len() as u64),
            place,
            verified: (0..words).map(|_| AtomicU64::new(0)).collect(),
            last_block: Mutex::new(None),
        }))
    }

    /// A section that exists in memory alone and counts as verified: for tests of one section.
    pub fn in_memory(name: &'static str, bytes: Vec<u8>) -> Self {
        let len = bytes.len() as u64;
        let blocks = bytes.len().div_ceil(BLOCK_BYTES);
        let identity = FileIdentity {
            store_id: [0; 16],
            file_number: 0,
        };
        let checksums = vec![0; blocks].into();
        let place = SectionPlace {
            kind: 0,
            offset: 0,
            len,
            checksums,
        };
        let source = Source::Mapped(FileBytes::new(bytes));
        let section = Self::new("memory".into(), name, source, &identity, place);
        for word in &section.0.verified {
            word.store(u64::MAX, Ordering::Relaxed);
        }
        section.0.unverified.store(0, Ordering::Relaxed);
        section
    }

    /// Bytes of the section.
    pub fn len(&self) -> u64 {
        self.0.place.len
    }

    /// True for a section without bytes.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Name of the section, as in errors.
    pub fn name(&self) -> &'static str {
        self.0.name
    }

    /// True where [`Section::get`] lends the bytes and copies nothing.
    pub(crate) fn is_mapped(&self) -> bool {
        matches!(self.0.source, Source::Mapped(_))
    }

    /// The whole section, if it is mapped and every block of it was verified before.
    #[inline]
    pub(crate) fn if_verified(&self) -> Option<&[u8]> {
        match &self.0.source {
            Source::Mapped(bytes) if self.0.unverified.load(Ordering::Relaxed) == 0 => {
                Some(&bytes[self.file_range(&(0..self.len()))])
            }
            _ => None,
        }
    }

    /// Checksum blocks of the section.
    pub fn blocks(&self) -> u64 {
        self.0.place.checksums.len() as u64
    }

    /// `len` bytes at `offset` of the section, their blocks verified.
    ///
    /// # Errors
    /// `Corrupt` outside the section or where a checksum does not match; the system's error.
    #[inline]
    pub fn get(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>> {
        match self.verified(offset, len) {
            Some(bytes) => Ok(Cow::Borrowed(bytes)),
            None => self.get_any(offset, len),
        }
    }

    /// The usual case of [`Section::get`]: a mapping, and one or two blocks that were verified
    /// before.
    #[inline]
    fn verified(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let Source::Mapped(bytes) = &self.0.source else {
            return None;
        };
        let end = offset.checked_add(len as u64)?;
        if end > self.len() || len == 0 {
            return None;
        }
        let (first, last) = (offset / BLOCK_BYTES as u64, (end - 1) / BLOCK_BYTES as u64);
        let is_seen = |block: u64| {
            let seen = self.0.verified[index(block / 64)].load(Ordering::Relaxed);
            seen & (1 << (block % 64)) != 0
        };
        if last > first + 1 || !is_seen(first) || !is_seen(last) {
            return None;
        }
        let at = index(self.0.place.offset + offset);
        bytes.get(at..at + len)
    }

    fn get_any(&self, offset: u64, len: usize) -> Result<Cow<'_, [u8]>> {
        let end = offset
            .checked_add(len as u64)
            .filter(|end| *end <= self.len());
        let Some(end) = end else {
            let message = format!("{len} bytes asked for in a section of {}", self.len());
            return Err(self.corrupt(offset.min(self.len()), message));
        };
        match &self.0.source {
            Source::Mapped(bytes) => self.mapped(bytes, offset..end).map(Cow::Borrowed),
            Source::Positioned(file) => self.positioned(&**file, offset..end).map(Cow::Owned),
        }
    }

    /// Asks the processor for `len` bytes at `offset`, which will be read soon; does not wait,
    /// does not verify.
    #[inline]
    pub(crate) fn prefetch(&self, offset: u64, len: usize) {
        if let Source::Mapped(bytes) = &self.0.source {
            let at = index(self.0.place.offset.saturating_add(offset));
            for line in (0..len).step_by(CACHE_LINE) {
                bytes.prefetch(at.saturating_add(line));
            }
        }
    }

    /// Says in which order the bytes of the whole file will be read.
    pub(crate) fn advise(&self, access: Access) {
        if let Source::Mapped(bytes) = &self.0.source {
            bytes.advise(access);
        }
    }

    /// Eight bytes at `offset` of the section as a number, their blocks verified.
    ///
    /// # Errors
    /// As [`Section::get`].
    #[inline]
    pub(crate) fn word(&self, offset: u64) -> Result<u64> {
        if let Some(word) = self.verified_word(offset) {
            return Ok(word);
        }
        let bytes = self.get(offset, 8)?;
        let word = bytes.first_chunk().expect("eight bytes were asked for");
        Ok(u64::from_le_bytes(*word))
    }

    /// The usual case of [`Section::word`]: a mapping, and one block that was verified before.
    #[inline]
    fn verified_word(&self, offset: u64) -> Option<u64> {
        let Source::Mapped(bytes) = &self.0.source else {
            return None;
        };
        let last = offset.checked_add(7).filter(|last| *last < self.len())?;
        let block = offset / BLOCK_BYTES as u64;
        let seen = self.0.verified[index(block / 64)].load(Ordering::Relaxed);
        if seen & (1 << (block % 64)) == 0 || last / BLOCK_BYTES as u64 != block {
            return None;
        }
        let at = index(self.0.place.offset + offset);
        bytes[at..]
            .first_chunk()
            .map(|word| u64::from_le_bytes(*word))
    }

    /// The whole section, verified.
    ///
    /// # Errors
    /// As [`Section::get`].
    pub fn all(&self) -> Result<Cow<'_, [u8]>> {
        let len = usize::try_from(self.len()).map_err(|_| {
            SegmentError::Limit(format!("section {} does not fit memory", self.0.name))
        })?;
        self.get(0, len)
    }

    /// Damage at `offset` of this section.
    pub fn corrupt(&self, offset: u64, message: impl Into<String>) -> SegmentError {
        let offset = self.0.place.offset.saturating_add(offset);
        SegmentError::corrupt(&*self.0.file, self.0.name, offset, message)
    }

    /// Where the section starts in its file, and where it ends.
    pub(crate) fn file_place(&self) -> Range<u64> {
        let start = self.0.place.offset;
        start..start + self.len()
    }

    /// The bytes between `from`, an offset in the file, and the section: no checksum covers
    /// them. At most [`SECTION_ALIGN`].
    ///
    /// # Errors
    /// `Corrupt` where they are more; the system's error.
    pub(crate) fn gap_before(&self, from: u64) -> Result<Vec<u8>> {
        let start = self.0.place.offset;
        let gap = start.checked_sub(from).filter(|gap| *gap <= SECTION_ALIGN);
        let Some(gap) = gap else {
            return Err(self.corrupt(0, format!("the section before it ends at {from}")));
        };
        match &self.0.source {
            Source::Mapped(bytes) => Ok(bytes[index(from)..index(start)].to_vec()),
            Source::Positioned(file) => {
                let mut bytes = vec![0; index(gap)];
                file.read_exact_at(&mut bytes, from)
                    .map_err(|e| SegmentError::io("read", &*self.0.file, e))?;
                Ok(bytes)
            }
        }
    }

    /// Verifies one block anew, whatever was verified before: for a scrub.
    pub(crate) fn scrub_block(&self, block: u64) -> Result<()> {
        let range = self.block_range(block);
        match &self.0.source {
            Source::Mapped(bytes) => self.check(block, &bytes[self.file_range(&range)]),
            Source::Positioned(file) => self.read_block(&**file, block).map(|_| ()),
        }
    }

    fn mapped<'a>(&'a self, bytes: &'a FileBytes, range: Range<u64>) -> Result<&'a [u8]> {
        if range.is_empty() {
            return Ok(&[]);
        }
        let last = (range.end - 1) / BLOCK_BYTES as u64;
        let mut is_asked_for = false;
        for block in range.start / BLOCK_BYTES as u64..=last {
            let (word, bit) = (index(block / 64), 1_u64 << (block % 64));
            // Relaxed: the bytes never change, the bit alone is what threads share.
            if self.0.verified[word].load(Ordering::Relaxed) & bit == 0 {
                if !std::mem::replace(&mut is_asked_for, true) {
                    // A checksum takes whole blocks: at once, and not page after page.
                    let upto = self.block_range(last).end;
                    bytes.will_need(self.file_range(&(self.block_range(block).start..upto)));
                }
                self.check(block, &bytes[self.file_range(&self.block_range(block))])?;
                let seen = match planted::is_on(Bug::OneBlockForAll) {
                    true => u64::MAX,
                    false => bit,
                };
                let before = self.0.verified[word].fetch_or(seen, Ordering::Relaxed);
                if before & bit == 0 {
                    self.0.unverified.fetch_sub(1, Ordering::Relaxed);
                }
            }
        }
        Ok(&bytes[self.file_range(&range)])
    }

    fn positioned(&self, file: &dyn VfsFile, range: Range<u64>) -> Result<Vec<u8>> {
        let mut out = Vec::with_capacity(index(range.end - range.start));
        let mut at = range.start;
        while at < range.end {
            let block = at / BLOCK_BYTES as u64;
            let block_range = self.block_range(block);
            let bytes = self.cached_block(file, block)?;
            let upto = block_range.end.min(range.end);
            out.extend_from_slice(
                &bytes[index(at - block_range.start)..index(upto - block_range.start)],
            );
            at = upto;
        }
        Ok(out)
    }

    fn cached_block(&self, file: &dyn VfsFile, block: u64) -> Result<Arc<[u8]>> {
        let lock = || {
            self.0
                .last_block
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
        };
        if let Some((cached, bytes)) = &*lock()
            && *cached == block
        {
            return Ok(Arc::clone(bytes));
        }
        let bytes: Arc<[u8]> = self.read_block(file, block)?.into();
        *lock() = Some((block, Arc::clone(&bytes)));
        Ok(bytes)
    }

    fn read_block(&self, file: &dyn VfsFile, block: u64) -> Result<Vec<u8>> {
        let range = self.block_range(block);
        let mut bytes = vec![0; index(range.end - range.start)];
        let offset = self.0.place.offset + range.start;
        file.read_exact_at(&mut bytes, offset)
            .map_err(|e| SegmentError::io("read", &*self.0.file, e))?;
        if !planted::is_on(Bug::BlockUnchecked) {
            self.check(block, &bytes)?;
        }
        Ok(bytes)
    }

    fn check(&self, block: u64, bytes: &[u8]) -> Result<()> {
        let expected = self.0.place.checksums[index(block)];
        let found = FileIdentity::block_crc(&self.0.seed, block, bytes);
        if found == expected {
            return Ok(());
        }
        let message = format!("checksum of block {block} is {found:08x}, expected {expected:08x}");
        Err(self.corrupt(block * BLOCK_BYTES as u64, message))
    }

    /// Bytes of a block inside the section.
    fn block_range(&self, block: u64) -> Range<u64> {
        let start = block * BLOCK_BYTES as u64;
        start..(start + BLOCK_BYTES as u64).min(self.len())
    }

    fn file_range(&self, range: &Range<u64>) -> Range<usize> {
        let base = self.0.place.offset;
        index(base + range.start)..index(base + range.end)
    }
}

impl fmt::Debug for Section {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Section({}, {} bytes of {})",
            self.0.name,
            self.len(),
            self.0.file
        )
    }
}

/// A position inside bytes that are in memory already or that a checked length bounds.
#[expect(
    clippy::cast_possible_truncation,
    reason = "bounded by a file that was checked to fit"
)]
fn index(position: u64) -> usize {
    position as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    fn section(mut bytes: Vec<u8>, flip: Option<usize>) -> Section {
        let identity = FileIdentity {
            store_id: [7; 16],
            file_number: 3,
        };
        let seed = identity.seed(5);
        let checksums = bytes
            .chunks(BLOCK_BYTES)
            .enumerate()
            .map(|(i, block)| FileIdentity::block_crc(&seed, i as u64, block))
            .collect();
        let place = SectionPlace {
            kind: 5,
            offset: 0,
            len: bytes.len() as u64,
            checksums,
        };
        if let Some(at) = flip {
            bytes[at] ^= 1;
        }
        let source = Source::Mapped(FileBytes::new(bytes));
        Section::new("x.seg".into(), "ids", source, &identity, place)
    }

    #[test]
    fn only_the_damaged_block_is_refused() {
        let bytes: Vec<u8> = (0..3 * BLOCK_BYTES + 5)
            .map(|i| i.to_le_bytes()[0])
            .collect();
        let at = BLOCK_BYTES + 9;
        let damaged = section(bytes.clone(), Some(at));
        assert_eq!(
            &*damaged.get(0, BLOCK_BYTES).expect("intact"),
            &bytes[..BLOCK_BYTES]
        );
        assert!(damaged.get(BLOCK_BYTES as u64 - 1, 2).is_err());
        assert_eq!(
            damaged
                .get(2 * BLOCK_BYTES as u64, 9)
                .expect("intact")
                .len(),
            9
        );
        assert!(damaged.all().is_err());
        assert_eq!(
            &*section(bytes.clone(), None).all().expect("intact"),
            &bytes[..]
        );
    }

    #[test]
    fn reads_outside_are_damage() {
        let section = Section::in_memory("ids", vec![1, 2, 3]);
        assert_eq!(&*section.get(1, 2).expect("inside"), &[2, 3]);
        assert!(section.get(3, 0).expect("empty").is_empty());
        for (offset, len) in [(0, 4), (4, 0), (u64::MAX, 1), (2, usize::MAX)] {
            assert!(section.get(offset, len).is_err(), "{offset} {len}");
        }
    }
}
