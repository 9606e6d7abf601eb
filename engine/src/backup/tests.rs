//! Goal: an index written by any release stays readable, and a change of its format is seen.
//! Mechanism: a committed, annotated hexdump. `CHRONOLITH_BLESS=1` writes it where it is missing
//! or, while version 0 may change, differs.
#![expect(
    clippy::disallowed_methods,
    reason = "the fixture lies in the source tree, outside any store"
)]

use std::fmt::Write as _;
use std::path::Path;

use super::index::{Index, Item, Kind, Name, parse_point, point_name};

const HEADER: [(usize, &str); 9] = [
    (8, "magic"),
    (4, "version"),
    (4, "items"),
    (16, "store id"),
    (8, "point"),
    (8, "last seq"),
    (8, "made, µs"),
    (4, "zero"),
    (4, "crc32 of 0..60"),
];
const ITEM: [(usize, &str); 7] = [
    (1, "kind"),
    (1, "linked"),
    (6, "zero"),
    (8, "number"),
    (8, "bytes"),
    (16, "origin"),
    (16, "xxh3-128 of the file"),
];

/// One file of every kind.
fn index() -> Index {
    let item = |kind: Kind, number, bytes| Item {
        name: Name::new(kind, number),
        bytes,
        origin: if kind.is_data() {
            0x0123_4567_89ab_cdef
        } else {
            0
        },
        digest: u128::from(bytes) << 64 | u128::from(number),
        linked: kind == Kind::Segment,
    };
    Index {
        store_id: *b"store-of-a-test.",
        point: 3,
        last_seq: 1 << 40 | 7,
        made_us: 1_700_000_000_000_000,
        items: vec![
            item(Kind::Current, 0, 64),
            item(Kind::ManifestA, 5, 300),
            item(Kind::ManifestB, 5, 300),
            item(Kind::Status, 0, 40),
            item(Kind::Log, 1, 1000),
            item(Kind::Segment, 1, 5000),
            item(Kind::Deletes, 2, 123),
            item(Kind::TagGraph, 3, 321),
        ],
    }
}

fn hexdump(bytes: &[u8]) -> String {
    let items = (bytes.len() - 64 - 16) / 56;
    let digest = [(16, "xxh3-128 of salt and all before")];
    let all_items = std::iter::repeat_n(ITEM, items).flatten();
    let fields = HEADER.into_iter().chain(all_items).chain(digest);
    let mut at = 0;
    let mut out = String::new();
    for (width, meaning) in fields {
        let hex: Vec<_> = bytes[at..at + width]
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect();
        writeln!(out, "{at:04x}: {:<47} # {meaning}", hex.join(" ")).expect("to memory");
        at += width;
    }
    assert_eq!(at, bytes.len(), "every byte has a meaning");
    out
}

fn bytes_of(dump: &str) -> Vec<u8> {
    let hex = dump.lines().flat_map(|line| {
        let hex = line
            .split('#')
            .next()
            .and_then(|line| line.split_once(": "));
        hex.map_or("", |(_, hex)| hex).split_whitespace()
    });
    hex.map(|byte| u8::from_str_radix(byte, 16).expect("hex"))
        .collect()
}

#[test]
fn the_index_is_as_committed_and_reads_back() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden/backup-0.hex");
    let found = hexdump(&index().encode().expect("valid"));
    if std::env::var_os("CHRONOLITH_BLESS").is_some() {
        std::fs::write(&path, &found).expect("written");
    }
    let committed = std::fs::read_to_string(&path).expect("a fixture; CHRONOLITH_BLESS=1 makes it");
    assert_eq!(found, committed);
    assert_eq!(
        Index::decode(&bytes_of(&committed)).expect("whole"),
        index()
    );
}

#[test]
fn an_index_that_breaks_a_rule_is_not_written() {
    type Change = fn(&mut Index);
    let breaks: [(&str, Change); 6] = [
        ("twice", |index| index.items[6] = index.items[5]),
        ("out of order", |index| index.items.swap(4, 5)),
        ("too long", |index| index.items[5].bytes = u64::MAX),
        ("no log", |index| drop(index.items.remove(4).name.shown())),
        ("two generations", |index| index.items[2].name.number = 6),
        ("a linked pointer", |index| index.items[0].linked = true),
    ];
    for (what, change) in breaks {
        let mut index = index();
        change(&mut index);
        assert!(index.encode().is_err(), "{what}");
    }
}

#[test]
fn a_point_has_one_name() {
    assert_eq!(parse_point(&point_name(26)), Some(26));
    for foreign in [
        "point-",
        "point-1a",
        "point-000000000000001A",
        "point-+00000000000001a",
        "x",
    ] {
        assert_eq!(parse_point(foreign), None, "{foreign}");
    }
}
