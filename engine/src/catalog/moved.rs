//! Where are the rows of segments that were compacted away?
//!
//! A compaction's output is not taken in anew where its inputs were: their locators stay, and
//! lead through this map to the output. It is sealed with the catalog, for a locator is never
//! mended otherwise.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::de::{Error, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Most files that are led on. An output that would need more is taken in row by row, so that
/// the ways to its inputs end.
pub(super) const MOVED_MAX: usize = 1 << 16;

/// From a file that is gone to the file where its rows are now. One step always: no target is
/// itself led on.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Moved(#[serde(deserialize_with = "capped")] BTreeMap<u64, u64>);

impl Moved {
    /// Notes that the rows of `inputs`, and what had gone there, are in `output`. False, and
    /// nothing is noted, where that would be too many.
    pub(super) fn note(&mut self, inputs: &[u64], output: u64) -> bool {
        if self.0.len().saturating_add(inputs.len()) > MOVED_MAX {
            return false;
        }
        for to in self.0.values_mut().filter(|to| inputs.contains(to)) {
            *to = output;
        }
        self.0.extend(inputs.iter().map(|input| (*input, output)));
        true
    }

    /// Forgets the ways to files that are not live: they lead nowhere.
    pub(super) fn keep_live(&mut self, live: &BTreeSet<u64>) {
        self.0.retain(|_, to| live.contains(to));
    }

    /// The file where the rows of a file are now.
    pub(super) fn resolve(&self, file_number: u64) -> u64 {
        *self.0.get(&file_number).unwrap_or(&file_number)
    }
}

/// Refuses more entries than are ever sealed before it takes them in.
fn capped<'de, D: Deserializer<'de>>(from: D) -> Result<BTreeMap<u64, u64>, D::Error> {
    struct Entries;
    impl<'de> Visitor<'de> for Entries {
        type Value = BTreeMap<u64, u64>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "at most {MOVED_MAX} moved files")
        }

        fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
            let mut moved = BTreeMap::new();
            for _ in 0..=MOVED_MAX {
                match map.next_entry()? {
                    Some((from, to)) => moved.insert(from, to),
                    None => return Ok(moved),
                };
            }
            Err(A::Error::custom("too many moved files"))
        }
    }
    from.deserialize_map(Entries)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_locator_leads_to_where_compactions_took_its_row() {
        let mut moved = Moved::default();
        for (inputs, output) in [(&[1, 2][..], 5), (&[3], 6), (&[5, 6], 9)] {
            assert!(moved.note(inputs, output));
        }
        let found = [1, 2, 3, 4, 5, 6, 9].map(|file_number| moved.resolve(file_number));
        assert_eq!(found, [9, 9, 9, 4, 9, 9, 9]);
    }

    #[test]
    fn ways_to_what_is_gone_end_and_those_left_are_sealed() {
        let mut moved = Moved::default();
        assert!(moved.note(&[1, 2], 5) && moved.note(&[3], 6));
        moved.keep_live(&BTreeSet::from([4, 6]));
        let found = [1, 2, 3].map(|file_number| moved.resolve(file_number));
        assert_eq!(found, [1, 2, 6]);
        let bytes = postcard::to_stdvec(&moved).expect("encodes");
        assert_eq!(postcard::from_bytes(&bytes), Ok(moved));
    }

    #[test]
    fn no_more_are_noted_or_read_than_the_cap() {
        let mut moved = Moved::default();
        let inputs: Vec<u64> = (0..MOVED_MAX as u64).collect();
        assert!(moved.note(&inputs, 1 << 20));
        let bytes = postcard::to_stdvec(&moved).expect("encodes");
        assert!(postcard::from_bytes::<Moved>(&bytes).is_ok());
        assert!(!moved.note(&[1 << 20], 1 << 21));
        assert_eq!(moved.resolve(0), 1 << 20, "nothing was noted");
        moved.0.insert(1 << 19, 1 << 20);
        let bytes = postcard::to_stdvec(&moved).expect("encodes");
        assert!(postcard::from_bytes::<Moved>(&bytes).is_err());
    }
}
