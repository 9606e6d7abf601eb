//! Does a segment say of itself what the manifest says of it, and are its deaths possible?

use std::fmt::Debug;
use std::io::ErrorKind as IoKind;

use chronolith_compaction::{Bucket, bucket_of};
use chronolith_segments::format::FORMAT_VERSION;
use chronolith_segments::{Description, Partition, Scrub, Segment, SegmentError, TokenCounter};
use chronolith_vfs::is_refusal;

use super::look::{Generation, Looked};
use super::report::{FindingKind, VerifyFinding};
use super::run::Run;
use crate::manifest::deletes::{DeadRow, entry_offset};
use crate::manifest::names::{DataKind, DataName, SEGMENTS_DIR};
use crate::manifest::{Manifest, SegmentEntry};
use crate::spaces::Spaces;

/// Verifies one segment with its delete set. True where it is sound, so that its rows may be
/// compared with those of others.
pub(super) fn check(run: &mut Run<'_>, generation: &Generation, looked: &Looked) -> bool {
    let name = DataName::new(looked.entry.file_number, DataKind::Segment).shown();
    let (mut blocks, mut is_sound) = (0, false);
    if let Some(segment) = &looked.segment {
        let counter = generation.shared.token_counter;
        let described = segment.describe();
        for message in contradictions(&generation.manifest, &looked.entry, &described, counter) {
            run.find(VerifyFinding::damage(&name, "footer", message));
        }
        let scrub = scrub(run, generation, segment);
        blocks = scrub.blocks;
        // What the manifest says wrong of it does not make its rows unreadable.
        is_sound = scrub.findings.is_empty();
        run.rows(u64::from(segment.zone().rows));
        run.scrubbed(&name, scrub);
    } else {
        let (vfs, dir) = (
            &*generation.shared.env.vfs,
            generation.shared.segments_dir(),
        );
        // Why it does not open is known; this finds what else is wrong with it.
        if let Ok(scrub) = Segment::scrub_blocks(vfs, &dir, looked.entry.file_number) {
            blocks = scrub.blocks;
            run.scrubbed(&name, scrub);
        }
    }
    run.file(name, "segment", looked.entry.bytes, blocks);
    check_dead(run, generation, looked, is_sound);
    is_sound
}

/// Reads the blocks through positioned reads first: a sector that cannot be read is an error
/// there and a signal that ends the process under a mapping.
fn scrub(run: &mut Run<'_>, generation: &Generation, segment: &Segment) -> Scrub {
    let shared = &generation.shared;
    let number = segment.meta().file.file_number;
    match Segment::scrub_blocks(&*shared.env.vfs, &shared.segments_dir(), number) {
        Ok(scrub) if !scrub.findings.is_empty() => return scrub,
        // Gone meanwhile: the writer has compacted it away, and the open handle reads on.
        Err(SegmentError::Io { source, .. }) if source.kind() == IoKind::NotFound => {}
        // No second descriptor is to be had, which says nothing about the file.
        Err(SegmentError::Io { source, .. }) if is_refusal(&source) => {}
        Err(SegmentError::Io { source, .. }) => {
            return Scrub {
                blocks: 0,
                findings: vec![chronolith_segments::Finding {
                    file: segment.file_name().to_owned(),
                    section: "file",
                    offset: 0,
                    message: format!("cannot be read: {source}"),
                }],
            };
        }
        Ok(_) | Err(_) => {}
    }
    segment.verify_content(&mut |bytes| run.within_file(bytes))
}

/// Verifies a segment that no manifest tells about, by its own account.
pub(super) fn check_unreferenced(
    run: &mut Run<'_>,
    segment: Result<Segment, SegmentError>,
    number: u64,
) {
    let name = format!(
        "{SEGMENTS_DIR}/{}",
        DataName::new(number, DataKind::Segment).format()
    );
    match segment {
        Ok(segment) => {
            let scrub = segment.verify_content(&mut |bytes| run.within_file(bytes));
            let blocks = scrub.blocks;
            run.rows(u64::from(segment.zone().rows));
            run.scrubbed(&name, scrub);
            run.file(name, "segment", segment.meta().file.bytes, blocks);
        }
        Err(error) => {
            run.find(VerifyFinding::damage(&name, "file", error.to_string()));
            run.file(name, "segment", 0, 0);
        }
    }
}

/// Everything in which a segment's footer and the manifest differ.
pub(super) fn contradictions(
    manifest: &Manifest,
    entry: &SegmentEntry,
    described: &Description,
    counter: TokenCounter,
) -> Vec<String> {
    let mut said = Said::default();
    said.of_rows(entry, described);
    said.of_settings(manifest, described, counter);
    let mut found = said.differently;
    found.extend(misplaced(manifest, entry));
    found.extend(lineage(manifest, entry, &described.lineage));
    found
}

/// What file and manifest say differently of one thing.
#[derive(Default)]
struct Said {
    differently: Vec<String>,
}

impl Said {
    /// Of anything, compared as it is shown: file and manifest have types of their own.
    fn of(&mut self, what: &str, of_file: impl Debug, of_manifest: impl Debug) {
        self.of_name(what, &format!("{of_file:?}"), &format!("{of_manifest:?}"));
    }

    /// Of a name, which is shown as it is.
    fn of_name(&mut self, what: &str, of_file: &str, of_manifest: &str) {
        if of_file != of_manifest {
            let message = format!("{what} {of_file}, the manifest says {of_manifest}");
            self.differently.push(message);
        }
    }

    fn of_rows(&mut self, entry: &SegmentEntry, described: &Description) {
        let (zone, bucket) = (&described.meta.zone, &described.meta.bucket);
        self.of("rows", zone.rows, entry.rows);
        self.of("seqs", zone.commit_seq, (entry.first_seq, entry.last_seq));
        let event_time_us = (entry.event_time_min_us, entry.event_time_max_us);
        self.of("event times", zone.event_time_us, event_time_us);
        self.of(
            "bucket",
            (bucket.level, bucket.start_us, bucket.end_us),
            (entry.level, entry.bucket_start_us, entry.bucket_end_us),
        );
    }

    fn of_settings(&mut self, manifest: &Manifest, described: &Description, counter: TokenCounter) {
        let settings = &manifest.settings;
        let of_more = settings.spaces.is_some() && described.format_version == FORMAT_VERSION;
        if !of_more {
            self.of(
                "format version",
                described.format_version,
                settings.segment_format,
            );
        }
        self.of_name("analyzer", &described.analyzer_id, &settings.analyzer);
        self.of("token counter", described.token_counter, counter);
        let spaces = Spaces::of(settings, &manifest.store_id);
        let of_file = described.spaces.iter().map(|(own, _)| own);
        self.differently.extend(spaces.contradiction(of_file));
    }
}

/// A bucket that is none of the store's ladder.
fn misplaced(manifest: &Manifest, entry: &SegmentEntry) -> Option<String> {
    let own = Bucket {
        level: entry.level,
        start_us: entry.bucket_start_us,
        end_us: entry.bucket_end_us,
    };
    let settings = &manifest.settings;
    let wanted = bucket_of(
        entry.event_time_min_us,
        usize::from(entry.level),
        settings.bucket_base_us,
        &settings.bucket_ladder,
    );
    (own != wanted)
        .then(|| format!("bucket {own:?} is none of the ladder's; its rows lie in {wanted:?}"))
}

/// A segment replaces older ones, and none that is still live.
fn lineage(manifest: &Manifest, entry: &SegmentEntry, replaced: &[u64]) -> Vec<String> {
    let mut found = Vec::new();
    for number in replaced {
        let is_live = manifest
            .segments
            .binary_search_by_key(number, |segment| segment.file_number)
            .is_ok();
        if is_live {
            found.push(format!(
                "it replaced segment {number:016x}, which the manifest still names"
            ));
        }
        if *number >= entry.file_number {
            found.push(format!(
                "it replaced segment {number:016x}, which is not older"
            ));
        }
    }
    found
}

fn check_dead(run: &mut Run<'_>, generation: &Generation, looked: &Looked, is_sound: bool) {
    let Some(side) = &looked.entry.deletes else {
        return;
    };
    let name = DataName::new(side.file_number, DataKind::Deletes).shown();
    let flushed_seq = generation.manifest.flushed_seq;
    if let Some(segment) = looked.segment.as_ref().filter(|_| is_sound) {
        let seq_of = |row| segment.fields(row).ok().map(|fields| fields.commit_seq);
        for (offset, message) in impossible_deaths(&looked.dead, flushed_seq, seq_of) {
            let (kind, offset) = (FindingKind::Damage, Some(offset));
            run.find(VerifyFinding::new(kind, &name, "deletes", offset, message));
        }
    }
    run.file(name, "delete set", side.bytes, 0);
}

/// Deaths that cannot have happened, with their offset in the file. Rows below the segment's
/// count and in order, and known kinds, are what reading the file has checked.
fn impossible_deaths(
    dead: &[DeadRow],
    flushed_seq: u64,
    seq_of: impl Fn(u32) -> Option<u64>,
) -> Vec<(u64, String)> {
    let mut found = Vec::new();
    for (index, death) in (0_u64..).zip(dead) {
        let offset = entry_offset(index);
        if death.seq > flushed_seq {
            let message = format!(
                "row {} died at seq {}, the manifest has settled {flushed_seq}",
                death.row, death.seq
            );
            found.push((offset, message));
        }
        if let Some(born) = seq_of(death.row).filter(|born| *born >= death.seq) {
            let message = format!(
                "row {} died at seq {} and was written at {born}",
                death.row, death.seq
            );
            found.push((offset, message));
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_death_is_settled_and_after_the_birth() {
        let dead = |row, seq| DeadRow {
            row,
            seq,
            kind: 1,
            valid_to_us: 0,
        };
        let born = |row: u32| Some(u64::from(row) * 10);
        assert_eq!(impossible_deaths(&[dead(0, 5), dead(1, 11)], 11, born), []);
        let found = impossible_deaths(&[dead(0, 5), dead(1, 10), dead(2, 40)], 30, born);
        let offsets: Vec<u64> = found.iter().map(|(offset, _)| *offset).collect();
        assert_eq!(offsets, [96, 120], "{found:?}");
    }
}
