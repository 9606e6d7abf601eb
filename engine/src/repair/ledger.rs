//! What is the last thing known of each (scope, id)? Facts go in in any order; seqs decide.

use std::collections::BTreeMap;

use chronolith_segments::{DeathKind, Scope};

/// Where the content of a put lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Place {
    /// A row of the nth segment.
    Row { segment: usize, row: u32 },
    /// An operation of the nth log frame.
    Operation { frame: usize, index: usize },
}

/// What is known of one (scope, id). Seq 0 = never.
#[derive(Debug, Clone, Default)]
pub(super) struct Entry {
    /// Newest put that was seen.
    pub(super) put: u64,
    /// Where its content lies; empty where all of it is damaged.
    pub(super) places: Vec<Place>,
    /// Newest seq at which something took an older row's place.
    pub(super) superseded: u64,
    /// Newest delete.
    pub(super) deleted: u64,
    /// Set where the newest put was found in a file that no longer counts: the hole it fills.
    pub(super) refills: Option<usize>,
}

/// (key of the scope, id).
pub(super) type Key = (Box<[u8]>, Box<str>);

/// All of them, in order of their keys. Held in memory: a repair needs about the size of all
/// ids and scope keys.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    pub(super) entries: BTreeMap<Key, Entry>,
}

impl Entry {
    /// The newest seq at which anything is known to have happened.
    pub(super) fn newest(&self) -> u64 {
        self.put.max(self.superseded).max(self.deleted)
    }

    /// True if the newest put that was seen is what the id stands for.
    pub(super) fn is_current(&self) -> bool {
        self.put >= self.superseded && self.put > self.deleted
    }
}

impl Ledger {
    fn entry(&mut self, scope: &Scope, id: &str) -> &mut Entry {
        let key: Key = (scope.key().into(), id.into());
        self.entries.entry(key).or_default()
    }

    pub(super) fn get(&self, scope: &Scope, id: &str) -> Option<&Entry> {
        let key: Key = (scope.key().into(), id.into());
        self.entries.get(&key)
    }

    /// A put with its content, or with `None` a put whose content is damaged.
    pub(super) fn put(&mut self, scope: &Scope, id: &str, seq: u64, place: Option<Place>) {
        let entry = self.entry(scope, id);
        if seq > entry.put {
            entry.put = seq;
            entry.places.clear();
            entry.refills = None;
        }
        if seq == entry.put {
            entry.places.extend(place);
        }
    }

    /// A put from a file that no longer counts, to fill a hole.
    pub(super) fn refill(&mut self, scope: &Scope, id: &str, seq: u64, place: Place, hole: usize) {
        self.put(scope, id, seq, Some(place));
        self.entry(scope, id).refills = Some(hole);
    }

    /// Another place of a put that is known already; false where it is not.
    pub(super) fn also_at(&mut self, scope: &Scope, id: &str, seq: u64, place: Place) -> bool {
        let key: Key = (scope.key().into(), id.into());
        match self.entries.get_mut(&key).filter(|entry| entry.put == seq) {
            Some(entry) => {
                entry.places.push(place);
                true
            }
            None => false,
        }
    }

    /// A row of this id ended at `seq`.
    pub(super) fn end(&mut self, scope: &Scope, id: &str, seq: u64, kind: DeathKind) {
        let entry = self.entry(scope, id);
        match kind {
            DeathKind::Superseded => entry.superseded = entry.superseded.max(seq),
            // Archived records are out of every default read: they do not come back either.
            DeathKind::Deleted | DeathKind::Archived => entry.deleted = entry.deleted.max(seq),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(row: u32) -> Place {
        Place::Row { segment: 0, row }
    }

    #[test]
    fn the_highest_seq_decides_in_any_order() {
        let scope = Scope::parse("a").expect("a scope");
        let facts: [fn(&mut Ledger, &Scope); 4] = [
            |ledger, scope| ledger.put(scope, "x", 3, Some(place(1))),
            |ledger, scope| ledger.put(scope, "x", 7, Some(place(2))),
            |ledger, scope| ledger.end(scope, "x", 7, DeathKind::Superseded),
            |ledger, scope| ledger.end(scope, "x", 5, DeathKind::Deleted),
        ];
        for start in 0..facts.len() {
            let mut ledger = Ledger::default();
            for step in 0..facts.len() {
                facts[(start + step) % facts.len()](&mut ledger, &scope);
            }
            let entry = ledger.get(&scope, "x").expect("known");
            assert!(entry.is_current());
            assert_eq!((entry.put, entry.places.as_slice()), (7, &[place(2)][..]));
            ledger.end(&scope, "x", 9, DeathKind::Deleted);
            assert!(!ledger.get(&scope, "x").expect("known").is_current());
        }
    }

    #[test]
    fn a_put_that_was_replaced_by_a_lost_one_is_not_current() {
        let scope = Scope::parse("a").expect("a scope");
        let mut ledger = Ledger::default();
        ledger.put(&scope, "x", 3, Some(place(1)));
        ledger.end(&scope, "x", 7, DeathKind::Superseded);
        assert!(!ledger.get(&scope, "x").expect("known").is_current());
        assert!(ledger.also_at(&scope, "x", 3, place(4)));
        assert!(!ledger.also_at(&scope, "x", 4, place(4)));
    }
}
