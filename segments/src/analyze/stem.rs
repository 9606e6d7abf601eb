//! Which stem does a word have? Snowball by language, and a small cache in the caller's buffers.

use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use frostem::{Algorithm, Stemmer};

use super::AnalyzeError;

/// A Snowball language, by its canonical name (`english`, `german`, ...).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Language(Algorithm);

impl Language {
    /// The default.
    pub const ENGLISH: Self = Self(Algorithm::English);

    /// The language of a Snowball name or code (`english`, `en`, `eng`).
    ///
    /// # Errors
    /// `UnknownLanguage` if Snowball has no such stemmer.
    pub fn parse(name: &str) -> Result<Self, AnalyzeError> {
        Algorithm::from_name(name)
            .map(Self)
            .map_err(|_| AnalyzeError::UnknownLanguage { name: name.into() })
    }

    /// The canonical name, as in the analyzer's id.
    pub fn name(self) -> &'static str {
        self.0.name()
    }

    /// Every language, in a fixed order.
    pub fn all() -> impl Iterator<Item = Self> {
        Algorithm::all().iter().copied().map(Self)
    }

    pub(super) fn stemmer(self) -> Stemmer {
        Stemmer::new(self.0)
    }

    /// Whether marks go before stemming. English stemmers know only plain letters; the others need theirs
    /// (Russian `й`, French `é`), so there the stem loses its marks afterwards.
    pub(super) fn strips_first(self) -> bool {
        let plain = [
            Algorithm::English,
            Algorithm::Porter,
            Algorithm::Lovins,
            Algorithm::Earlymodernenglish,
        ];
        plain.contains(&self.0)
    }
}

impl Default for Language {
    fn default() -> Self {
        Self::ENGLISH
    }
}

const SLOTS: usize = 4096;
const SLOT_BYTES: usize = 31;

/// Remembered stems: one slot per hash value, the newcomer replaces. Bounded (256 KiB), unshared, and never
/// a different answer: a hit compares the whole word.
#[derive(Debug, Default)]
pub(super) struct StemCache {
    slots: Vec<Slot>,
    language: Language,
    /// Off by default: a query has too few words to repay the slots.
    on: bool,
}

#[derive(Debug, Clone, Copy)]
struct Slot {
    word_len: u8,
    stem_len: u8,
    word: [u8; SLOT_BYTES],
    stem: [u8; SLOT_BYTES],
}

const EMPTY: Slot = Slot {
    word_len: 0,
    stem_len: 0,
    word: [0; SLOT_BYTES],
    stem: [0; SLOT_BYTES],
};

impl StemCache {
    /// A cache that remembers; the slots come with the first word.
    pub(super) fn remembering() -> Self {
        Self {
            on: true,
            ..Self::default()
        }
    }

    /// Appends the stem of `word` to `out`.
    pub(super) fn push_stem(&mut self, language: Language, word: &str, out: &mut String) {
        if !self.on || word.len() > SLOT_BYTES || word.is_empty() {
            out.push_str(&language.stemmer().stem(word));
            return;
        }
        if self.language != language || self.slots.is_empty() {
            self.slots.clear();
            self.slots.resize(SLOTS, EMPTY);
            self.language = language;
        }
        let slot = &mut self.slots[slot_of(word)];
        if usize::from(slot.word_len) == word.len() && slot.word[..word.len()] == *word.as_bytes() {
            let stem = &slot.stem[..usize::from(slot.stem_len)];
            if let Ok(stem) = std::str::from_utf8(stem) {
                out.push_str(stem);
                return;
            }
        }
        let stem = language.stemmer().stem(word);
        out.push_str(&stem);
        let lens = (u8::try_from(word.len()), u8::try_from(stem.len()));
        if let (Ok(word_len), Ok(stem_len)) = lens
            && stem.len() <= SLOT_BYTES
        {
            slot.word[..word.len()].copy_from_slice(word.as_bytes());
            slot.stem[..stem.len()].copy_from_slice(stem.as_bytes());
            (slot.word_len, slot.stem_len) = (word_len, stem_len);
        }
    }
}

fn slot_of(word: &str) -> usize {
    let hash = FixedState::with_seed(0).hash_one(word.as_bytes());
    let top = u16::from_le_bytes([hash.to_le_bytes()[6], hash.to_le_bytes()[7]]);
    usize::from(top) % SLOTS
}
