//! Segment files: opened, read whole, scrubbed and merged.
//!
//! Checksums are made from the documented layout, not with the writer's code.

use std::ops::{ControlFlow, Range};
use std::path::Path;

use chronolith_compaction::{Clusterer, RunPolicy};
use chronolith_segments::format::{FORMAT_VERSION, ONE_SPACE};
use chronolith_segments::{
    Description, MergeInput, NumberedSpace, Partition, ReadMode, SalvagedSegment, ScopeRanges,
    ScopeSelector, Segment, SegmentError, SegmentSpec, SpaceNumber, TermVisit, TimeOrder,
    VectorRuns, segment_file_name, write_segment, write_segment_clustered,
};

use super::Forge;
use super::disk::{env, fixed, index, number, put};

/// Corrects and rebuilds a segment's checksums.
pub(super) const FORGE: Forge = Forge {
    patch: |bytes| patch(bytes),
    take_apart,
    put_together,
};

const DIR: &str = "/segments";
const BLOCK: usize = 16 << 10;
const HEADER: usize = 64;
const TRAILER: usize = 48;
const ENTRY: usize = 24;
/// Store id and file number in the header.
const IDENTITY: Range<usize> = 12..36;
/// Rows that one run looks at, so that a large count costs no time: opening checks the rest.
const ROWS_READ: u32 = 48;
/// Terms whose postings one run reads on their own; the stream reads all.
const TERMS_READ: usize = 12;

fn selectors(texts: &[&str]) -> ScopeRanges {
    let parsed: Vec<ScopeSelector> = texts
        .iter()
        .map(|text| ScopeSelector::parse(text).expect("a selector"))
        .collect();
    ScopeRanges::new(&parsed).expect("not empty")
}

/// Opens the segment, in the mode that its length says, and reads everything.
pub(super) fn run(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let file_number = number(bytes, 28, 8).unwrap_or(0);
    put(
        &disk,
        &Path::new(DIR).join(segment_file_name(file_number)),
        bytes,
    );
    let _ = Description::read(&*env.vfs, DIR.as_ref(), file_number);
    let mode = match bytes.len() % 2 {
        0 => ReadMode::Mapped,
        _ => ReadMode::Positioned,
    };
    let opened = Segment::open_unreferenced(&*env.vfs, DIR.as_ref(), file_number, mode);
    opened.is_ok_and(|segment| {
        read_all(&segment);
        true
    })
}

fn read_all(segment: &Segment) {
    segment.describe();
    segment.verify_all();
    let _ = read_scopes(segment);
    let _ = read_terms(segment);
    let _ = read_tags(segment);
    for row in 0..segment.zone().rows.min(ROWS_READ) {
        read_row(segment, row);
    }
    // A row outside is an error, never another row's data.
    assert!(segment.id(segment.zone().rows).is_err());
}

/// Every answer on its own: damage in one part must not hide another's.
fn read_row(segment: &Segment, row: u32) {
    let _ = segment.fields(row);
    let _ = segment.stored(row);
    let _ = segment.source_id(row);
    let _ = segment.tags(row);
    for own in segment.spaces() {
        let _ = segment.vector(own.number, row);
    }
    let scope = segment.scope_key(row).map(|key| key.to_vec());
    if let (Ok(scope), Ok(id)) = (scope, segment.id(row)) {
        let _ = segment.find(&scope, &id, u64::MAX);
    }
}

fn read_scopes(segment: &Segment) -> Result<(), SegmentError> {
    let (first, last) = segment.zone().commit_seq;
    for at_seq in [u64::MAX, first.midpoint(last), 0] {
        let _ = segment.scopes(at_seq);
        for texts in [
            &["/"][..],
            &["user/ana"],
            &["=user/ana"],
            &["team", "user/ana/work+up"],
            &["none"],
        ] {
            for run in segment.select(&selectors(texts), at_seq)? {
                assert!(run.rows.end <= segment.zone().rows, "a run outside");
                let _ = segment.population(&run);
                for order in [TimeOrder::OldestFirst, TimeOrder::NewestFirst] {
                    let _ = segment.walk_time(&run, i64::MIN, i64::MAX, order, &mut |row, _| {
                        assert!(run.rows.contains(&row), "a row outside the run");
                        ControlFlow::Continue(())
                    });
                }
                if let Ok(Some(rows)) = segment.tag_rows("ops") {
                    segment.rows_in_run(&run, &rows);
                }
                for own in segment.spaces() {
                    read_vectors(segment, own, &run.rows);
                }
            }
        }
    }
    Ok(())
}

fn read_vectors(segment: &Segment, own: &NumberedSpace, rows: &Range<u32>) {
    let query = vec![0.5; own.space.dim as usize];
    if let Ok(Some(runs)) = segment.vector_runs(own.number) {
        read_runs(&query, runs, rows);
    }
    let _ = segment.codes(own.number);
    if let Some(vectors) = segment.vectors_of(own.number) {
        let (mut found, mut scores) = (Vec::new(), Vec::new());
        let rows = rows.start..rows.end.min(rows.start + ROWS_READ);
        let listed: Vec<u32> = rows.clone().collect();
        let _ = vectors.score_range(&query, rows, &mut found, &mut scores);
        let _ = vectors.score_rows(&query, &listed, &mut found, &mut scores);
    }
}

fn read_runs(query: &[f32], runs: &VectorRuns, rows: &Range<u32>) {
    let mut scores = Vec::new();
    for scope in runs.scopes_in(rows) {
        let mut next = scope.rows.start;
        for run in scope.runs.clone() {
            let of_run = runs.rows_of(scope, run);
            assert!(
                of_run.start == next && next < of_run.end,
                "runs have no gap"
            );
            assert!(runs.radius(run) >= 0.0, "a radius is a length");
            next = of_run.end;
        }
        assert_eq!(next, scope.rows.end, "runs end with their scope");
        let _ = runs.score(query, scope.runs.clone(), &mut scores);
        let _ = runs.centroids(scope.runs.clone());
    }
}

fn read_terms(segment: &Segment) -> Result<(), SegmentError> {
    let runs = segment.select(&selectors(&["/"]), u64::MAX)?;
    let (mut rows, mut freqs) = (Vec::new(), Vec::new());
    let mut known = Vec::new();
    let mut stream = segment.terms()?;
    // An error in one list does not end the stream.
    while let Some(term) = stream.next_term()? {
        known.push(term.to_vec());
        if stream.read_postings(&mut rows, &mut freqs).is_ok() {
            assert!(rows.is_sorted_by(|a, b| a < b), "postings ascend");
        }
    }
    known.push(b"absent".to_vec());
    let mut visits = 0;
    let _ = segment.terms_from(b"b", &mut |term, _| {
        visits += 1;
        match visits % 3 {
            0 => TermVisit::SkipTo([term, b"z"].concat()),
            _ => TermVisit::Continue,
        }
    });
    for term in known.iter().rev().take(TERMS_READ) {
        for run in &runs {
            for end in [1, 7, 100, u32::MAX] {
                let Ok(Some(mut postings)) = segment.postings(term, run) else {
                    continue;
                };
                rows.clear();
                freqs.clear();
                let _ = postings.bounds_until(end);
                let _ = postings.read_until(end, &mut rows, &mut freqs);
                for row in [end, end.saturating_add(3), 250] {
                    let _ = postings.freq_at(row);
                }
                let _ = postings.read_until(u32::MAX, &mut rows, &mut freqs);
            }
        }
    }
    Ok(())
}

fn read_tags(segment: &Segment) -> Result<(), SegmentError> {
    for tag in ["ops", "kind-1", "kind-2", "absent", ""] {
        if let Ok(Some(rows)) = segment.tag_rows(tag) {
            assert!(rows.max().is_none_or(|row| row < segment.zone().rows));
        }
    }
    segment.untagged_rows().map(|_| ())
}

/// Merges the segment with itself as a compaction does.
pub(super) fn run_merge(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let file_number = number(bytes, 28, 8).unwrap_or(0);
    put(
        &disk,
        &Path::new(DIR).join(segment_file_name(file_number)),
        bytes,
    );
    let dir = Path::new(DIR);
    let Ok(segment) = Segment::open_unreferenced(&*env.vfs, dir, file_number, ReadMode::Mapped)
    else {
        return false;
    };
    let spec = SegmentSpec {
        store_id: segment.store_id(),
        file_number: file_number ^ 1,
        analyzer_id: "default-2/english".into(),
        spaces: segment.spaces().cloned().collect(),
        layout: segment
            .spaces()
            .last()
            .map_or(SpaceNumber::MAIN, |own| own.number),
        token_counter: segment.token_counter(),
        bucket: segment.bucket(),
        lineage: vec![file_number],
        train_dictionary: false,
    };
    let input = MergeInput {
        partition: &segment,
        keep: (0..segment.zone().rows)
            .filter(|row| row % 5 != 1)
            .collect(),
    };
    let policy = RunPolicy {
        rows_min: 2,
        rows_max: 8,
    };
    let clusterer = Clusterer::new(policy, 7);
    let (vfs, inputs) = (&*env.vfs, [input]);
    let clustered = write_segment_clustered(vfs, dir, &spec, &inputs, &|| true, &clusterer);
    let other = SegmentSpec {
        file_number: file_number ^ 2,
        ..spec
    };
    // Both ways have to get through, whatever the other says.
    let plain = write_segment(vfs, dir, &other, &inputs);
    clustered.is_ok() && plain.is_ok()
}

/// Opens what is left of the segment, as a repair does, and reads every row that it can.
pub(super) fn run_salvage(bytes: &[u8]) -> bool {
    let (env, disk) = env();
    let file_number = number(bytes, 28, 8).unwrap_or(0);
    let path = Path::new(DIR).join(segment_file_name(file_number));
    put(&disk, &path, bytes);
    // The store is known from elsewhere: a header that is damaged does not say which it is.
    let store_id = match bytes.len() % 2 {
        0 => fixed(bytes.get(12..28).unwrap_or_default()),
        _ => super::seal::store_id(),
    };
    let opened = SalvagedSegment::open(&*env.vfs, DIR.as_ref(), file_number, store_id);
    let Ok(segment) = opened else { return false };
    segment.describe();
    let rows = segment.meta().zone.rows;
    for row in 0..rows.min(ROWS_READ) {
        let identity = segment.identity(row);
        if let Ok((record, _, seq)) = segment.record(row) {
            assert_eq!(identity.id.as_ref(), Some(&record.id), "of one row");
            assert_eq!(identity.commit_seq, Some(seq), "of one row");
        }
    }
    assert!(segment.record(rows).is_err(), "a row outside");
    true
}

/// Where the parts of a file lie, as it says itself.
struct Layout {
    /// Kind and range of each section.
    sections: Vec<(u16, Range<usize>)>,
    table: usize,
    footer: usize,
    trailer: usize,
}

fn layout(bytes: &[u8]) -> Option<Layout> {
    let trailer = bytes.len().checked_sub(TRAILER)?;
    let table = index(bytes, trailer, 8)?;
    let footer = table.checked_add(index(bytes, trailer + 8, 4)?)?;
    if table < HEADER || footer > trailer {
        return None;
    }
    let count = index(bytes, footer, 4)?.min(64);
    let sections = (0..count)
        .filter_map(|section| {
            let at = footer + 4 + section * ENTRY;
            let kind = u16::try_from(number(bytes, at, 2)?).ok()?;
            let start = index(bytes, at + 8, 8)?;
            let end = start.checked_add(index(bytes, at + 16, 8)?)?;
            (end <= table).then_some((kind, start..end))
        })
        .collect();
    Some(Layout {
        sections,
        table,
        footer,
        trailer,
    })
}

fn block_checksums(identity: &[u8], kind: u16, section: &[u8], out: &mut Vec<u8>) {
    for (block, content) in section.chunks(BLOCK).enumerate() {
        let mut hasher = crc32fast::Hasher::new();
        hasher.update(identity);
        hasher.update(&kind.to_le_bytes());
        hasher.update(&(block as u64).to_le_bytes());
        hasher.update(content);
        out.extend_from_slice(&hasher.finalize().to_le_bytes());
    }
}

fn patch(bytes: &mut [u8]) {
    let Some(layout) = layout(bytes) else {
        return;
    };
    let mut checksums = Vec::new();
    for (kind, range) in &layout.sections {
        block_checksums(
            &bytes[IDENTITY],
            *kind,
            &bytes[range.clone()],
            &mut checksums,
        );
    }
    for (place, byte) in bytes[layout.table..layout.footer]
        .iter_mut()
        .zip(&checksums)
    {
        *place = *byte;
    }
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..64].copy_from_slice(&crc.to_le_bytes());
    let mut hasher = xxhash_rust::xxh3::Xxh3::new();
    hasher.update(&bytes[..HEADER]);
    hasher.update(&bytes[layout.table..layout.trailer]);
    let trailer = layout.trailer;
    bytes[trailer + 16..trailer + 32].copy_from_slice(&hasher.digest128().to_le_bytes());
    let crc = crc32fast::hash(&bytes[trailer..trailer + 36]);
    bytes[trailer + 36..trailer + 40].copy_from_slice(&crc.to_le_bytes());
}

/// Identity, footer behind its section table, then each section behind its kind.
fn take_apart(bytes: &[u8]) -> Option<Vec<Vec<u8>>> {
    let layout = layout(bytes)?;
    let facts = layout.footer + 4 + layout.sections.len() * ENTRY;
    let mut parts = vec![
        bytes[IDENTITY].to_vec(),
        bytes.get(facts..layout.trailer)?.to_vec(),
    ];
    for (kind, range) in layout.sections {
        parts.push([&kind.to_le_bytes(), &bytes[range]].concat());
    }
    Some(parts)
}

/// The format version by what the facts say of vector spaces: their flag stands behind the
/// analyzer's name, which is short.
fn version_of(facts: &[u8]) -> u32 {
    const LISTED: u8 = 2;
    let name = facts.first().copied().map_or(0, usize::from);
    match facts.get(1 + name) {
        Some(&LISTED) => FORMAT_VERSION,
        _ => ONE_SPACE,
    }
}

fn put_together(parts: &[Vec<u8>]) -> Vec<u8> {
    let part = |at: usize| parts.get(at).map_or(&[][..], Vec::as_slice);
    let version = version_of(part(1));
    let mut bytes = b"chronseg".to_vec();
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&fixed::<24>(part(0)));
    bytes.resize(HEADER, 0);
    let identity = bytes[IDENTITY].to_vec();
    let (mut table, mut entries, mut count) = (Vec::new(), Vec::new(), 0_u32);
    for section in parts.iter().skip(2) {
        let (kind, content) = section.split_at(section.len().min(2));
        let kind = u16::from_le_bytes(fixed(kind));
        bytes.resize(bytes.len().next_multiple_of(64), 0);
        block_checksums(&identity, kind, content, &mut table);
        let blocks = u32::try_from(content.len().div_ceil(BLOCK)).expect("small");
        entries.extend_from_slice(&kind.to_le_bytes());
        entries.extend_from_slice(&[0, 0]);
        entries.extend_from_slice(&blocks.to_le_bytes());
        entries.extend_from_slice(&(bytes.len() as u64).to_le_bytes());
        entries.extend_from_slice(&(content.len() as u64).to_le_bytes());
        bytes.extend_from_slice(content);
        count += 1;
    }
    let footer = [&count.to_le_bytes(), &entries[..], part(1)].concat();
    let tail = bytes.len() as u64;
    bytes.extend_from_slice(&table);
    bytes.extend_from_slice(&footer);
    bytes.extend_from_slice(&tail.to_le_bytes());
    for len in [table.len(), footer.len()] {
        bytes.extend_from_slice(&u32::try_from(len).expect("small").to_le_bytes());
    }
    bytes.extend_from_slice(&[0; 16]);
    bytes.extend_from_slice(&version.to_le_bytes());
    bytes.extend_from_slice(&[0; 4]);
    bytes.extend_from_slice(b"gesnorhc");
    patch(&mut bytes);
    bytes
}
