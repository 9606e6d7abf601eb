//! Rows that a merge lays out by what their vectors look like: order, runs, and damage in them.

use std::cell::RefCell;
use std::panic::{AssertUnwindSafe, catch_unwind};

use chronolith_segments::{
    ClusterRows, Clustering, MergeInput, Partition, ProbeShares, ReadMode, Segment, SegmentError,
    SegmentSpec, SpaceNumber, VectorFormat, VectorRows, VectorRuns, Written, dot,
    segment_file_name, write_segment_clustered,
};

use crate::format::{layout, repair};
use crate::memory::MemoryVfs;
use crate::naive::{DIM, Naive, Row, dir, open, spec};
use crate::oracle::{answers, check};

/// Puts odd first components behind even ones, by their bits; notes the parents it was shown.
#[derive(Debug, Default)]
pub struct ByParity {
    parents: RefCell<Vec<Vec<f32>>>,
}

pub const SHARES: ProbeShares = ProbeShares {
    share_95: 300_000,
    share_99: 900_000,
};

fn parity(first: f32) -> u32 {
    first.to_bits() & 1
}

impl ClusterRows for ByParity {
    fn wants(&self, vectors: u32) -> bool {
        vectors >= 4
    }

    fn cluster(
        &self,
        vectors: &dyn VectorRows,
        parents: &[f32],
        goes_on: &dyn Fn() -> bool,
    ) -> Result<Option<Clustering>, SegmentError> {
        self.parents.borrow_mut().push(parents.to_vec());
        if !goes_on() {
            return Err(SegmentError::Stopped);
        }
        let (mut runs, mut centroids) = (Vec::new(), vec![0.0; 2 * vectors.dim()]);
        let mut vector = vec![0.0; vectors.dim()];
        for at in 0..vectors.count() {
            vectors.read_into(at, &mut vector)?;
            let run = parity(vector[0]);
            centroids[run as usize * vectors.dim()..][..vectors.dim()].copy_from_slice(&vector);
            runs.push(run);
        }
        let both = runs.contains(&0) && runs.contains(&1);
        Ok(both.then_some(Clustering {
            runs,
            centroids,
            shares: SHARES,
        }))
    }
}

/// Writes all rows of one partition, laid out by [`ByParity`].
pub fn write_by_parity(vfs: &MemoryVfs, spec: &SegmentSpec, rows: Vec<Row>) -> Written {
    let naive = Naive { rows };
    let keep = (0..u32::try_from(naive.rows.len()).expect("few")).collect();
    let input = MergeInput {
        partition: &naive,
        keep,
    };
    let by = ByParity::default();
    write_segment_clustered(vfs, dir(), spec, &[input], &|| true, &by).expect("written")
}

/// The runs of a segment as text.
pub fn runs_of(segment: &Segment) -> Result<String, SegmentError> {
    let Some(runs) = segment.vector_runs(SpaceNumber::MAIN)? else {
        return Ok("no runs".to_owned());
    };
    let mut out = String::new();
    for scope in runs.scopes_in(&(0..segment.zone().rows)) {
        out += &format!("{scope:?}");
        for run in scope.runs.clone() {
            let rows = runs.rows_of(scope, run);
            let centroid = runs.centroids(run..run + 1)?;
            out += &format!(" {rows:?} {} {centroid:?}", runs.radius(run));
        }
    }
    Ok(out)
}

/// Two scopes with runs and one that has too few vectors; every fourth row has none.
fn rows() -> Vec<Row> {
    (0..60_u32)
        .map(|i| {
            let scope = ["a", "a/b", "c"][if i < 3 { 2 } else { i as usize % 2 }];
            let time_us = i64::from(i * 13 % 29) * 1000;
            let mut row = Row::plain(scope, &format!("id-{i}"), time_us, u64::from(i), "w x");
            // Small integers as bits: numbers of one size, and odd where the integer is.
            let first = f32::from_bits(0x3f00_0000 + i * 7 % 31);
            let vector = [first, 0.25, -0.5].map(f32::to_le_bytes);
            row.vector = (i % 4 != 1).then(|| vector.concat());
            row
        })
        .collect()
}

fn first_of(row: &Row) -> Option<f32> {
    let vector = row.vector.as_ref()?;
    Some(f32::from_le_bytes([
        vector[0], vector[1], vector[2], vector[3],
    ]))
}

/// Rows as a segment must hold them: with their clusters, in order.
fn laid_out(mut rows: Vec<Row>) -> Vec<Row> {
    for row in &mut rows {
        let wanted = row.scope.path() != "c";
        let cluster = first_of(row)
            .filter(|_| wanted)
            .map(|first| parity(first) + 1);
        row.fields.cluster = cluster.unwrap_or(0);
    }
    rows.sort_by(|a, b| a.place().cmp(&b.place()));
    rows
}

#[test]
fn rows_lie_by_cluster_and_answer_as_before() {
    let vfs = MemoryVfs::default();
    let written = write_by_parity(&vfs, &spec(7), rows());
    for mode in [ReadMode::Mapped, ReadMode::Positioned] {
        check(&open(&vfs, &written, mode), &laid_out(rows()));
    }
}

#[test]
fn runs_hold_the_rows_of_a_scope_that_have_a_vector() {
    let vfs = MemoryVfs::default();
    let segment = open(
        &vfs,
        &write_by_parity(&vfs, &spec(7), rows()),
        ReadMode::Mapped,
    );
    let rows = laid_out(rows());
    let runs = segment
        .vector_runs(SpaceNumber::MAIN)
        .expect("sound")
        .expect("runs");
    assert_eq!(runs.count(), 4);
    let all = 0..segment.zone().rows;
    let scopes = runs.scopes_in(&all);
    assert_eq!(scopes.len(), 2);
    let query = [0.5, 2.0, 1.0];
    for scope in scopes {
        assert_eq!(scope.shares, SHARES);
        for run in scope.runs.clone() {
            let of_run = runs.rows_of(scope, run);
            let centroid = runs.centroids(run..run + 1).expect("sound");
            assert!(runs.radius(run).is_finite());
            for row in of_run {
                let row = &rows[row as usize];
                assert_eq!(row.fields.cluster, run - scope.runs.start + 1);
                let first = first_of(row).expect("a run holds vectors alone");
                assert!(f64::from((first - centroid[0]).abs()) <= runs.radius(run));
            }
            let (mut scores, bytes) = (Vec::new(), centroid.iter().flat_map(|x| x.to_le_bytes()));
            runs.score(&query, run..run + 1, &mut scores)
                .expect("sound");
            let bytes: Vec<u8> = bytes.collect();
            assert_eq!(scores, [dot(&query, &bytes, VectorFormat::F32)]);
        }
    }
    let uncovered = |rows: std::ops::Range<u32>| runs.scopes_in(&rows).is_empty();
    assert!(
        uncovered(0..scopes[0].rows.start),
        "rows without a vector are in no run"
    );
    assert!(
        uncovered(scopes[1].rows.end..all.end),
        "a small scope has none"
    );
    assert_eq!(runs.scopes_in(&(scopes[0].rows.end - 1..all.end)), scopes);
}

#[test]
fn a_merge_shows_what_stood_for_the_rows_before() {
    let vfs = MemoryVfs::default();
    let first = open(
        &vfs,
        &write_by_parity(&vfs, &spec(7), rows()),
        ReadMode::Mapped,
    );
    let more = Naive {
        rows: rows()
            .into_iter()
            .map(|mut row| {
                row.id += "-more";
                row.fields.commit_seq += 100;
                row
            })
            .collect(),
    };
    let input = |partition| MergeInput {
        partition,
        keep: (0..60).collect(),
    };
    let inputs: [MergeInput<'_>; 2] = [input(&more as &dyn Partition), input(&first)];
    let by = ByParity::default();
    let merged = write_segment_clustered(&vfs, dir(), &spec(8), &inputs, &|| true, &by);
    let merged = open(&vfs, &merged.expect("written"), ReadMode::Mapped);
    let runs = first
        .vector_runs(SpaceNumber::MAIN)
        .expect("sound")
        .expect("runs");
    let parents = by.parents.into_inner();
    // The third scope has enough vectors only now, and had no runs.
    let expected = [runs.centroids(0..2), runs.centroids(2..4), Ok(Vec::new())];
    let expected = expected.map(|centroids| centroids.expect("sound"));
    assert_eq!(parents, expected);
    assert_eq!(merged.verify_all().findings, []);
    // Without a clusterer rows keep their numbers, and there are no runs.
    let kept = chronolith_segments::write_segment(&vfs, dir(), &spec(9), &[input(&first)]);
    let kept = open(&vfs, &kept.expect("written"), ReadMode::Mapped);
    check(&kept, &laid_out(rows()));
    assert!(
        kept.vector_runs(SpaceNumber::MAIN)
            .expect("sound")
            .is_none()
    );
}

#[test]
fn rows_of_a_scope_that_is_not_clustered_again_lose_their_numbers() {
    let vfs = MemoryVfs::default();
    let first = open(
        &vfs,
        &write_by_parity(&vfs, &spec(7), rows()),
        ReadMode::Mapped,
    );
    let input = MergeInput {
        partition: &first,
        keep: [0, 1, 27].into_iter().collect(),
    };
    let by = ByParity::default();
    let written = write_segment_clustered(&vfs, dir(), &spec(8), &[input], &|| true, &by);
    let segment = open(&vfs, &written.expect("written"), ReadMode::Mapped);
    for row in 0..segment.zone().rows {
        assert_eq!(segment.fields(row).expect("sound").cluster, 0);
    }
    assert_eq!(segment.verify_all().findings, []);
}

#[test]
fn a_stopped_clustering_leaves_nothing() {
    let vfs = MemoryVfs::default();
    let naive = Naive { rows: rows() };
    let input = MergeInput {
        partition: &naive,
        keep: (0..60).collect(),
    };
    let by = ByParity::default();
    let stopped = write_segment_clustered(&vfs, dir(), &spec(7), &[input], &|| false, &by);
    assert!(matches!(stopped, Err(SegmentError::Stopped)));
    assert_eq!(by.parents.into_inner().len(), 1, "it was asked");
    assert!(vfs.names().is_empty(), "{:?}", vfs.names());
}

fn bytes_of(rows: Vec<Row>) -> Vec<u8> {
    let vfs = MemoryVfs::default();
    write_by_parity(&vfs, &spec(7), rows);
    vfs.bytes(&dir().join(segment_file_name(7)))
}

fn part(bytes: &[u8]) -> std::ops::Range<usize> {
    let parts = layout(bytes).sections;
    let runs = parts.iter().find(|part| part.name == "vector_runs");
    runs.map(|part| part.start..part.end).expect("a section")
}

fn opened(bytes: Vec<u8>) -> Result<Segment, SegmentError> {
    let vfs = MemoryVfs::default();
    vfs.put(&dir().join(segment_file_name(7)), bytes);
    Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped)
}

#[test]
fn a_radius_that_does_not_bound_is_found() {
    let mut sound = bytes_of(rows());
    let nearer = rows().into_iter().map(|mut row| {
        // Less far from the centroid, which is another row's vector.
        if row.id == "id-10" || row.id == "id-20" {
            row.vector = row.vector.map(|vector| {
                let first = f32::from_le_bytes([vector[0], vector[1], vector[2], vector[3]]);
                let far = f32::from_bits(first.to_bits() + 64);
                [&far.to_le_bytes()[..], &vector[4..]].concat()
            });
        }
        row
    });
    // The sound file gets the far vectors' neighbours: its radii, their vectors.
    let other = bytes_of(nearer.collect());
    let (to, from) = (part(&sound), part(&other));
    assert_eq!(to.len(), from.len());
    let mut far = other.clone();
    far[from.clone()].copy_from_slice(&sound[to.clone()]);
    let place = layout(&far);
    repair(&mut far, &place);
    let found = opened(far).expect("opens").verify_all().findings;
    let about = found
        .iter()
        .find(|finding| finding.section == "vector_runs");
    assert!(
        about.is_some_and(|finding| finding.message.contains("whose radius is")),
        "{found:?}"
    );
    // Wider than needed is no contradiction.
    sound[to].copy_from_slice(&other[from]);
    let place = layout(&sound);
    repair(&mut sound, &place);
    assert_eq!(opened(sound).expect("opens").verify_all().findings, []);
}

#[test]
fn every_changed_byte_of_runs_is_an_error_a_finding_or_harmless() {
    let bytes = bytes_of(rows());
    let (sound, place) = (opened(bytes.clone()).expect("opens"), layout(&bytes));
    let expected = runs_of(&sound).expect("sound");
    let (mut refused, mut found) = (0, 0);
    for at in part(&bytes) {
        for change in [0x01, 0x80, 0xff] {
            let mut damaged = bytes.clone();
            damaged[at] ^= change;
            // Under the old checksum it is damage.
            let segment = opened(damaged.clone()).expect("the frame is whole");
            assert!(runs_of(&segment).is_err(), "byte {at} is not covered");
            assert_ne!(segment.verify_all().findings, []);
            assert!(answers(&segment).is_err());
            // Under a right one it is whatever it says, and never a panic.
            repair(&mut damaged, &place);
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let segment = opened(damaged).expect("the frame is whole");
                let findings = segment.verify_all().findings.len();
                (runs_of(&segment), findings)
            }));
            match outcome.unwrap_or_else(|_| panic!("byte {at} ^ {change:02x} panics")) {
                (Err(SegmentError::Corrupt { section, .. }), findings) => {
                    assert_eq!((section, findings), ("vector_runs", 1), "byte {at}");
                    refused += 1;
                }
                (Err(other), _) => panic!("byte {at}: {other}"),
                (Ok(runs), findings) => {
                    assert_ne!(runs, expected, "byte {at} is read by nobody");
                    found += usize::from(findings > 0);
                }
            }
        }
    }
    assert!(
        refused > 100 && found > 20,
        "{refused} refused, {found} found"
    );
}

/// What the layout of the format document says, read by hand.
#[test]
fn the_bytes_of_runs_are_those_of_the_document() {
    let bytes = bytes_of(rows());
    let section = &bytes[part(&bytes)];
    let segment = opened(bytes.clone()).expect("opens");
    let runs: &VectorRuns = segment
        .vector_runs(SpaceNumber::MAIN)
        .expect("sound")
        .expect("runs");
    let u32_at = |at: usize| u32::from_le_bytes(section[at..at + 4].try_into().expect("four"));
    let (scopes, all) = (2, runs.count());
    assert_eq!(
        section.len(),
        scopes * 24 + all as usize * (16 + 4 * DIM as usize) + 24
    );
    let trailer = section.len() - 24;
    let expected = [segment.zone().rows, 2, all, DIM, 4, 0];
    assert_eq!(
        [0, 4, 8, 12, 16, 20].map(|at| u32_at(trailer + at)),
        expected
    );
    for (at, scope) in runs.scopes_in(&(0..segment.zone().rows)).iter().enumerate() {
        let expected = [at as u32, scope.rows.start, 2, 300_000, 900_000, 0];
        assert_eq!(
            [0, 4, 8, 12, 16, 20].map(|field| u32_at(at * 24 + field)),
            expected
        );
        for run in scope.runs.clone() {
            let entry = 2 * 24 + run as usize * 16;
            assert_eq!(u32_at(entry), runs.rows_of(scope, run).end);
            let radius = section[entry + 8..entry + 16].try_into().expect("eight");
            assert_eq!(f64::from_le_bytes(radius), runs.radius(run));
        }
    }
}
