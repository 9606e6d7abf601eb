//! Damaged bytes give an error or the right answer; damaged bytes under right checksums give
//! anything but a panic.

use std::panic::{AssertUnwindSafe, catch_unwind};

use chronolith_segments::{
    ReadMode, Segment, SegmentError, SegmentRef, Written, segment_file_name,
};

use crate::clusters::write_by_parity;
use crate::format::{BLOCK, layout, repair};
use crate::memory::MemoryVfs;
use crate::naive::{DIM, OTHER_DIM, Row, STORE_ID, dir, open, spec, spec_of_two, write_all};
use crate::oracle::answers;

const MODES: [ReadMode; 2] = [ReadMode::Mapped, ReadMode::Positioned];

/// Rows that fill every section.
pub fn rows(count: u64) -> Vec<Row> {
    (0..count)
        .map(|i| {
            let scope = ["a", "a/b", "c"][i as usize % 3];
            let text = format!("w{} w{} common words", i % 5, i * 7 % 11);
            let mut row = Row::plain(
                scope,
                &format!("id-{}", i * 5 % 7),
                i as i64 * 13 % 17 * 1000,
                i,
                &text,
            );
            row.fields.cluster = i as u32 % 2;
            row.fields.source_class = (i % 6) as u8;
            row.tags = ["t1", "t2"]
                .iter()
                .take(i as usize % 3)
                .map(|tag| (*tag).to_owned())
                .collect();
            row.source_id = (i % 2 == 0).then(|| format!("doc-{}", i / 4));
            row.vector = (i % 4 != 1).then(|| vec![i as u8; DIM as usize * 4]);
            row.other = (i % 3 != 1).then(|| vec![i as u8; OTHER_DIM as usize * 2]);
            row.stored.summary = (i % 3 == 0).then(|| format!("summary {i}"));
            row.stored.speaker = Some("ana".into());
            row
        })
        .collect()
}

fn segment(count: u64) -> (Vec<u8>, Written) {
    let vfs = MemoryVfs::default();
    let written = write_by_parity(&vfs, &spec_of_two(7), rows(count));
    (vfs.bytes(&dir().join(segment_file_name(7))), written)
}

fn open_bytes(
    bytes: Vec<u8>,
    expected: &SegmentRef,
    store_id: [u8; 16],
    mode: ReadMode,
) -> Result<Segment, SegmentError> {
    let vfs = MemoryVfs::default();
    vfs.put(&dir().join(segment_file_name(expected.file_number)), bytes);
    Segment::open(&vfs, dir(), expected, store_id, mode)
}

#[test]
fn a_changed_byte_gives_an_error_or_the_right_answer() {
    let (bytes, written) = segment(30);
    let expected = answers(
        &open_bytes(
            bytes.clone(),
            &written.meta.file,
            STORE_ID,
            ReadMode::Mapped,
        )
        .expect("sound"),
    );
    let expected = expected.expect("sound");
    let layout = layout(&bytes);
    for at in (0..bytes.len()).step_by(3) {
        let change: [fn(u8) -> u8; 3] = [|byte| byte ^ 1, |_| 0, |_| 0xff];
        let mut damaged = bytes.clone();
        damaged[at] = change[at / 3 % 3](bytes[at]);
        if damaged[at] == bytes[at] {
            continue;
        }
        let mode = MODES[at / 9 % 2];
        let found = open_bytes(damaged, &written.meta.file, STORE_ID, mode)
            .and_then(|segment| answers(&segment));
        match found {
            Ok(found) => {
                assert_eq!(found, expected, "byte {at}");
                assert!(layout.is_padding(at), "byte {at} is not covered");
            }
            Err(SegmentError::Corrupt { .. } | SegmentError::Version { .. }) => {}
            Err(other) => panic!("byte {at}: {other}"),
        }
    }
}

#[test]
fn a_cut_or_longer_file_does_not_open() {
    let (bytes, written) = segment(12);
    for len in (0..bytes.len()).step_by(7) {
        for mode in MODES {
            assert!(
                open_bytes(bytes[..len].to_vec(), &written.meta.file, STORE_ID, mode).is_err(),
                "{len} bytes"
            );
        }
    }
    let longer = [&bytes[..], &[0]].concat();
    assert!(open_bytes(longer, &written.meta.file, STORE_ID, ReadMode::Mapped).is_err());
}

#[test]
fn a_file_of_another_store_number_or_time_does_not_open() {
    let (bytes, written) = segment(12);
    let file = written.meta.file;
    let message = |error: Result<Segment, SegmentError>| error.expect_err("refused").to_string();
    let other = message(open_bytes(bytes.clone(), &file, [9; 16], ReadMode::Mapped));
    assert!(other.contains("another store"), "{other}");
    let other = message(open_bytes(
        bytes.clone(),
        &SegmentRef {
            file_number: 8,
            ..file
        },
        STORE_ID,
        ReadMode::Mapped,
    ));
    assert!(other.contains("0000000000000007"), "{other}");
    let stale = SegmentRef {
        digest: file.digest ^ 1,
        ..file
    };
    assert!(
        message(open_bytes(
            bytes.clone(),
            &stale,
            STORE_ID,
            ReadMode::Mapped
        ))
        .contains("digest")
    );
    let mut other_version = bytes;
    other_version[8] = 9;
    let crc = crc32fast::hash(&other_version[..60]);
    other_version[60..64].copy_from_slice(&crc.to_le_bytes());
    let refused = open_bytes(other_version, &file, STORE_ID, ReadMode::Mapped);
    assert!(matches!(
        refused,
        Err(SegmentError::Version {
            found: 9,
            supported: 4,
            ..
        })
    ));
}

#[test]
fn intact_blocks_in_the_wrong_place_are_damage() {
    let vfs = MemoryVfs::default();
    let rows: Vec<Row> = (0..3000_u64)
        .map(|i| {
            Row::plain(
                "a",
                &format!("{:016x}", i.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
                i as i64,
                i,
                "w",
            )
        })
        .collect();
    let written = write_all(&vfs, &spec(7), rows);
    let path = dir().join(segment_file_name(7));
    let sound = vfs.bytes(&path);
    let ids = layout(&sound)
        .sections
        .into_iter()
        .find(|part| part.name == "ids")
        .expect("ids");
    assert!(ids.end - ids.start > 2 * BLOCK);
    let mut swapped = sound.clone();
    let (first, rest) = swapped[ids.start..ids.end].split_at_mut(BLOCK);
    first.swap_with_slice(&mut rest[..BLOCK]);
    vfs.put(&path, swapped);
    for mode in MODES {
        let segment = open(&vfs, &written, mode);
        let scrub = segment.verify_all();
        assert_eq!(scrub.findings.len(), 2, "{:?}", scrub.findings);
        assert!(
            scrub
                .findings
                .iter()
                .all(|finding| finding.section == "ids")
        );
        assert_eq!(scrub.findings[1].offset, (ids.start + BLOCK) as u64);
        assert!(answers(&segment).is_err());
    }
}

#[test]
fn damage_under_right_checksums_never_panics() {
    let (bytes, _) = segment(30);
    let layout = layout(&bytes);
    let is_deep = std::env::var_os("CHRONOLITH_DEEP").is_some_and(|value| value != "0");
    let stride = std::env::var("CHRONOLITH_STRIDE")
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(if is_deep { 1 } else { 5 });
    let mut panics = Vec::new();
    let parts = layout
        .sections
        .iter()
        .map(|part| (part.name, part.start, part.end));
    for (name, start, end) in parts.chain([("footer", layout.footer, layout.trailer)]) {
        for at in (start..end).step_by(stride) {
            for (number, change) in [0x01, 0x80, 0xff].into_iter().enumerate() {
                if (at + number) % 3 != 0 && stride > 1 {
                    continue;
                }
                let mut damaged = bytes.clone();
                damaged[at] ^= change;
                repair(&mut damaged, &layout);
                let outcome = catch_unwind(AssertUnwindSafe(|| {
                    let vfs = MemoryVfs::default();
                    vfs.put(&dir().join(segment_file_name(7)), damaged);
                    if let Ok(segment) = Segment::open_unreferenced(&vfs, dir(), 7, MODES[at % 2]) {
                        let _ = answers(&segment);
                        segment.verify_all();
                    }
                }));
                if outcome.is_err() {
                    panics.push(format!("{name} + {} ^ {change:02x}", at - start));
                }
            }
        }
    }
    assert!(panics.is_empty(), "{} panics: {panics:?}", panics.len());
}
