//! Does what was committed and seen in one schedule fit together?
//!
//! Commits are noted when they are acknowledged, views when they are looked at; only at the
//! end, with every commit known, the seqs say what each view had to hold.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::super::text;
use crate::{Committed, Durability};

/// Texts by id: all that a store holds.
pub(super) type Contents = BTreeMap<String, String>;

/// One operation of a batch. Each version is put once only.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Upsert(&'static str, u32),
    Insert(&'static str, u32),
    Forget(&'static str),
}

/// How far commits were acknowledged at some moment.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Acked {
    pub(super) seq: u64,
    /// Of those, what a power cut must leave.
    pub(super) durable_seq: u64,
}

#[derive(Debug)]
struct Commit {
    changes: Vec<Change>,
    first_seq: u64,
    last_seq: u64,
    removed: u64,
    /// What was acknowledged before it began.
    acked: u64,
}

/// An insert that was refused because of this id.
#[derive(Debug)]
struct Refusal {
    id: &'static str,
    acked: u64,
}

#[derive(Debug)]
struct View {
    who: &'static str,
    /// What was acknowledged before it was taken.
    acked: u64,
    /// Unknown of what a recovery leaves.
    seq: Option<u64>,
    contents: Contents,
}

#[derive(Debug, Default)]
struct Notes {
    acked: Acked,
    versions: u32,
    commits: Vec<Commit>,
    refusals: Vec<Refusal>,
    views: Vec<View>,
}

/// What one schedule did. Its lock is std's and never held over a place of the scheduler.
#[derive(Debug, Default)]
pub(super) struct Ledger(Mutex<Notes>);

impl Ledger {
    fn notes(&self) -> MutexGuard<'_, Notes> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn acked(&self) -> Acked {
        self.notes().acked
    }

    /// A version that no other put has.
    pub(super) fn new_version(&self) -> u32 {
        let mut notes = self.notes();
        notes.versions += 1;
        notes.versions
    }

    /// Notes an acknowledged commit; `acked` is from before it began.
    pub(super) fn committed(
        &self,
        acked: Acked,
        changes: Vec<Change>,
        durability: Durability,
        done: &Committed,
    ) {
        let mut notes = self.notes();
        notes.acked.seq = notes.acked.seq.max(done.last_seq);
        if durability == Durability::Synced {
            notes.acked.durable_seq = notes.acked.durable_seq.max(done.last_seq);
        }
        notes.commits.push(Commit {
            changes,
            first_seq: done.first_seq,
            last_seq: done.last_seq,
            removed: done.removed,
            acked: acked.seq,
        });
    }

    /// Notes that an insert was refused.
    pub(super) fn refused(&self, acked: Acked, id: &'static str) {
        let acked = acked.seq;
        self.notes().refusals.push(Refusal { id, acked });
    }

    /// Notes what was seen by `who`, who knew of commits up to `acked` before they looked.
    pub(super) fn saw(&self, who: &'static str, acked: u64, seq: Option<u64>, contents: Contents) {
        self.notes().views.push(View {
            who,
            acked,
            seq,
            contents,
        });
    }

    /// Checks it all, once every commit is known.
    pub(super) fn check(&self) {
        let mut notes = self.notes();
        notes.commits.sort_unstable_by_key(|commit| commit.last_seq);
        let states = replay(&notes.commits);
        for view in &notes.views {
            check_view(view, &states);
        }
        for Refusal { id, acked } in &notes.refusals {
            let mut since = states.range(acked..);
            let is_there = since.any(|(_, state)| state.contains_key(*id));
            assert!(is_there, "{id} was refused and not there");
        }
    }
}

/// What the store holds after each commit, by last seq.
fn replay(commits: &[Commit]) -> BTreeMap<u64, Contents> {
    let mut states = BTreeMap::new();
    let (mut state, mut end) = (Contents::new(), 0);
    for commit in commits {
        let first = commit.first_seq;
        assert!(first > end, "{commit:?} shares seqs with another");
        assert!(
            first > commit.acked,
            "{commit:?} lies before an earlier one"
        );
        let mut removed = 0;
        for change in &commit.changes {
            let before = match change {
                Change::Upsert(id, version) | Change::Insert(id, version) => {
                    state.insert((*id).to_owned(), text(id, *version))
                }
                Change::Forget(id) => state.remove(*id),
            };
            let is_insert = matches!(change, Change::Insert(..));
            assert!(!is_insert || before.is_none(), "{commit:?} is over another");
            removed += u64::from(before.is_some());
        }
        assert_eq!(commit.removed, removed, "{commit:?}");
        end = commit.last_seq;
        states.insert(end, state.clone());
    }
    states
}

/// A view holds all that was acknowledged before it, and is of one moment.
fn check_view(view: &View, states: &BTreeMap<u64, Contents>) {
    let View { who, acked, .. } = view;
    let Some(seq) = view.seq else {
        let mut since = states.range(acked..);
        let is_prefix = since.any(|(_, state)| *state == view.contents);
        assert!(is_prefix, "{view:?} is no prefix of {states:?}");
        return;
    };
    assert!(
        seq >= *acked,
        "{who} at {seq} misses an acknowledged {acked}"
    );
    let state = states.get(&seq);
    let state = state.unwrap_or_else(|| panic!("{who} at {seq} sees a part of a batch"));
    assert_eq!(view.contents, *state, "{who} at {seq}");
}
