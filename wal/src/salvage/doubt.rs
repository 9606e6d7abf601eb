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

use super::SalvagedFrame;
use super::file::FileSalvage;
use crate::files::Successor;
use crate::frame::epoch_of;

/// Takes such frames out of `files`; returns those in doubt. `evidence`: seqs that are proven
/// to have been accepted.
pub(super) fn take_doubtful(files: &mut [FileSalvage], evidence: &[u64]) -> Vec<SalvagedFrame> {
    let mut in_doubt = Vec::new();
    for at in 0..files.len() {
        let (before, later) = files.split_at_mut(at + 1);
        let Some(file) = before.last_mut().filter(|file| has_lost_end(file, later)) else {
            continue;
        };
        let Some(hole) = file.first_hole() else {
            continue;
        };
        file.frames.retain(|(frame, _)| {
            if frame.offset < hole || is_accepted(frame, later, evidence) {
                return true;
            }
            if !is_dropped(frame, later) {
                in_doubt.push(*frame);
            }
            false
        });
    }
    in_doubt
}

/// True where there was a next file and nothing says where this one ended before it.
fn has_lost_end(file: &FileSalvage, later: &[FileSalvage]) -> bool {
    match later.first() {
        Some(next) => file.number().checked_add(1) != Some(next.number()) || next.header.is_none(),
        None => file
            .header
            .is_some_and(|header| header.successor != Successor::None),
    }
}

fn is_accepted(frame: &SalvagedFrame, later: &[FileSalvage], evidence: &[u64]) -> bool {
    let (seq, epoch) = (frame.last_seq(), epoch_of(frame.first_seq));
    let is_copied = || {
        let mut frames = later.iter().flat_map(|file| &file.frames);
        frames.any(|(copy, _)| copy.first_seq == frame.first_seq && copy.ops == frame.ops)
    };
    evidence
        .iter()
        .any(|proof| *proof >= seq && epoch_of(*proof) == epoch)
        || is_copied()
}

fn is_dropped(frame: &SalvagedFrame, later: &[FileSalvage]) -> bool {
    let (seq, epoch) = (frame.last_seq(), epoch_of(frame.first_seq));
    let mut frames = later.iter().flat_map(|file| &file.frames);
    frames.any(|(other, durable_upto)| epoch_of(other.first_seq) > epoch && *durable_upto < seq)
}
