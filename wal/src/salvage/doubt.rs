//! Which whole frames may have been dropped by a recovery, with nothing left to say so?
//!
//! A recovery drops what lies behind a torn frame, and the header of the file it begins says how
//! far the log went. Where that header is lost, or the whole file, a whole frame behind damage
//! is one of two things: dropped, or durable behind damage that came later.
//!
//! * Before the first damage of a file every whole frame was accepted.
//! * A seq of the same epoch at or above its own that anything calls durable: it was accepted.
//! * It is there once more in a later file: a recovery copied it.
//! * A frame of a later epoch whose `durable_upto` is below it: it was dropped, since a writer
//!   knows all that its recovery accepted to be durable.
//! * Else it is in doubt.

use std::collections::{BTreeMap, BTreeSet};

use super::SalvagedFrame;
use super::file::FileSalvage;
use crate::files::Successor;
use crate::frame::epoch_of;

/// Takes such frames out of `files`; returns those in doubt, ascending by file and offset.
/// `evidence`: seqs that are proven to have been accepted.
pub(super) fn take_doubtful(files: &mut [FileSalvage], evidence: &[u64]) -> Vec<SalvagedFrame> {
    let mut in_doubt = Vec::new();
    if (0..files.len()).all(|at| !has_lost_end(&files[at], files.get(at + 1))) {
        return in_doubt;
    }
    let mut known = Known::new(evidence);
    for at in (0..files.len()).rev() {
        let is_lost = has_lost_end(&files[at], files.get(at + 1));
        let file = &mut files[at];
        // As they were found, also to files before: what is in doubt there is no frame less.
        let found = file.frames.clone();
        if let Some(hole) = file.first_hole().filter(|_| is_lost) {
            let lowest = known.lowest_from();
            file.frames.retain(|(frame, _)| {
                if frame.offset < hole || known.is_accepted(frame) {
                    return true;
                }
                if !is_dropped(frame, &lowest) {
                    in_doubt.push(*frame);
                }
                false
            });
        }
        known.add(&found);
    }
    in_doubt.sort_unstable_by_key(|frame| (frame.file, frame.offset));
    in_doubt
}

/// True where there was a next file, or nobody can tell, and nothing says where this one ended
/// before it.
fn has_lost_end(file: &FileSalvage, next: Option<&FileSalvage>) -> bool {
    match next {
        Some(next) => file.number().checked_add(1) != Some(next.number()) || next.header.is_none(),
        None => file
            .header
            .is_none_or(|header| header.successor != Successor::None),
    }
}

/// What evidence and the files behind one say.
struct Known {
    /// Of each epoch the highest seq that anything calls durable.
    proofs: BTreeMap<u32, u64>,
    /// First seq and number of ops of each frame.
    later: BTreeSet<(u64, u32)>,
    /// Of each epoch the lowest `durable_upto` of its frames.
    lowest: BTreeMap<u32, u64>,
}

impl Known {
    fn new(evidence: &[u64]) -> Self {
        let mut proofs = BTreeMap::new();
        for proof in evidence {
            let highest = proofs.entry(epoch_of(*proof)).or_insert(*proof);
            *highest = (*proof).max(*highest);
        }
        Self {
            proofs,
            later: BTreeSet::new(),
            lowest: BTreeMap::new(),
        }
    }

    fn add(&mut self, frames: &[(SalvagedFrame, u64)]) {
        for (frame, durable_upto) in frames {
            self.later.insert((frame.first_seq, frame.ops));
            let lowest = self.lowest.entry(epoch_of(frame.first_seq));
            let lowest = lowest.or_insert(*durable_upto);
            *lowest = (*durable_upto).min(*lowest);
        }
    }

    fn is_accepted(&self, frame: &SalvagedFrame) -> bool {
        let proof = self.proofs.get(&epoch_of(frame.first_seq));
        proof.is_some_and(|proof| *proof >= frame.last_seq())
            || self.later.contains(&(frame.first_seq, frame.ops))
    }

    /// Of each epoch the lowest `durable_upto` of its frames and of all later epochs'; falling
    /// by epoch.
    fn lowest_from(&self) -> Vec<(u32, u64)> {
        let mut lowest = u64::MAX;
        let from = self.lowest.iter().rev().map(|(epoch, durable_upto)| {
            lowest = lowest.min(*durable_upto);
            (*epoch, lowest)
        });
        from.collect()
    }
}

fn is_dropped(frame: &SalvagedFrame, lowest_from: &[(u32, u64)]) -> bool {
    let epoch = epoch_of(frame.first_seq);
    let later = lowest_from.partition_point(|(other, _)| *other > epoch);
    lowest_from[..later]
        .last()
        .is_some_and(|(_, durable_upto)| *durable_upto < frame.last_seq())
}
