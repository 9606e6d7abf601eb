//! Goal: a file that states less than its postings hold is found out before a sum goes wrong.
//!
//! What impacts may sum up to is known from the bounds that a file states, and the sums are as
//! wide as that asks. So an impact above its list's bound is damage that no checksum shows: here
//! a segment is forged, under right checksums and named by the manifest, and asked in every way
//! in which postings are read.

use std::path::Path;

use chronolith::{
    Batch, Error, Hit, ReadMode, Record, Request, Response, Scope, ScopeSelector, SegmentError,
    SparseCounters, Store,
};
use chronolith_segments::Segment;
use chronolith_segments::format::SectionKind;
use chronolith_tests::fuzz::{put_segment, target};
use chronolith_vfs::{CrashImage, Env, SimVfs};

use super::fixture::{DIR, START_US, options};

/// As many as make rows worth picking.
const ROWS: u32 = 1200;
/// The row that has everything, and the next two with the token that few have.
const PICKED: u32 = 7;
const FEW: [u32; 3] = [PICKED, 407, 807];
/// Weights in steps of 1/256: as they stand in postings and bounds.
const LONG_STEPS: u16 = 200;
const SHORT_STEPS: u8 = 101;

fn record(at: u32) -> Record {
    let scope = Scope::parse("user/ana").expect("a scope");
    let text = match at {
        PICKED => "rare scarce",
        _ => "plain words",
    };
    let time_us = START_US + i64::from(at) * 1_000_000;
    let mut record = Record::new(scope, format!("r{at}"), time_us, text);
    record.impacts = vec![("long".into(), f32::from(LONG_STEPS) / 256.0)];
    if FEW.contains(&at) {
        let weight = f32::from(SHORT_STEPS) / 256.0;
        record.impacts.push(("short".into(), weight));
    }
    record
}

/// A closed store of one segment.
fn whole() -> (Env, SimVfs) {
    let (env, disk, clock) = Env::sim(7);
    clock.set_us(START_US + 90 * 86_400_000_000);
    let store = Store::open(DIR, options(&env, ReadMode::Mapped)).expect("created");
    let mut batch = Batch::new();
    for at in 0..ROWS {
        batch.upsert(record(at));
    }
    store.write(batch).expect("written");
    store.flush().expect("flushed");
    store.close().expect("closed");
    (env, disk)
}

fn path_of_segment(disk: &SimVfs) -> std::path::PathBuf {
    let mut files = disk.files().into_iter();
    let is_segment = |path: &std::path::PathBuf| path.extension().is_some_and(|e| e == "seg");
    files.find(is_segment).expect("a segment")
}

/// Replaces the one place of `from` in a section by `to`.
fn forge(segment: &[u8], kind: SectionKind, from: &[u8], to: &[u8]) -> Vec<u8> {
    let forge = target("segment")
        .forge
        .expect("checksums can be made right");
    let mut parts = (forge.take_apart)(segment).expect("a segment");
    let kind = (kind as u16).to_le_bytes();
    let mut sections = parts.iter_mut().skip(2);
    let section = sections.find(|part| part.starts_with(&kind));
    let section = section.expect("the section is there");
    let places: Vec<usize> = section
        .windows(from.len())
        .enumerate()
        .filter(|(_, bytes)| *bytes == from)
        .map(|(at, _)| at)
        .collect();
    assert_eq!(places.len(), 1, "one place is meant");
    section[places[0]..places[0] + to.len()].copy_from_slice(to);
    (forge.put_together)(&parts)
}

/// The list that few rows have says of its first posting more than its bound.
fn raise_posting(segment: &[u8]) -> Vec<u8> {
    let steps = SHORT_STEPS - 2;
    // Gaps and frequencies as varints: 7, then twice 399 rows between, which is 798 there.
    let gap = [0x80 | 30, 6];
    let first = u8::try_from(PICKED << 1).expect("small");
    let list = [first, steps, gap[0], gap[1], steps, gap[0], gap[1], steps];
    let mut forged = list;
    forged[1] = steps + 20;
    forge(segment, SectionKind::Postings, &list, &forged)
}

/// The list that all rows have states half of its bound.
fn lower_bound(segment: &[u8]) -> Vec<u8> {
    let header = |steps: u16| [&ROWS.to_le_bytes()[..], &steps.to_le_bytes()].concat();
    forge(
        segment,
        SectionKind::PostingsSkip,
        &header(LONG_STEPS),
        &header(LONG_STEPS / 2),
    )
}

fn within() -> Request {
    let selector = ScopeSelector::parse("user/ana").expect("a scope");
    Request::within(selector).k(5)
}

/// A way of reading postings: a request, and whether that is the way it goes.
type Way = (
    &'static str,
    fn(Request) -> Request,
    fn(&SparseCounters) -> bool,
);

const WINDOWS: fn(&SparseCounters) -> bool =
    |seen| seen.windows > 0 && seen.postings > 0 && seen.rows_picked == 0 && seen.rows_asked == 0;
const PICKED_ROWS: fn(&SparseCounters) -> bool = |seen| seen.rows_picked > 0 && seen.windows == 0;
const ASKED_ROWS: fn(&SparseCounters) -> bool = |seen| seen.windows > 0 && seen.rows_asked > 0;

fn near_picked(request: Request) -> Request {
    let picked_us = START_US + i64::from(PICKED) * 1_000_000;
    request.since_us(picked_us - 1).until_us(picked_us + 1)
}

/// Of the list that few rows have.
const OF_SHORT: [Way; 3] = [
    ("windows", |r| r.impact("short", 1.0), WINDOWS),
    (
        "picked rows",
        |r| near_picked(r.impact("short", 1.0).impact("long", 1.0)),
        PICKED_ROWS,
    ),
    (
        "asked rows",
        |r| r.require("rare").impact("short", 1.0).impact("long", 1.0),
        ASKED_ROWS,
    ),
];

/// Of the list that all rows have.
const OF_LONG: [Way; 3] = [
    ("windows", |r| r.impact("long", 1.0), WINDOWS),
    (
        "picked rows",
        |r| near_picked(r.impact("long", 1.0)),
        PICKED_ROWS,
    ),
    (
        "asked rows",
        |r| r.require("rare").impact("long", 1.0),
        ASKED_ROWS,
    ),
];

/// Words whose ceilings fit no 31 bits: every posting is scored, and no bound is asked.
fn exhaustive(request: Request) -> Request {
    let request = request.weighted("rare", 100.0).weighted("scarce", 100.0);
    request.impact("long", 1.0).impact("short", 1.0)
}

fn ask(env: &Env, request: &Request) -> Vec<Result<Response, Error>> {
    let modes = [ReadMode::Mapped, ReadMode::Positioned];
    let ask = |mode| {
        let store = Store::open(DIR, options(env, mode)).expect("opens: no bound is asked yet");
        store.snapshot().retrieve(request)
    };
    modes.into_iter().map(ask).collect()
}

fn hits(response: Result<Response, Error>) -> Vec<(String, u64)> {
    let hits = response.expect("an answer").hits;
    let shown = |hit: Hit| (hit.id, hit.score.to_bits());
    hits.into_iter().map(shown).collect()
}

/// A copy of the disk whose segment is forged, and the segment's name.
fn forged(env: &Env, disk: &SimVfs, forge: fn(&[u8]) -> Vec<u8>) -> (Env, String) {
    let disk = disk.crash(CrashImage::ProcessKill);
    let path = path_of_segment(&disk);
    let bytes = forge(&disk.content(&path).expect("there"));
    let env = env.with_vfs(disk.clone());
    put_segment(&env, &disk, Path::new(DIR), &bytes);
    let name = path.file_name().expect("a file").to_string_lossy();
    (env, name.into_owned())
}

#[test]
fn an_impact_above_its_lists_bound_is_named_however_it_is_read() {
    let (env, disk) = whole();
    for (what, forge, ways) in [
        ("short", raise_posting as fn(&[u8]) -> Vec<u8>, OF_SHORT),
        ("long", lower_bound, OF_LONG),
    ] {
        let (bad, name) = forged(&env, &disk, forge);
        for (way, request, goes_so) in ways {
            let request = request(within());
            for response in ask(&env, &request) {
                let response = response.expect("sound");
                assert!(!response.hits.is_empty(), "{what}, {way}");
                let counters = &response.plan.layout.sparse;
                assert!(goes_so(counters), "{what}, {way}: {counters:?}");
            }
            for response in ask(&bad, &request) {
                let error = response.expect_err("an impact above the bound");
                let Error::Segment(SegmentError::Corrupt {
                    file,
                    section,
                    message,
                    ..
                }) = &error
                else {
                    panic!("{what}, {way}: {error}");
                };
                assert_eq!((file, *section), (&name, "postings"), "{what}, {way}");
                assert!(message.contains("above its list's bound"), "{message}");
            }
        }
    }
}

/// Where the sums are wide enough for anything no bound is believed: a bound that is too low
/// changes no answer.
#[test]
fn a_bound_that_is_too_low_changes_no_exhaustive_answer() {
    let (env, disk) = whole();
    let request = exhaustive(within());
    let expected: Vec<_> = ask(&env, &request).into_iter().map(hits).collect();
    assert_eq!(expected[0][0].0, format!("r{PICKED}"));
    let (bad, _) = forged(&env, &disk, lower_bound);
    for (response, expected) in ask(&bad, &request).into_iter().zip(expected) {
        let counters = response.as_ref().map(|found| found.plan.layout.sparse);
        assert_eq!(counters.map_or(1, |counters| counters.windows), 0);
        assert_eq!(hits(response), expected);
    }
}

#[test]
fn a_scrub_finds_both() {
    let (env, disk) = whole();
    for (forge, is_damaged) in [
        (raise_posting as fn(&[u8]) -> Vec<u8>, true),
        (lower_bound, true),
        (<[u8]>::to_vec, false),
    ] {
        let (bad, name) = forged(&env, &disk, forge);
        let number = u64::from_str_radix(name.trim_end_matches(".seg"), 16).expect("a number");
        let dir = Path::new(DIR).join("segments");
        let segment = Segment::open_unreferenced(&*bad.vfs, &dir, number, ReadMode::Mapped);
        let scrub = segment.expect("opens").verify_all();
        assert_eq!(!scrub.findings.is_empty(), is_damaged, "{scrub:?}");
    }
}
