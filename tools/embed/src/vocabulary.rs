//! Which pieces make up a word?
//!
//! Greedy, longest match first: the longest piece that starts the word, then the longest
//! `##` piece that goes on, to the end. A word that cannot be finished is unknown as a
//! whole, however many pieces were found.

use std::collections::HashMap;

use foldhash::fast::FixedState;

use crate::error::ModelError;

const UNKNOWN: &str = "[UNK]";
const GOES_ON: &str = "##";

/// Only ever asked by key, so the order of the hash table cannot reach a result.
type Ids = HashMap<&'static [u8], u32, FixedState>;

/// The word pieces, in both directions.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    /// Piece by id, `##` included.
    pieces: Vec<&'static str>,
    /// Pieces that start a word.
    starts: Ids,
    /// Pieces that go on, without their `##`.
    continuations: Ids,
    /// Bytes of the longest key of either table: longer stretches need no look-up.
    piece_bytes_max: usize,
    /// Id of `[UNK]`.
    unknown: u32,
}

impl Vocabulary {
    /// Reads one piece a line; the line number, from 0, is the id.
    ///
    /// # Errors
    /// [`ModelError::Vocabulary`] for bytes that are not UTF-8, an empty or repeated piece,
    /// or no `[UNK]`.
    pub(crate) fn parse(bytes: &'static [u8]) -> Result<Self, ModelError> {
        let wrong = |index: usize, problem| ModelError::Vocabulary {
            line: index.saturating_add(1),
            problem,
        };
        let text = std::str::from_utf8(bytes).map_err(|_| wrong(0, "not UTF-8"))?;
        // Not `lines()`: a vocabulary may hold a lone carriage return as a piece.
        let pieces: Vec<&str> = text
            .strip_suffix('\n')
            .unwrap_or(text)
            .split('\n')
            .collect();
        let mut starts = Ids::default();
        let mut continuations = Ids::default();
        let mut piece_bytes_max = 0;
        for (index, piece) in pieces.iter().enumerate() {
            let id = u32::try_from(index).map_err(|_| wrong(index, "more pieces than ids"))?;
            let (ids, key) = match piece.strip_prefix(GOES_ON) {
                Some(rest) if !rest.is_empty() => (&mut continuations, rest),
                _ => (&mut starts, *piece),
            };
            if key.is_empty() {
                return Err(wrong(index, "empty piece"));
            }
            if ids.insert(key.as_bytes(), id).is_some() {
                return Err(wrong(index, "piece given twice"));
            }
            piece_bytes_max = piece_bytes_max.max(key.len());
        }
        let unknown = *starts
            .get(UNKNOWN.as_bytes())
            .ok_or(wrong(pieces.len() - 1, "no [UNK]"))?;
        Ok(Self {
            pieces,
            starts,
            continuations,
            piece_bytes_max,
            unknown,
        })
    }

    /// Number of pieces; ids are below it.
    pub(crate) fn len(&self) -> usize {
        self.pieces.len()
    }

    /// The piece of an id, `##` included.
    pub(crate) fn piece(&self, id: u32) -> Option<&'static str> {
        self.pieces.get(usize::try_from(id).ok()?).copied()
    }

    /// Appends the ids of a word's pieces, `[UNK]` alone for a word that is too long (`None`)
    /// or cannot be pieced. Allocates nothing beyond the growth of `ids`.
    pub(crate) fn piece_word(&self, word: Option<&str>, ids: &mut Vec<u32>) {
        let before = ids.len();
        if word.is_none_or(|word| self.try_pieces(word, ids).is_none()) {
            ids.truncate(before);
            ids.push(self.unknown);
        }
    }

    fn try_pieces(&self, word: &str, ids: &mut Vec<u32>) -> Option<()> {
        let mut table = &self.starts;
        let mut rest = word;
        while !rest.is_empty() {
            let (id, end) = self.longest(table, rest)?;
            ids.push(id);
            rest = &rest[end..];
            table = &self.continuations;
        }
        Some(())
    }

    /// Id and byte length of the longest key of `table` that starts `rest`.
    fn longest(&self, table: &Ids, rest: &str) -> Option<(u32, usize)> {
        (1..=rest.len().min(self.piece_bytes_max))
            .rev()
            .filter(|&end| rest.is_char_boundary(end))
            .find_map(|end| table.get(&rest.as_bytes()[..end]).map(|&id| (id, end)))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SMALL: &[u8] = "[UNK]\na\nab\nabc\n##c\n##cd\n##b\nб\n##бв\n#\n##\n".as_bytes();

    fn ids(word: Option<&str>) -> Vec<u32> {
        let mut ids = vec![99];
        Vocabulary::parse(SMALL)
            .expect("a sound vocabulary")
            .piece_word(word, &mut ids);
        assert_eq!(ids.remove(0), 99, "what was there stays");
        ids
    }

    /// The rule as the reference states it: one string per try.
    fn naive(word: &str) -> Vec<u32> {
        let pieces: Vec<&str> = std::str::from_utf8(SMALL).expect("text").lines().collect();
        let letters: Vec<char> = word.chars().collect();
        let (mut found, mut start) = (Vec::new(), 0);
        while start < letters.len() {
            let step = (start + 1..=letters.len()).rev().find_map(|end| {
                let stretch: String = letters[start..end].iter().collect();
                let key = if start == 0 {
                    stretch
                } else {
                    format!("##{stretch}")
                };
                pieces
                    .iter()
                    .position(|piece| *piece == key)
                    .map(|id| (id, end))
            });
            let Some((id, end)) = step else {
                return vec![0];
            };
            found.push(u32::try_from(id).expect("a small id"));
            start = end;
        }
        found
    }

    #[test]
    fn the_longest_piece_wins_and_a_dead_end_is_unknown_as_a_whole() {
        assert_eq!(ids(Some("abccd")), [3, 5]);
        assert_eq!(ids(Some("abd")), [0]);
        assert_eq!(ids(None), [0]);
        assert_eq!(ids(Some("#")), [9]);
    }

    #[test]
    fn an_unsound_vocabulary_is_refused_by_line() {
        let refused = |bytes| match Vocabulary::parse(bytes) {
            Err(ModelError::Vocabulary { line, problem }) => (line, problem),
            other => panic!("expected a refusal, got {other:?}"),
        };
        assert_eq!(refused(b"[UNK]\na\na\n"), (3, "piece given twice"));
        assert_eq!(refused(b"[UNK]\n\na\n"), (2, "empty piece"));
        assert_eq!(refused(b"a\nb"), (2, "no [UNK]"));
        assert_eq!(refused(b""), (1, "empty piece"));
        assert_eq!(refused(b"\xff"), (1, "not UTF-8"));
    }

    proptest! {
        #[test]
        fn look_ups_without_copies_agree_with_one_string_per_try(word in "[abcdбв]{1,12}") {
            prop_assert_eq!(ids(Some(&word)), naive(&word));
        }
    }
}
