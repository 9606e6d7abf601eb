//! The bytes of the format that is written, spelled out and kept.
//!
//! `CHRONOLITH_BLESS=1` writes the dump anew. A fixture is added with a new format and never
//! written again: it stands for the files that exist.

#![expect(clippy::disallowed_methods, reason = "goldens lie on the real disk")]

use std::fmt::Write;
use std::path::PathBuf;

use chronolith_segments::format::{FORMAT_VERSION, ONE_SPACE};
use chronolith_segments::{
    Counts, Description, Partition, ReadMode, Segment, SegmentError, segment_file_name,
};

use crate::clusters::write_by_parity;
use crate::format::{Layout, layout};
use crate::memory::MemoryVfs;
use crate::naive::{Row, dir, open, spec, spec_of_two, write_all};
use crate::oracle::{answers, check};

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn rows() -> Vec<Row> {
    let mut first = Row::plain("a", "x1", 1_000_000, 1, "red fox");
    first.tags = vec!["t1".into()];
    first.vector = Some(
        [1.0_f32, 0.0, 0.0]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
    );
    first.stored.summary = Some("fox".into());
    first.source_id = Some("doc".into());
    let mut second = Row::plain("a/b", "x2", 3_000_000, 2, "red red dog");
    second.fields.importance = 0.5;
    second.fields.source_class = 5;
    second.stored.speaker = Some("ana".into());
    vec![first, second]
}

/// As [`rows`], the second with a vector in a second space.
fn rows_of_two() -> Vec<Row> {
    let mut rows = rows();
    // 1.0 and zeros, in half precision.
    rows[1].other = Some(vec![0, 0x3c, 0, 0, 0, 0, 0, 0, 0, 0]);
    rows
}

/// Where each named part starts.
fn starts(bytes: &[u8], layout: &Layout) -> Vec<(usize, String)> {
    let mut starts = Vec::new();
    let fields = |starts: &mut Vec<(usize, String)>, base: usize, fields: &[(usize, &str)]| {
        starts.extend(
            fields
                .iter()
                .map(|(at, name)| (base + at, (*name).to_owned())),
        );
    };
    fields(
        &mut starts,
        0,
        &[
            (0, "header: magic"),
            (8, "format version"),
            (12, "store id"),
        ],
    );
    fields(
        &mut starts,
        0,
        &[
            (28, "file number"),
            (36, "reserved"),
            (60, "crc32 of the header"),
        ],
    );
    for part in &layout.sections {
        starts.push((
            part.start,
            format!(
                "section {} ({}), {} bytes",
                part.name,
                part.kind,
                part.end - part.start
            ),
        ));
        if part.name == "columns" {
            starts.extend(
                columns(&bytes[part.start..part.end])
                    .map(|(at, name)| (part.start + at, name))
                    .skip(1),
            );
        }
        if part.name == "vector_runs" {
            starts.extend(
                runs(&bytes[part.start..part.end]).map(|(at, name)| (part.start + at, name)),
            );
        }
        if part.end % 64 != 0 {
            starts.push((part.end, "zeros".to_owned()));
        }
    }
    starts.push((
        layout.table,
        "checksum table: crc32 of every block, sections as in the footer".to_owned(),
    ));
    starts.push((layout.footer, "footer: count of sections".to_owned()));
    for (number, part) in layout.sections.iter().enumerate() {
        starts.push((
            layout.footer + 4 + number * 24,
            format!("{}: kind, zero, blocks, offset, bytes", part.name),
        ));
    }
    let rest = "analyzer, vector space, token counter, bucket, zone, counts, lineage";
    starts.push((
        layout.footer + 4 + layout.sections.len() * 24,
        rest.to_owned(),
    ));
    fields(
        &mut starts,
        layout.trailer,
        &[
            (0, "trailer: offset of the checksum table"),
            (8, "bytes of the table"),
        ],
    );
    fields(
        &mut starts,
        layout.trailer,
        &[
            (12, "bytes of the footer"),
            (16, "digest"),
            (32, "format version"),
        ],
    );
    fields(
        &mut starts,
        layout.trailer,
        &[(36, "crc32 of the trailer"), (40, "magic")],
    );
    starts
}

/// Where each column starts, and what it is.
fn columns(section: &[u8]) -> impl Iterator<Item = (usize, String)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let (start, kind) = (at, section.get(at)?);
        let (width, count) = (usize::from(section[at + 8]), usize::from(section[at + 12]));
        at += 40
            + if width == 0 {
                0
            } else {
                (width * count).div_ceil(8) + 8
            };
        Some((
            start,
            format!(
                "column {kind}: kind, zero; width {width}, top, zero, count; min, step, top; bits"
            ),
        ))
    })
}

/// Where each entry of runs starts, and what it is.
fn runs(section: &[u8]) -> impl Iterator<Item = (usize, String)> {
    let trailer = section.len() - 24;
    let (scopes, runs) = (
        usize::from(section[trailer + 4]),
        usize::from(section[trailer + 8]),
    );
    let scope = "scope: number, first row, runs, share for 95 %, for 99 %, zero";
    let scopes_at = (0..scopes).map(move |at| (at * 24, scope));
    let run = "run: end row, zero, radius";
    let runs_at = (0..runs).map(move |at| (scopes * 24 + at * 16, run));
    let (start, bytes) = (scopes * 24 + runs * 16, trailer - scopes * 24 - runs * 16);
    let centroids = (0..runs).map(move |at| (start + at * bytes / runs, "centroid"));
    let last = (
        trailer,
        "rows, scopes, runs, dimension, bytes of a component, zeros",
    );
    let parts = scopes_at.chain(runs_at).chain(centroids).chain([last]);
    parts.map(|(at, name)| (at, name.to_owned())).skip(1)
}

fn dump(bytes: &[u8]) -> String {
    let layout = layout(bytes);
    let starts = starts(bytes, &layout);
    let mut out = String::new();
    for (number, (start, name)) in starts.iter().enumerate() {
        let end = starts
            .get(number + 1)
            .map_or(bytes.len(), |(next, _)| *next);
        if *start == end {
            continue;
        }
        writeln!(out, "# {name}").expect("a string");
        for (line, content) in bytes[*start..end].chunks(16).enumerate() {
            let hex: Vec<String> = content.iter().map(|byte| format!("{byte:02x}")).collect();
            let text: String = content
                .iter()
                .map(|byte| {
                    if byte.is_ascii_graphic() {
                        char::from(*byte)
                    } else {
                        '.'
                    }
                })
                .collect();
            writeln!(
                out,
                "{:06x}: {:47}  # {text}",
                start + line * 16,
                hex.join(" ")
            )
            .expect("a string");
        }
    }
    out
}

#[test]
fn the_bytes_of_a_tiny_segment_are_those_of_the_dump() {
    for (version, spec, rows) in [
        (ONE_SPACE, spec(7), rows()),
        // A store of two spaces, and no vector in the second.
        (ONE_SPACE, spec_of_two(7), rows()),
        (FORMAT_VERSION, spec_of_two(7), rows_of_two()),
    ] {
        let vfs = MemoryVfs::default();
        write_all(&vfs, &spec, rows);
        check_golden(version, &vfs.bytes(&dir().join(segment_file_name(7))));
    }
}

fn check_golden(version: u32, bytes: &[u8]) {
    let found = dump(bytes);
    let fixture = path(&format!("segment_v{version}.seg"));
    let text = fixture.with_extension("txt");
    if std::env::var_os("CHRONOLITH_BLESS").is_some() {
        std::fs::write(&text, &found).expect("written");
        if !fixture.exists() {
            std::fs::write(&fixture, bytes).expect("written");
        }
    }
    let expected = std::fs::read_to_string(&text).expect("a dump; CHRONOLITH_BLESS=1 writes it");
    assert!(
        found == expected,
        "the bytes changed; a new format version, or CHRONOLITH_BLESS=1\n{found}"
    );
}

#[test]
fn the_bytes_of_runs_of_vectors_are_those_of_the_dump() {
    let vfs = MemoryVfs::default();
    let rows = (0..5_u32).map(|i| {
        let mut row = Row::plain(
            "a",
            &format!("x{i}"),
            10 - i64::from(i),
            u64::from(i),
            "fox",
        );
        let first = f32::from_bits(0x3f80_0000 + i);
        row.vector = (i > 0).then(|| [first, 0.0, 1.0].map(f32::to_le_bytes).concat());
        row
    });
    write_by_parity(&vfs, &spec(7), rows.collect());
    let bytes = vfs.bytes(&dir().join(segment_file_name(7)));
    let dump = dump(&bytes);
    let from = dump.find("# section vector_runs").expect("a section");
    let len = dump[from + 1..]
        .find('#')
        .map(|_| dump[from..].find("# zeros"));
    let found = &dump[from..from + len.flatten().expect("zeros behind it")];
    let text = path("vector_runs.txt");
    if std::env::var_os("CHRONOLITH_BLESS").is_some() {
        std::fs::write(&text, found).expect("written");
    }
    let expected = std::fs::read_to_string(&text).expect("a dump; CHRONOLITH_BLESS=1 writes it");
    // Where the section starts is of no account: offsets are those of the file.
    let bytes_of = |dump: &str| -> Vec<String> {
        let lines = dump.lines().skip(1);
        let of_bytes = lines.filter(|line| !line.starts_with('#'));
        of_bytes.map(|line| line[8..].to_owned()).collect()
    };
    assert_eq!(
        bytes_of(found),
        bytes_of(&expected),
        "the bytes of runs changed\n{found}"
    );
}

#[test]
fn every_format_has_a_fixture_that_reads_or_is_refused_by_name() {
    for version in 0..=FORMAT_VERSION {
        let bytes = std::fs::read(path(&format!("segment_v{version}.seg"))).expect("a fixture");
        let vfs = MemoryVfs::default();
        vfs.put(&dir().join(segment_file_name(7)), bytes);
        if version < ONE_SPACE {
            let refused = Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped);
            let error = refused.expect_err("another format");
            let is_version = matches!(
                error,
                SegmentError::Version { found, supported, .. }
                    if (found, supported) == (version, FORMAT_VERSION)
            );
            assert!(is_version, "{error}");
            continue;
        }
        for mode in [ReadMode::Mapped, ReadMode::Positioned] {
            let segment = Segment::open_unreferenced(&vfs, dir(), 7, mode).expect("sound");
            let written = match version {
                ONE_SPACE => rows(),
                _ => rows_of_two(),
            };
            check(&segment, &written);
            assert_eq!(segment.zone().vectors, 1);
            assert!(answers(&segment).is_ok());
        }
    }
}

#[test]
fn a_description_adds_up_to_the_file() {
    let vfs = MemoryVfs::default();
    let written = write_all(&vfs, &spec(7), rows());
    let description = open(&vfs, &written, ReadMode::Mapped).describe();
    assert_eq!(description.meta, written.meta);
    let counts = Counts {
        summaries: 1,
        terms: 3,
        postings: 4,
        length_sum: 5,
    };
    assert_eq!(description.counts, counts);
    assert_eq!(
        Description::read(&vfs, dir(), 7).expect("sound"),
        description
    );
    assert_eq!(description.lineage, [3, 9]);
    assert!(
        description
            .sections
            .is_sorted_by(|a, b| a.offset + a.bytes <= b.offset)
    );
}
