//! Which number does a key have, and which key a number?
//!
//! [`Dictionary`] hides how keys are found. Today that is an FST: compact, ordered, about
//! 0.3 µs a look-up in ten thousand keys. A key's ordinal is its place among all keys,
//! ascending by bytes.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use tantivy_fst::raw::{Builder, Fst};
use tantivy_fst::{IntoStreamer, Streamer};

use crate::error::SegmentError;
use crate::format::Section;

type Result<T> = std::result::Result<T, SegmentError>;

/// Longest key of any dictionary, bytes: an end to walks over damaged bytes.
const KEY_BYTES_MAX: usize = 1024;

/// Keys of a segment, numbered from 0 in ascending order of their bytes.
pub(crate) trait Dictionary: Send + Sync + fmt::Debug {
    /// Number of keys.
    fn len(&self) -> u32;

    /// The key's ordinal; `None` where it is not held.
    ///
    /// # Errors
    /// Damage in the dictionary.
    fn ordinal(&self, key: &[u8]) -> Result<Option<u32>>;

    /// Replaces `key` by the key with this ordinal, which is below [`Dictionary::len`].
    ///
    /// # Errors
    /// Damage in the dictionary, or an ordinal that it does not hold.
    fn key(&self, ordinal: u32, key: &mut Vec<u8>) -> Result<()>;

    /// Replaces `keys` by the next `keys_max` keys after `after`, or the first ones. The keys
    /// have the ordinals from `first` on.
    ///
    /// # Errors
    /// Damage in the dictionary, or another ordinal.
    fn keys_after(
        &self,
        after: Option<&[u8]>,
        first: u32,
        keys_max: usize,
        keys: &mut Keys,
    ) -> Result<()>;
}

/// Keys one after the other in one allocation.
#[derive(Debug, Default)]
pub(crate) struct Keys {
    bytes: Vec<u8>,
    ends: Vec<usize>,
}

impl Keys {
    /// Number of keys.
    pub(crate) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The key at `index`, which is below [`Keys::len`].
    pub(crate) fn get(&self, index: usize) -> &[u8] {
        let start = index.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.bytes[start..self.ends[index]]
    }

    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, key: &[u8]) {
        self.bytes.extend_from_slice(key);
        self.ends.push(self.bytes.len());
    }
}

/// Builds the bytes of an [`FstDictionary`] in memory.
pub(crate) struct FstBuilder {
    fst: Builder<Vec<u8>>,
    keys: u32,
}

impl FstBuilder {
    pub(crate) fn new() -> Self {
        Self {
            fst: Builder::memory(),
            keys: 0,
        }
    }

    /// Adds the next key, which is above all before it. Returns its ordinal.
    pub(crate) fn push(&mut self, key: &[u8]) -> Result<u32> {
        let ordinal = self.keys;
        assert!(
            key.len() <= KEY_BYTES_MAX,
            "keys are bounded by the record's limits"
        );
        self.keys = ordinal
            .checked_add(1)
            .ok_or_else(|| SegmentError::Limit("2^32 keys in a dictionary".into()))?;
        self.fst
            .insert(key, u64::from(ordinal))
            .expect("keys ascend, and memory takes every write");
        Ok(ordinal)
    }

    pub(crate) fn keys(&self) -> u32 {
        self.keys
    }

    pub(crate) fn finish(self) -> Vec<u8> {
        self.fst.into_inner().expect("memory takes every write")
    }
}

impl fmt::Debug for FstBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FstBuilder({} keys)", self.keys)
    }
}

/// A dictionary kept as an FST (`tantivy_fst`, value = ordinal) in a stretch of a section.
///
/// The FST's own code indexes without checks of its own and panics on bytes that are not an
/// FST: what keeps that away is the section's checksum, verified before each first use.
/// Beyond it: header, root and count are checked here, and every ordinal it yields.
#[derive(Debug)]
pub(crate) struct FstDictionary {
    section: Section,
    /// Where the FST ends; it starts at `start`.
    start: u64,
    bytes: usize,
    len: u32,
    /// Only where the section is not mapped: the FST, read once.
    copy: OnceLock<Vec<u8>>,
}

impl FstDictionary {
    /// The FST of `len` keys at `start` of the section, `bytes` long.
    ///
    /// # Errors
    /// `Corrupt` where it is no FST of that many keys.
    pub(crate) fn open(section: Section, start: u64, bytes: u64, len: u32) -> Result<Self> {
        let bytes = usize::try_from(bytes)
            .map_err(|_| section.corrupt(start, format!("a dictionary of {bytes} bytes")))?;
        let dictionary = Self {
            section,
            start,
            bytes,
            len,
            copy: OnceLock::new(),
        };
        let found = dictionary.fst()?.len();
        if found != len as usize {
            return Err(dictionary.corrupt(format!("{found} keys, expected {len}")));
        }
        Ok(dictionary)
    }

    fn fst(&self) -> Result<Fst<&[u8]>> {
        let bytes = match self.copy.get() {
            Some(copy) => copy,
            None => match self.section.get(self.start, self.bytes)? {
                Cow::Borrowed(bytes) => bytes,
                Cow::Owned(bytes) => &**self.copy.get_or_init(|| bytes),
            },
        };
        // Its own check lets a root address pass that is not at the end: look first.
        let root_at_end = bytes.len().checked_sub(8).is_some_and(|at| {
            let root = bytes[at..]
                .iter()
                .rev()
                .fold(0_u64, |root, byte| root << 8 | u64::from(*byte));
            root == 0 && bytes.len() == 32 || root.checked_add(17) == Some(bytes.len() as u64)
        });
        if !root_at_end {
            return Err(self.corrupt("no root at the end of the dictionary"));
        }
        Fst::new(bytes).map_err(|error| self.corrupt(format!("not a dictionary: {error}")))
    }

    fn corrupt(&self, message: impl Into<String>) -> SegmentError {
        self.section.corrupt(self.start, message)
    }

    fn check(&self, ordinal: u64) -> Result<u32> {
        let checked = u32::try_from(ordinal)
            .ok()
            .filter(|ordinal| *ordinal < self.len);
        checked.ok_or_else(|| self.corrupt(format!("key number {ordinal} of {}", self.len)))
    }
}

impl Dictionary for FstDictionary {
    fn len(&self) -> u32 {
        self.len
    }

    fn ordinal(&self, key: &[u8]) -> Result<Option<u32>> {
        self.fst()?
            .get(key)
            .map(|ordinal| self.check(ordinal.value()))
            .transpose()
    }

    /// Ordinals ascend with the keys, so the way to one takes, at each node, the last
    /// transition that does not pass it.
    fn key(&self, ordinal: u32, key: &mut Vec<u8>) -> Result<()> {
        let fst = self.fst()?;
        let (mut node, mut left) = (fst.root(), u64::from(ordinal));
        key.clear();
        while !(left == 0 && node.is_final()) {
            let next = node
                .transitions()
                .take_while(|next| next.out.value() <= left)
                .last();
            let Some(next) = next.filter(|_| key.len() < KEY_BYTES_MAX) else {
                return Err(self.corrupt(format!("no key with number {ordinal}")));
            };
            left -= next.out.value();
            key.push(next.inp);
            node = fst.node(next.addr);
        }
        Ok(())
    }

    fn keys_after(
        &self,
        after: Option<&[u8]>,
        first: u32,
        keys_max: usize,
        keys: &mut Keys,
    ) -> Result<()> {
        keys.clear();
        let fst = self.fst()?;
        let range = match after {
            Some(key) => fst.range().gt(key),
            None => fst.range(),
        };
        let mut stream = range.into_stream();
        let mut expected = u64::from(first);
        while keys.len() < keys_max {
            let Some((key, ordinal)) = stream.next() else {
                break;
            };
            if ordinal.value() != expected || expected >= u64::from(self.len) {
                return Err(self.corrupt(format!(
                    "key number {} at place {expected}",
                    ordinal.value()
                )));
            }
            keys.push(key);
            expected += 1;
        }
        Ok(())
    }
}
