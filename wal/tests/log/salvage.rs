//! What a salvage finds behind damage: every whole frame, and the seqs of all others.

use std::path::Path;

use chronolith_wal::{Log, LogOptions, LogSalvage, log_name, peek_store_id, salvage_log};

use crate::bed::{Bed, DIR, STORE, body, commit, small};

/// Twelve frames of one op over a few files, closed with a seal.
fn log(bed: &Bed) -> Vec<Vec<u8>> {
    let log = Log::create(&bed.env, Path::new(DIR), &small(), 1).expect("creates");
    let bodies: Vec<Vec<u8>> = (0..12).map(|n| body(n, 700)).collect();
    for body in &bodies {
        commit(&log, body);
    }
    log.seal().expect("seals");
    bodies
}

fn salvage(bed: &Bed) -> LogSalvage {
    salvage_log(&bed.env, Path::new(DIR), STORE, 1).expect("lists")
}

fn bodies(found: &LogSalvage) -> Vec<Vec<u8>> {
    let mut reader = found.reader();
    let read = |frame| reader.read(frame).expect("whole").body;
    found.frames.iter().map(read).collect()
}

#[test]
fn a_whole_log_has_no_gap() {
    let bed = Bed::new(1);
    let expected = log(&bed);
    let found = salvage(&bed);
    assert_eq!(bodies(&found), expected);
    assert_eq!(
        (found.gaps.as_slice(), found.missing(None)),
        (&[][..], vec![])
    );
    assert!(found.files > 1 && found.end_is_proven);
    assert_eq!(peek_store_id(&bed.env, Path::new(DIR), 1), Some(STORE));
    let (first, last) = (found.frames[0].first_seq, found.frames[11].last_seq());
    assert!(found.covers(first, last) && !found.covers(first, last + 1));
}

#[test]
fn a_flipped_byte_anywhere_costs_one_frame_at_most_and_its_seq_is_named() {
    let bed = Bed::new(2);
    let expected = log(&bed);
    let whole = salvage(&bed);
    for frame in &whole.frames {
        let name = log_name(frame.file);
        let bytes = bed.read(&name);
        for inside in [0, 9, 17, 50, 61, 64, 300, 770] {
            bed.edit(&name, |bytes| bytes[frame.offset as usize + inside] ^= 4);
            let found = salvage(&bed);
            let seq = frame.first_seq;
            let at = whole.frames.iter().position(|f| f == frame).expect("it");
            let mut others = expected.clone();
            others.remove(at);
            assert_eq!(bodies(&found), others, "{seq:x} at {inside}");
            assert_eq!(found.missing(None), [(seq, seq)]);
            assert!(!found.covers(seq, seq));
            let gap = found.gaps.iter().find(|gap| gap.offset == frame.offset);
            let gap = gap.expect("the gap begins where the frame did");
            let seqs = gap.seqs.expect("a seq is lost");
            assert_eq!((seqs.first, seqs.last), (seq, Some(seq)));
            bed.put(&name, &bytes);
        }
    }
}

#[test]
fn damaged_and_missing_files_leave_the_others() {
    let bed = Bed::new(3);
    log(&bed);
    let whole = salvage(&bed);
    let files: Vec<u64> = whole.frames.iter().map(|frame| frame.file).collect();
    for number in 1..=*files.last().expect("frames") {
        let name = log_name(number);
        let bytes = bed.read(&name);
        bed.edit(&name, |bytes| bytes[30] ^= 1);
        let found = salvage(&bed);
        assert_eq!(found.frames, whole.frames, "a header holds no frame");
        assert_eq!(found.missing(None), []);
        bed.remove(&name);
        let found = salvage(&bed);
        let left = whole.frames.iter().filter(|frame| frame.file != number);
        assert!(found.frames.iter().eq(left));
        let lost = files.iter().filter(|file| **file == number).count() as u64;
        let missing = found.missing(Some(0)).into_iter();
        assert_eq!(missing.map(|(a, b)| b - a + 1).sum::<u64>(), lost, "{name}");
        bed.put(&name, &bytes);
    }
}

#[test]
fn a_newest_file_that_is_gone_is_a_gap_with_seqs_also_without_status() {
    let bed = Bed::new(9);
    let first = Log::create(&bed.env, Path::new(DIR), &small(), 1).expect("creates");
    commit(&first, &body(0, 700));
    let stale = bed.read("STATUS");
    drop(first);
    bed.names().iter().for_each(|name| bed.remove(name));
    log(&bed);
    let whole = salvage(&bed);
    let newest = whole.frames[11].file;
    bed.remove(&log_name(newest));
    let told = format!("at least the seqs up to {}", whole.frames[11].last_seq());
    let gap_of = |bed: &Bed| {
        let found = salvage(bed);
        assert!(found.end_is_proven);
        let last = found.frames.last().expect("older files").last_seq();
        let gap = found
            .gaps
            .into_iter()
            .find(|gap| gap.file == log_name(newest));
        let gap = gap.expect("a gap");
        let seqs = gap.seqs.expect("a loss");
        assert_eq!((seqs.first, seqs.last), (last + 1, None));
        gap.why
    };
    let why = gap_of(&bed);
    assert!(why.contains(&told), "{why}");
    // As a power cut leaves it: it says less than the files that are there.
    bed.put("STATUS", &stale);
    assert!(!gap_of(&bed).contains("at least"));
    bed.remove("STATUS");
    assert!(!gap_of(&bed).contains("at least"));
}

/// Frames 0 to 3 in one file, of which a recovery drops 2 (torn) and 3 (whole, behind it); two
/// more in the file that it begins. Where each frame of a file begins.
fn dropped_tail(bed: &Bed) -> impl Fn(usize) -> usize {
    let frame_at = |n: usize| 128 + n * (64 + 104 + 16);
    let log = Log::create(&bed.env, Path::new(DIR), &small(), 1).expect("creates");
    (0..2).for_each(|n| commit(&log, &body(n, 100)));
    (2..4).for_each(|n| drop(log.append(&body(n, 100), 1)));
    drop(log);
    bed.edit(&log_name(1), |bytes| bytes[frame_at(2) + 70] ^= 1);
    let mut recovered = Log::recover(&bed.env, Path::new(DIR), &small()).expect("opens");
    assert!(recovered.report().dropped.is_some());
    let log = recovered.start(2).expect("starts");
    (4..6).for_each(|n| commit(&log, &body(n, 100)));
    drop(log);
    frame_at
}

#[test]
fn a_dropped_tail_stays_dropped_where_later_frames_say_so() {
    let bed = Bed::new(10);
    let _ = dropped_tail(&bed);
    let expected = [0, 1, 4, 5].map(|n| body(n, 100));
    assert_eq!(bodies(&salvage(&bed)), expected);
    // Its header is lost, and the first frame of its epoch knows where the last one ended.
    bed.edit(&log_name(2), |bytes| bytes[20] ^= 1);
    let found = salvage(&bed);
    assert_eq!(
        (bodies(&found).as_slice(), found.in_doubt.len()),
        (&expected[..], 0)
    );
}

#[test]
fn a_tail_that_may_have_been_dropped_is_in_doubt() {
    for with_status in [true, false] {
        let bed = Bed::new(11);
        let frame_at = dropped_tail(&bed);
        bed.edit(&log_name(2), |bytes| {
            bytes[20] ^= 1;
            bytes[frame_at(0) + 70] ^= 1;
        });
        if !with_status {
            bed.remove("STATUS");
        }
        let found = salvage(&bed);
        let doubtful: Vec<u64> = found.in_doubt.iter().map(|frame| frame.first_seq).collect();
        if with_status {
            let expected = [0, 1, 5].map(|n| body(n, 100));
            assert_eq!(bodies(&found), expected, "neither believed");
            assert_eq!(doubtful, [1 << 40 | 4], "nor passed over");
        } else {
            // Whether a third file had dropped the last one nobody can tell either.
            assert_eq!(bodies(&found), [0, 1].map(|n| body(n, 100)));
            assert_eq!(doubtful, [1 << 40 | 4, 2 << 40 | 2]);
        }
        // The same where the whole file is gone.
        bed.remove(&log_name(2));
        let found = salvage(&bed);
        assert_eq!(bodies(&found), [0, 1].map(|n| body(n, 100)));
        assert_eq!(found.in_doubt.len(), 1);
    }
}

/// Damage in a proven part, and the next header lost as well: what the rest of the log proves
/// is believed as ever.
#[test]
fn frames_behind_damage_are_believed_where_anything_proves_them() {
    let bed = Bed::new(12);
    let expected = log(&bed);
    let whole = salvage(&bed);
    let second = whole
        .frames
        .iter()
        .find(|frame| frame.file == 2)
        .expect("a second file");
    assert!(
        second.first_seq > whole.frames[1].first_seq + 1,
        "a few in the first"
    );
    let first = whole.frames[1];
    bed.edit(&log_name(1), |bytes| bytes[first.offset as usize + 70] ^= 1);
    bed.edit(&log_name(2), |bytes| bytes[20] ^= 1);
    let found = salvage(&bed);
    assert!(found.in_doubt.is_empty(), "{:?}", found.in_doubt);
    assert_eq!(bodies(&found).len(), expected.len() - 1);
}

/// The header that would say whether there was a next file is the damaged file's own.
#[test]
fn frames_behind_damage_are_in_doubt_where_the_newest_header_is_lost_too() {
    let bed = Bed::new(13);
    let log = Log::create(&bed.env, Path::new(DIR), &small(), 1).expect("creates");
    commit(&log, &body(0, 100));
    (1..3).for_each(|n| drop(log.append(&body(n, 100), 1)));
    drop(log);
    bed.remove("STATUS");
    bed.edit(&log_name(1), |bytes| {
        bytes[20] ^= 1;
        bytes[128 + 184 + 70] ^= 1;
    });
    let found = salvage(&bed);
    assert_eq!(bodies(&found), [body(0, 100)]);
    let doubtful: Vec<u64> = found.in_doubt.iter().map(|frame| frame.first_seq).collect();
    assert_eq!(doubtful, [1 << 40 | 3]);
}

/// Frames behind a hole whose copies are in a file without a header: each is found again.
#[test]
fn many_frames_behind_a_hole_are_believed_by_their_copies() {
    let bed = Bed::new(14);
    let opts = LogOptions {
        file_bytes_max: 64 << 20,
        ..small()
    };
    let log = Log::create(&bed.env, Path::new(DIR), &opts, 1).expect("creates");
    let frames = 3_000_u64;
    (0..frames).for_each(|n| drop(log.append(&n.to_le_bytes(), 1)));
    drop(log);
    let second = Log::recover(&bed.env, Path::new(DIR), &opts);
    drop(second.expect("opens").start(2).expect("starts"));
    bed.remove("STATUS");
    bed.edit(&log_name(1), |bytes| bytes[128 + 70] ^= 1);
    bed.edit(&log_name(2), |bytes| bytes[20] ^= 1);
    let found = salvage(&bed);
    assert_eq!(found.frames.len() as u64, frames);
    let in_first = found.frames.iter().filter(|frame| frame.file == 1);
    assert_eq!(in_first.count() as u64, frames - 1);
    assert!(found.in_doubt.is_empty());
}
