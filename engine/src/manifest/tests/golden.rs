//! Goal: bytes written by any release stay readable, and a change of format is seen.
//! Mechanism: committed files of every version, and an annotated hexdump made from them.
//! `CHRONOLITH_BLESS=1` writes what is missing or, while version 0 may change, differs.
#![expect(
    clippy::disallowed_methods,
    reason = "fixtures lie in the source tree, outside any store"
)]

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use super::super::deletes::{read_deletes, read_unreferenced_deletes};
use super::super::format::{At, Expected, Fault, decode, encode, salted_digest};
use super::super::tag_graph::{read_tag_graph, read_unreferenced_tag_graph};
use super::super::{
    FORMAT_VERSION, Manifest, NamedSpace, SIDE_FILE_FORMAT_VERSION, SpaceTable, VectorSpace,
    load_read_only,
};
use super::disk::Disk;
use super::store::{ROWS, STORE_ID, dead, edges, healthy, manifest, store};

/// Offset, width and meaning of the fields before the body.
type Fields = &'static [(usize, usize, &'static str)];

const POINTER: Fields = &[
    (0, 8, "magic"),
    (8, 4, "version"),
    (12, 4, "zero"),
    (16, 16, "store id"),
    (32, 8, "generation"),
    (40, 16, "digest of the manifest"),
    (56, 4, "zero"),
    (60, 4, "crc32 of 0..60"),
];
const MANIFEST: Fields = &[
    (0, 8, "magic"),
    (8, 4, "version"),
    (12, 4, "zero"),
    (16, 16, "store id"),
    (32, 8, "generation"),
    (40, 4, "body bytes"),
    (44, 4, "crc32 of 0..44"),
];
const SIDE_FILE: Fields = &[
    (0, 8, "magic"),
    (8, 4, "version"),
    (12, 4, "kind"),
    (16, 16, "store id"),
    (32, 8, "file number"),
    (40, 8, "entries"),
    (48, 8, "payload bytes"),
    (56, 4, "zero"),
    (60, 4, "crc32 of 0..60"),
];

/// Name of the fixture, path in the store, fields, what the rest is.
const FILES: [(&str, &str, Fields, &str); 4] = [
    ("current", "CURRENT", POINTER, ""),
    (
        "manifest",
        "manifest/MANIFEST-0000000000000003.a",
        MANIFEST,
        "body: postcard of Body::V0",
    ),
    (
        "deletes",
        "segments/000000000000001f.del",
        SIDE_FILE,
        "payload: segment, then row, kind, zero, seq, valid_to",
    ),
    (
        "tags",
        "segments/0000000000000020.tags",
        SIDE_FILE,
        "payload: (u16 bytes, name) x 3 an edge",
    ),
];

fn golden(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/golden")
        .join(name)
}

fn line(out: &mut String, offset: usize, bytes: &[u8], meaning: &str) {
    let hex: Vec<String> = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let line = format!("{offset:04x}: {:<47} # {meaning}", hex.join(" "));
    writeln!(out, "{}", line.trim_end_matches([' ', '#'])).expect("to memory");
}

fn hexdump(bytes: &[u8], fields: Fields, rest: &str) -> String {
    let mut out = String::new();
    let mut end = 0;
    for (offset, width, meaning) in fields {
        assert_eq!(*offset, end, "the table of fields has a gap");
        end = offset + width;
        line(&mut out, *offset, &bytes[*offset..end], meaning);
    }
    if rest.is_empty() {
        assert_eq!(end, bytes.len());
        return out;
    }
    let digest_at = bytes.len() - 16;
    for offset in (end..digest_at).step_by(16) {
        let meaning = if offset == end { rest } else { "" };
        line(
            &mut out,
            offset,
            &bytes[offset..digest_at.min(offset + 16)],
            meaning,
        );
    }
    line(
        &mut out,
        digest_at,
        &bytes[digest_at..],
        "xxh3-128 of salt, store id, number, all before",
    );
    out
}

/// Compares with the committed file, or writes it when asked to.
fn check(name: &str, found: &[u8]) {
    let path = golden(name);
    if std::env::var_os("CHRONOLITH_BLESS").is_some() {
        std::fs::write(&path, found).expect("written");
    }
    let committed =
        std::fs::read(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    assert!(
        committed == found,
        "{name} differs from what this code writes; a format change needs a new version"
    );
}

#[test]
fn the_bytes_written_are_the_committed_ones() {
    assert_eq!(
        (FORMAT_VERSION, SIDE_FILE_FORMAT_VERSION),
        (1, 0),
        "a new version needs its own fixtures"
    );
    let (disk, _) = healthy(3);
    for (name, path, fields, rest) in FILES {
        let bytes = disk.read(&store().join(path)).expect("written");
        check(&format!("{name}-0.bin"), &bytes);
        check(
            &format!("{name}-0.hex"),
            hexdump(&bytes, fields, rest).as_bytes(),
        );
    }
}

/// A generation of a store that has dropped a space and has two.
fn of_spaces() -> Manifest {
    let mut manifest = manifest(3);
    let space = |model: &str| VectorSpace {
        model: model.to_owned(),
        ..manifest.settings.vector_space.clone().expect("has one")
    };
    let own = |number, name: &str, model| NamedSpace {
        number,
        name: name.to_owned(),
        space: space(model),
    };
    let spaces = vec![own(0, "main", "builtin/1"), own(2, "next", "builtin/2")];
    manifest.settings.spaces = Some(SpaceTable {
        default: 2,
        next: 3,
        spaces,
    });
    manifest
}

#[test]
fn a_manifest_with_a_table_of_spaces_is_of_version_1() {
    let manifest = of_spaces();
    let bytes = encode(&manifest).expect("valid").bytes;
    check("manifest-1.bin", &bytes);
    let dump = hexdump(&bytes, MANIFEST, "body: postcard of Body::V1");
    check("manifest-1.hex", dump.as_bytes());
    let committed = std::fs::read(golden("manifest-1.bin")).expect("committed");
    let expected = Expected {
        generation: 3,
        store_id: Some(STORE_ID),
        digest: None,
    };
    let (read, _) = decode(At { file: "m" }, &committed, expected).expect("reads");
    assert_eq!(read, manifest);
    assert_eq!(
        read.settings.default_space().map(|s| &*s.model),
        Some("builtin/2")
    );
    // A version that is not the body's is damage, a later one is another release's.
    for (version, what) in [(0_u8, Some("the header says 0")), (2, None)] {
        let mut other = committed.clone();
        other[8] = version;
        reseal(&mut other);
        match (decode(At { file: "m" }, &other, expected), what) {
            (Err(Fault::Damaged(found)), Some(what)) => {
                assert!(found.to_string().contains(what), "{found}");
            }
            (Err(Fault::Newer { found: 2 }), None) => {}
            (other, _) => panic!("{other:?}"),
        }
    }
}

/// Makes checksums and digest right again.
fn reseal(bytes: &mut [u8]) {
    let crc = crc32fast::hash(&bytes[..44]);
    bytes[44..48].copy_from_slice(&crc.to_le_bytes());
    let body_end = bytes.len() - 16;
    let digest = salted_digest(b"chronolith/manif", &STORE_ID, 3, &bytes[..body_end]);
    bytes[body_end..].copy_from_slice(&digest.to_le_bytes());
}

#[test]
fn the_committed_files_of_the_first_version_read_back() {
    let version = 0;
    {
        let disk = Disk::default();
        for dir in ["", "manifest", "segments", "wal"] {
            chronolith_vfs::Vfs::create_dir(&disk, &store().join(dir)).expect("made");
        }
        for (name, path, _, _) in FILES {
            let bytes = std::fs::read(golden(&format!("{name}-{version}.bin")))
                .expect("every version has a fixture");
            disk.put(&store().join(path), &bytes);
        }
        let loaded = load_read_only(&disk, &store()).expect("reads");
        assert!(
            loaded
                .damaged_copy
                .is_some_and(|finding| finding.file.ends_with(".b")),
            "copy b is no fixture"
        );
        let (_, expected) = healthy(3);
        assert_eq!(loaded.manifest, expected[2]);
        let segment = &loaded.manifest.segments[0];
        let deletes = segment.deletes.expect("has one");
        let number = segment.file_number;
        assert_eq!(
            read_deletes(&disk, &store(), &STORE_ID, &deletes, number, ROWS).expect("reads"),
            dead(3)
        );
        let found = read_unreferenced_deletes(&disk, &store(), &STORE_ID, deletes.file_number);
        assert_eq!(found.expect("reads by itself"), (number, dead(3)));
        let graph = loaded.manifest.tag_graph.expect("has one");
        assert_eq!(
            read_tag_graph(&disk, &store(), &STORE_ID, &graph).expect("reads"),
            edges(3)
        );
        let found = read_unreferenced_tag_graph(&disk, &store(), &STORE_ID, graph.file_number);
        assert_eq!(found.expect("reads by itself"), edges(3));
    }
}
