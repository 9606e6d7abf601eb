//! Goal: damage gives the undamaged manifest with a report, or a named error, never another
//! answer. Mechanism: every byte of every file set to three values, every length, files
//! swapped, stale, foreign and hostile.

use std::path::{Path, PathBuf};

use super::super::deletes::{DELETE_ENTRIES_MAX, DeadRow, read_deletes, write_deletes};
use super::super::names::{CopyName, ManifestName};
use super::super::tag_graph::{StoredEdge, read_tag_graph, write_tag_graph};
use super::super::{
    Loaded, ManifestError, SideFileError, SideFileKind, load, load_read_only, read_copy,
    read_generation, read_side_file, write_side_file,
};
use super::disk::Disk;
use super::store::{ROWS, STORE_ID, dead, edges, healthy, manifest, store};

fn copy_path(generation: u64, copy: CopyName) -> PathBuf {
    ManifestName::new(generation, copy).path(&store())
}

/// Every byte of `bytes` flipped, zeroed and set; every shorter length; one byte more.
fn damaged(bytes: &[u8]) -> Vec<(String, Vec<u8>)> {
    let mut all = Vec::new();
    for offset in 0..bytes.len() {
        for value in [bytes[offset] ^ 0x10, 0x00, 0xff] {
            if value != bytes[offset] {
                let mut bad = bytes.to_vec();
                bad[offset] = value;
                all.push((format!("offset {offset} = {value:02x}"), bad));
            }
        }
        all.push((format!("cut to {offset}"), bytes[..offset].to_vec()));
    }
    all.push(("one byte more".to_owned(), [bytes, &[0]].concat()));
    all
}

fn put_fresh(base: &Disk, path: &Path, bytes: &[u8]) -> Disk {
    let disk = base.fork();
    disk.put(path, bytes);
    disk
}

fn assert_opens_from_the_other(disk: &Disk, file: &Path, context: &str) -> Loaded {
    let loaded =
        load_read_only(disk, &store()).unwrap_or_else(|error| panic!("{context}: {error}"));
    let finding = loaded
        .damaged_copy
        .as_ref()
        .unwrap_or_else(|| panic!("{context}: not reported"));
    assert!(file.ends_with(&finding.file), "{context}: {finding}");
    loaded
}

#[test]
fn one_damaged_copy_opens_from_the_other_and_is_reported() {
    let (base, expected) = healthy(3);
    for copy in CopyName::ALL {
        let path = copy_path(3, copy);
        let bytes = base.read(&path).expect("there");
        for (context, bad) in damaged(&bytes) {
            let disk = put_fresh(&base, &path, &bad);
            assert_eq!(
                assert_opens_from_the_other(&disk, &path, &context).manifest,
                expected[2],
                "{context}"
            );
        }
        let disk = base.fork();
        disk.delete(&path);
        assert_eq!(
            assert_opens_from_the_other(&disk, &path, "missing").manifest,
            expected[2]
        );
    }
}

#[test]
fn both_copies_damaged_is_a_named_error_and_never_another_generation() {
    let (base, _) = healthy(3);
    let [a, b] = CopyName::ALL.map(|copy| copy_path(3, copy));
    let bytes = base.read(&a).expect("there");
    for (context, bad) in damaged(&bytes) {
        let disk = put_fresh(&base, &a, &bad);
        disk.put(&b, &bad);
        let error = load(&disk, &store()).expect_err(&context);
        assert!(
            matches!(
                error,
                ManifestError::BothCopiesDamaged { generation: 3, .. }
            ),
            "{context}: {error}"
        );
        assert!(error.to_string().contains("run repair"), "{error}");
    }
    base.delete(&a);
    base.delete(&b);
    let error = load(&base, &store()).expect_err("both missing");
    assert!(
        matches!(error, ManifestError::GenerationMissing { generation: 3 }),
        "{error}"
    );
}

#[test]
fn a_damaged_pointer_is_a_named_error() {
    let (base, _) = healthy(3);
    let path = store().join("CURRENT");
    let bytes = base.read(&path).expect("there");
    for (context, bad) in damaged(&bytes) {
        let error = load(&put_fresh(&base, &path, &bad), &store()).expect_err(&context);
        assert!(
            matches!(error, ManifestError::CurrentDamaged(_)),
            "{context}: {error}"
        );
        assert!(
            error.to_string().contains("CURRENT") && error.to_string().contains("run repair"),
            "{error}"
        );
    }
    base.delete(&path);
    let error = load(&base, &store()).expect_err("missing");
    assert!(
        matches!(error, ManifestError::CurrentMissing { .. }),
        "{error}"
    );
}

/// tenequm/pond/pull/118: a store could not be opened after a power cut left its newest
/// manifest file with zero length.
#[test]
fn pond_118_a_zero_length_or_cut_newest_manifest_opens_from_its_other_copy() {
    let (base, expected) = healthy(3);
    let [a, b] = CopyName::ALL.map(|copy| copy_path(3, copy));
    let bytes = base.read(&a).expect("there");
    for length in [0, 1, bytes.len() / 2, bytes.len() - 1] {
        let disk = put_fresh(&base, &a, &bytes[..length]);
        assert_eq!(
            assert_opens_from_the_other(&disk, &a, "cut").manifest,
            expected[2]
        );
        disk.put(&b, &bytes[..length]);
        let error = load(&disk, &store()).expect_err("both cut");
        assert!(error.to_string().contains("run repair"), "{error}");
    }
}

#[test]
fn a_stale_swapped_or_foreign_copy_is_damage() {
    let (base, expected) = healthy(3);
    let a = copy_path(3, CopyName::A);
    // Generation 2's copy under generation 3's name.
    let disk = put_fresh(
        &base,
        &a,
        &base.read(&copy_path(2, CopyName::A)).expect("there"),
    );
    assert_eq!(
        assert_opens_from_the_other(&disk, &a, "stale").manifest,
        expected[2]
    );
    // A whole copy of generation 3 from a publish that never became real.
    let mut other = expected[2].clone();
    other.floor_file += 1;
    let orphan = super::super::format::encode(&other).expect("valid").bytes;
    let loaded = assert_opens_from_the_other(&put_fresh(&base, &a, &orphan), &a, "orphan");
    assert_eq!(loaded.manifest, expected[2]);
    assert!(
        loaded
            .damaged_copy
            .expect("reported")
            .message
            .contains("another publish")
    );
    // Another store's.
    other.store_id[3] ^= 1;
    let foreign = super::super::format::encode(&other).expect("valid").bytes;
    let loaded = assert_opens_from_the_other(&put_fresh(&base, &a, &foreign), &a, "foreign");
    assert!(
        loaded
            .damaged_copy
            .expect("reported")
            .message
            .contains("another store")
    );
    // A whole pointer of generation 2 still names a whole generation 2: read as asked.
    let (older, _) = healthy(2);
    let disk = put_fresh(
        &base,
        &store().join("CURRENT"),
        &older.read(&store().join("CURRENT")).expect("there"),
    );
    assert_eq!(
        load_read_only(&disk, &store()).expect("whole").manifest,
        expected[1]
    );
    // One copy alone, for repair.
    assert_eq!(
        read_copy(&base, &store(), 2, CopyName::B).expect("whole").0,
        expected[1]
    );
}

/// A copy whose version or body was changed and whose checksums were made good again.
fn forged(bytes: &[u8], change: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut bad = bytes[..bytes.len() - 16].to_vec();
    change(&mut bad);
    let body_bytes = u32::try_from(bad.len() - 48).expect("small");
    bad[40..44].copy_from_slice(&body_bytes.to_le_bytes());
    let crc = crc32fast::hash(&bad[..44]);
    bad[44..48].copy_from_slice(&crc.to_le_bytes());
    let digest = super::super::format::salted_digest(b"chronolith/manif", &STORE_ID, 3, &bad);
    bad.extend_from_slice(&digest.to_le_bytes());
    bad
}

#[test]
fn a_newer_format_is_refused_by_name() {
    let (base, _) = healthy(3);
    let [a, b] = CopyName::ALL.map(|copy| copy_path(3, copy));
    let bad = forged(&base.read(&a).expect("there"), |bytes| bytes[8] = 7);
    base.put(&a, &bad);
    base.put(&b, &bad);
    let error = load(&base, &store()).expect_err("newer");
    assert!(
        matches!(
            error,
            ManifestError::NewerFormat {
                found: 7,
                supported: 1,
                ..
            }
        ),
        "{error}"
    );
    let path = store().join("CURRENT");
    let mut bytes = base.read(&path).expect("there");
    bytes[8] = 9;
    let crc = crc32fast::hash(&bytes[..60]);
    bytes[60..].copy_from_slice(&crc.to_le_bytes());
    base.put(&path, &bytes);
    let error = load(&base, &store()).expect_err("newer");
    assert!(
        matches!(error, ManifestError::NewerFormat { found: 9, .. }),
        "{error}"
    );
}

#[test]
fn a_hostile_body_with_good_checksums_is_an_error_or_a_valid_manifest() {
    let (base, _) = healthy(3);
    let a = copy_path(3, CopyName::A);
    let bytes = base.read(&a).expect("there");
    let mut refused = 0;
    for offset in 48..bytes.len() - 16 {
        for value in [0x00, 0x7f, 0x80, 0xff] {
            let bad = forged(&bytes, |bytes| bytes[offset] = value);
            base.put(&a, &bad);
            match read_copy(&base, &store(), 3, CopyName::A) {
                Ok((manifest, _)) => manifest.validate().expect("what is returned is valid"),
                Err(ManifestError::CopyDamaged(finding)) => {
                    assert_eq!(
                        (finding.section, finding.file.ends_with(".a")),
                        ("body", true)
                    );
                    refused += 1;
                }
                Err(error) => panic!("offset {offset}: {error}"),
            }
        }
    }
    assert!(refused > 100, "{refused}");
    // A count of u64::MAX segments, and bytes after the body.
    let segments_at = bytes.len() - 17;
    for change in [[0xff; 9].as_slice(), &[0]] {
        let bad = forged(&bytes, |bytes| {
            bytes.truncate(segments_at);
            bytes.extend_from_slice(change)
        });
        base.put(&a, &bad);
        assert!(matches!(
            read_copy(&base, &store(), 3, CopyName::A),
            Err(ManifestError::CopyDamaged(_))
        ));
    }
}

#[test]
fn a_read_error_of_both_copies_is_no_case_for_repair() {
    let (base, _) = healthy(3);
    let pointer = load_read_only(&base, &store()).expect("opens").pointer;
    base.set_crash_point(0);
    assert!(
        chronolith_vfs::Vfs::create_dir(&base, &store()).is_err(),
        "from here every call fails"
    );
    let error = read_generation(&base, &store(), &pointer).expect_err("the disk is gone");
    assert!(matches!(error, ManifestError::Io { .. }), "{error}");
}

#[test]
fn a_damaged_side_file_is_a_named_error() {
    let (base, expected) = healthy(3);
    let deletes = expected[2].segments[0].deletes.expect("has one");
    let segment = expected[2].segments[0].file_number;
    let graph = expected[2].tag_graph.expect("has one");
    let read = |disk: &Disk, kind: SideFileKind| match kind {
        SideFileKind::Deletes => {
            read_deletes(disk, &store(), &STORE_ID, &deletes, segment, ROWS).map(|_| ())
        }
        SideFileKind::TagGraph => read_tag_graph(disk, &store(), &STORE_ID, &graph).map(|_| ()),
    };
    for (kind, reference) in [
        (SideFileKind::Deletes, deletes),
        (SideFileKind::TagGraph, graph),
    ] {
        let name = kind.name(reference.file_number);
        let path = name.path(&store());
        let bytes = base.read(&path).expect("there");
        assert_eq!(bytes.len() as u64, reference.bytes);
        read(&base, kind).expect("whole");
        for (context, bad) in damaged(&bytes) {
            let error = read(&put_fresh(&base, &path, &bad), kind).expect_err(&context);
            assert!(
                matches!(error, SideFileError::Damaged(_)),
                "{context}: {error}"
            );
            assert!(error.to_string().contains(&name.shown()), "{error}");
        }
        let disk = base.fork();
        disk.delete(&path);
        let error = read(&disk, kind).expect_err("missing");
        assert!(matches!(error, SideFileError::Missing { .. }), "{error}");
    }
    // The same delete set under another number, and of another store, and a stale one.
    let path = SideFileKind::Deletes
        .name(deletes.file_number)
        .path(&store());
    let whole = dead(3);
    for (number, id) in [(99, STORE_ID), (deletes.file_number, [9; 16])] {
        let disk = base.fork();
        let written =
            write_deletes(&disk, &store(), number, &id, segment, &whole).expect("written");
        let bytes = disk
            .read(
                &SideFileKind::Deletes
                    .name(written.file_number)
                    .path(&store()),
            )
            .expect("there");
        disk.put(&path, &bytes);
        assert!(matches!(
            read(&disk, SideFileKind::Deletes),
            Err(SideFileError::Damaged(_))
        ));
    }
    let disk = base.fork();
    let number = deletes.file_number;
    write_deletes(&disk, &store(), number, &STORE_ID, segment, &dead(4)).expect("written");
    let error = read(&disk, SideFileKind::Deletes).expect_err("same number, other content");
    assert!(error.to_string().contains("the manifest says"), "{error}");
    // Whole, but of another segment.
    let error = read_deletes(&base, &store(), &STORE_ID, &deletes, segment + 1, ROWS);
    let error = error.expect_err("another segment's").to_string();
    assert!(error.contains("of segment"), "{error}");
}

/// Payloads that no encoder of ours writes, under good checksums.
#[test]
fn a_hostile_payload_is_a_named_error() {
    let (disk, _) = healthy(2);
    const SEGMENT: [u8; 8] = 7_u64.to_le_bytes();
    let entry = |row: u32, kind: u8| {
        let mut bytes = [0; 24];
        bytes[..4].copy_from_slice(&row.to_le_bytes());
        bytes[4] = kind;
        bytes
    };
    let deletes: [(u64, Vec<u8>); 7] = [
        (1, vec![0; 23]),
        (2, entry(1, 1).to_vec()),
        (2, [entry(1, 1), entry(1, 1)].concat()),
        (2, [entry(2, 1), entry(1, 1)].concat()),
        (1, entry(ROWS, 1).to_vec()),
        (1, entry(1, 0).to_vec()),
        (1, entry(1, 4).to_vec()),
    ];
    let without = (0, vec![0; 7]);
    let deletes = deletes
        .into_iter()
        .map(|(entries, payload)| (entries, [&SEGMENT, payload.as_slice()].concat()));
    for (entries, payload) in deletes.chain([without]) {
        let written = write_side_file(
            &disk,
            &store(),
            77,
            SideFileKind::Deletes,
            &STORE_ID,
            entries,
            &payload,
        );
        let reference = written.expect("framed");
        read_side_file(
            &disk,
            &store(),
            SideFileKind::Deletes,
            &STORE_ID,
            &reference,
        )
        .expect("the frame is whole");
        let error = read_deletes(&disk, &store(), &STORE_ID, &reference, 7, ROWS);
        let error = error.expect_err("hostile");
        assert!(matches!(error, SideFileError::Damaged(_)), "{error}");
    }
    let names = |names: &[&[u8]]| {
        names
            .iter()
            .flat_map(|name| {
                [
                    &u16::try_from(name.len()).expect("short").to_le_bytes(),
                    *name,
                ]
                .concat()
            })
            .collect::<Vec<u8>>()
    };
    let graphs: [(u64, Vec<u8>); 8] = [
        (1, vec![]),
        (1, vec![5, 0, b'a']),
        (1, names(&[b"s\0", b"", b"c"])),
        (1, names(&[b"s\0", b"p", b"\xff"])),
        (1, names(&[b"s\0", b"p", &[b'c'; 1025]])),
        (2, names(&[b"s\0", b"p", b"c", b"s\0", b"p", b"c"])),
        (1, names(&[b"s\0", b"p", b"c", b"d"])),
        (u64::MAX, names(&[b"s\0", b"p", b"c"])),
    ];
    for (entries, payload) in graphs {
        let written = write_side_file(
            &disk,
            &store(),
            78,
            SideFileKind::TagGraph,
            &STORE_ID,
            entries,
            &payload,
        );
        let error = read_tag_graph(&disk, &store(), &STORE_ID, &written.expect("framed"))
            .expect_err("hostile");
        assert!(matches!(error, SideFileError::Damaged(_)), "{error}");
    }
}

#[test]
fn what_breaks_a_rule_is_not_written() {
    let (disk, _) = healthy(2);
    let before = disk.log();
    let row = |row, kind| DeadRow {
        row,
        seq: 1,
        kind,
        valid_to_us: 0,
    };
    let too_many = vec![row(0, 1); DELETE_ENTRIES_MAX + 1];
    for bad in [
        &[row(2, 1), row(1, 1)][..],
        &[row(1, 1), row(1, 1)],
        &[row(1, 0)],
        &[row(1, 4)],
        &too_many,
    ] {
        let error = write_deletes(&disk, &store(), 50, &STORE_ID, 1, bad).expect_err("refused");
        assert!(matches!(error, SideFileError::Refused { .. }), "{error}");
    }
    let edge = |parent: &str, child: &str| StoredEdge {
        scope_key: b"s\0".to_vec(),
        parent: parent.to_owned(),
        child: child.to_owned(),
    };
    let long = "x".repeat(1025);
    for bad in [
        &[edge("b", "c"), edge("a", "c")][..],
        &[edge("a", "c"), edge("a", "c")],
        &[edge("", "c")],
        &[edge("a", &long)],
    ] {
        let error = write_tag_graph(&disk, &store(), 50, &STORE_ID, bad).expect_err("refused");
        assert!(matches!(error, SideFileError::Refused { .. }), "{error}");
    }
    assert_eq!(disk.log(), before);
    assert_eq!(edges(2).len(), 2);
    assert_eq!(manifest(2).segments.len(), 1);
}
