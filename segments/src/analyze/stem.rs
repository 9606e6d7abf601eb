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

const SETS: usize = 4096;
const WORD_BYTES: usize = 27;
const ADDED_BYTES: usize = 3;

/// Remembered stems: a word has two places, the one used last goes to the front and the other is
/// replaced. Bounded (256 KiB), unshared, and never a different answer: a hit compares the whole
/// word.
#[derive(Debug, Default)]
pub(super) struct StemCache {
    sets: Vec<Set>,
    language: Language,
    /// Off by default: a query has too few words to repay the slots.
    on: bool,
}

/// One line of the processor's cache.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
struct Set([Slot; 2]);

const _: () = assert!(size_of::<Set>() == 64);

/// A word and its stem: the first bytes of the word, and what follows them.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    /// Length and the word, zeros behind it.
    word: [u8; 1 + WORD_BYTES],
    /// Bytes of the word that the stem keeps.
    kept: u8,
    /// What it has behind them, zeros behind it.
    added: [u8; ADDED_BYTES],
}

impl Slot {
    /// `None` where the stem does not fit: most differ in their last bytes alone.
    fn of(key: [u8; 1 + WORD_BYTES], word: &str, stem: &str) -> Option<Self> {
        let same = word.bytes().zip(stem.bytes()).take_while(|(a, b)| a == b);
        let mut kept = same.count();
        while !stem.is_char_boundary(kept) {
            kept -= 1;
        }
        let rest = &stem.as_bytes()[kept..];
        let mut added = [0; ADDED_BYTES];
        added.get_mut(..rest.len())?.copy_from_slice(rest);
        // A zero ends what was added.
        let kept = u8::try_from(kept).ok().filter(|_| !rest.contains(&0))?;
        Some(Self {
            word: key,
            kept,
            added,
        })
    }

    /// Appends the stem; false where the bytes are none.
    fn push(&self, word: &str, out: &mut String) -> bool {
        let len = self.added.iter().take_while(|byte| **byte != 0).count();
        let kept = word.get(..usize::from(self.kept));
        match (kept, std::str::from_utf8(&self.added[..len])) {
            (Some(kept), Ok(added)) => {
                out.push_str(kept);
                out.push_str(added);
                true
            }
            _ => false,
        }
    }
}

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
        if !self.on || word.len() > WORD_BYTES || word.is_empty() {
            out.push_str(&language.stemmer().stem(word));
            return;
        }
        if self.language != language || self.sets.is_empty() {
            self.sets.clear();
            self.sets.resize(SETS, Set([Slot::default(); 2]));
            self.language = language;
        }
        let mut key = [0; 1 + WORD_BYTES];
        key[0] = u8::try_from(word.len()).unwrap_or(u8::MAX);
        key[1..=word.len()].copy_from_slice(word.as_bytes());
        let Set(slots) = &mut self.sets[set_of(word)];
        if slots[0].word != key {
            slots.swap(0, 1);
        }
        if slots[0].word == key && slots[0].push(word, out) {
            return;
        }
        let stem = language.stemmer().stem(word);
        out.push_str(&stem);
        if let Some(slot) = Slot::of(key, word, &stem) {
            slots[0] = slot;
        }
    }
}

fn set_of(word: &str) -> usize {
    let hash = FixedState::with_seed(0).hash_one(word.as_bytes());
    let top = u16::from_le_bytes([hash.to_le_bytes()[6], hash.to_le_bytes()[7]]);
    usize::from(top) % SETS
}
