//! Parts of a segment that contradict each other under right checksums are found.
//!
//! Mechanism: two files are written from rows that differ in one thing only, so that their
//! layouts are the same; one section of the second is put into the first and every checksum
//! is repaired. What a scrub then says must name the section or the one it contradicts.

use chronolith_segments::{
    MergeInput, Partition, ReadMode, RowFields, Scrub, Segment, SegmentError, SegmentSpec,
    SpaceNumber, segment_file_name, write_segment,
};

use crate::format::{layout, repair};
use crate::memory::MemoryVfs;
use crate::naive::{DIM, Row, dir, spec, write_all};

const ANALYZER: &str = "default-2/english";

fn real_spec() -> SegmentSpec {
    SegmentSpec {
        analyzer_id: ANALYZER.into(),
        ..spec(7)
    }
}

/// A row as the engine prepares it: its words are those of its text.
fn prepared(scope: &str, id: &str, time_us: i64, seq: u64, text: &str) -> Row {
    let mut row = Row::plain(scope, id, time_us, seq, text);
    row.vector = Some(
        [1.0_f32, 0.0, 0.0]
            .iter()
            .flat_map(|x| x.to_le_bytes())
            .collect(),
    );
    assert_eq!(row.vector.as_ref().map(Vec::len), Some(DIM as usize * 4));
    row
}

/// Two scopes; the first in two clusters, so that it has a timeline of its own.
fn rows() -> Vec<Row> {
    let words = ["alpha", "beta", "gamma", "delta", "omega"];
    (0..24_usize)
        .map(|i| {
            let scope = ["a", "c"][i / 12];
            let more = if i % 4 == 0 { " more" } else { "" };
            let text = format!("{} {}{more}", words[i % 5], words[(i * 2 + 1) % 5]);
            let mut row = prepared(
                scope,
                &format!("id{:02}", (i * 7) % 24),
                i as i64 * 10,
                i as u64 + 1,
                &text,
            );
            row.fields.cluster = if i < 12 { i as u32 % 2 } else { 0 };
            row.tags = vec![["red", "green"][i % 2].to_owned()];
            if i % 3 == 0 {
                row.stored.summary = Some("a summary".into());
                row.fields.summary_tokens = 3;
            }
            row
        })
        .collect()
}

fn file_of(rows: Vec<Row>) -> Vec<u8> {
    let vfs = MemoryVfs::default();
    write_all(&vfs, &real_spec(), rows);
    vfs.bytes(&dir().join(segment_file_name(7)))
}

fn scrub(bytes: Vec<u8>) -> Result<Scrub, String> {
    let vfs = MemoryVfs::default();
    vfs.put(&dir().join(segment_file_name(7)), bytes);
    let segment = Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped)
        .map_err(|error| error.to_string())?;
    let mut done = Vec::new();
    let scrub = segment.verify_content(&mut |bytes| done.push(bytes));
    assert!(done.is_sorted(), "progress goes on: {done:?}");
    Ok(scrub)
}

/// Puts the sections of a changed file into the sound one.
fn transplant(sections: &[&str], change: impl Fn(&mut Vec<Row>)) -> Vec<u8> {
    transplant_of(rows(), sections, change)
}

fn transplant_of(rows: Vec<Row>, sections: &[&str], change: impl Fn(&mut Vec<Row>)) -> Vec<u8> {
    let mut changed = rows.clone();
    let mut sound = file_of(rows);
    change(&mut changed);
    let other = file_of(changed);
    let (here, there) = (layout(&sound), layout(&other));
    for name in sections {
        let of = |parts: &crate::format::Layout| {
            let part = parts.sections.iter().find(|part| part.name == *name);
            part.map(|part| part.start..part.end).expect("a section")
        };
        let (to, from) = (of(&here), of(&there));
        assert_eq!(to.len(), from.len(), "{name} has another length");
        assert_ne!(
            sound[to.clone()],
            other[from.clone()],
            "{name} is the same in both"
        );
        sound[to].copy_from_slice(&other[from]);
    }
    let place = layout(&sound);
    repair(&mut sound, &place);
    sound
}

/// One of the findings is about `section` and says `what`.
#[track_caller]
fn finds(bytes: Vec<u8>, section: &str, what: &str) {
    let findings = match scrub(bytes) {
        Ok(scrub) => scrub.findings,
        Err(refused) => panic!("refused at the open, before the check: {refused}"),
    };
    assert!(
        findings
            .iter()
            .any(|finding| finding.section == section && finding.message.contains(what)),
        "{section}, {what}: {findings:?}"
    );
}

#[test]
fn sound_rows_have_no_contradiction() {
    let scrub = scrub(file_of(rows())).expect("opens");
    assert_eq!(scrub.findings, []);
}

#[test]
fn rows_of_a_scope_are_in_order() {
    // There the scope ends one row later, with a row of the second cluster.
    let other = |rows: &mut Vec<Row>| {
        rows[12].scope = rows[0].scope.clone();
        rows[12].fields.cluster = 1;
    };
    finds(
        transplant(&["columns"], other),
        "columns",
        "out of order by cluster",
    );
}

#[test]
fn lengths_and_times_of_scopes_are_those_of_the_rows() {
    // The sum over all scopes, which the open compares, stays.
    let across = |rows: &mut Vec<Row>| swap(rows, 0, 21, |fields| &mut fields.length);
    finds(
        transplant(&["scopes"], across),
        "scopes",
        "lengths of scope 0",
    );
    let inside = |rows: &mut Vec<Row>| swap(rows, 0, 1, |fields| &mut fields.length);
    finds(transplant(&["columns"], inside), "columns", "its text has");
    let earlier = |rows: &mut Vec<Row>| rows[11].fields.event_time_us = 109;
    finds(
        transplant(&["scopes"], earlier),
        "scopes",
        "event times of scope 0",
    );
}

fn swap(rows: &mut [Row], a: usize, b: usize, field: fn(&mut RowFields) -> &mut u32) {
    let (of_a, of_b) = (*field(&mut rows[a].fields), *field(&mut rows[b].fields));
    assert_ne!(of_a, of_b);
    *field(&mut rows[a].fields) = of_b;
    *field(&mut rows[b].fields) = of_a;
}

#[test]
fn a_timeline_is_a_permutation_in_order_of_time() {
    // Equal times in the columns of both files but not in their order by time.
    let later = |rows: &mut Vec<Row>| rows[5].fields.event_time_us = 81;
    finds(
        transplant(&["timeline"], later),
        "timeline",
        "twice or out of order",
    );
}

#[test]
fn ids_are_in_order_and_pass_the_filter() {
    let other = |rows: &mut Vec<Row>| rows[4].id = "zz09".into();
    finds(
        transplant(&["id_filter"], other),
        "id_filter",
        "does not pass",
    );
    finds(
        transplant(&["id_order"], other),
        "id_order",
        "out of order by id",
    );
}

#[test]
fn postings_are_the_words_of_the_text() {
    let exchanged = |rows: &mut Vec<Row>| {
        let terms = rows[2].terms.clone();
        rows[2].terms = std::mem::replace(&mut rows[3].terms, terms);
    };
    finds(
        transplant(&["postings"], exchanged),
        "postings",
        "not the words of its text",
    );
    // Two texts in each other's place, which compress to as many bytes there.
    let exchange = |(a, b): (usize, usize), rows: &mut Vec<Row>| {
        let text = rows[a].stored.text.clone();
        rows[a].stored.text = std::mem::replace(&mut rows[b].stored.text, text);
    };
    let detailed_bytes = |rows: Vec<Row>| {
        let parts = layout(&file_of(rows)).sections;
        let part = parts.iter().find(|part| part.name == "detailed");
        part.map(|part| part.end - part.start)
    };
    let (sound, texts) = (detailed_bytes(rows()), rows());
    let mut pairs = (0..24).flat_map(|a| (0..a).map(move |b| (a, b)));
    let pair = pairs.find(|(a, b)| {
        let (a_text, b_text) = (&texts[*a].stored.text, &texts[*b].stored.text);
        let mut changed = rows();
        exchange((*a, *b), &mut changed);
        a_text != b_text && a_text.len() == b_text.len() && detailed_bytes(changed) == sound
    });
    let pair = pair.expect("two of them take as much room");
    finds(
        transplant(&["detailed"], |rows| exchange(pair, rows)),
        "postings",
        "not the words of its text",
    );
}

/// In the other file every row is longer than its text: bounds made there are too low here.
#[test]
fn no_posting_is_above_its_bounds() {
    let longer = |rows: &mut Vec<Row>| rows.iter_mut().for_each(|row| row.fields.length += 9);
    finds(transplant(&["terms"], longer), "terms", "a bound of term");
    let many: Vec<Row> = (0..300)
        .map(|i| prepared("a", &format!("id{i:03}"), i, i as u64 + 1, "alpha beta"))
        .collect();
    finds(
        transplant_of(many.clone(), &["postings_skip"], longer),
        "postings_skip",
        "a bound of term",
    );
    // In one row only, which the last block alone holds.
    let last = |rows: &mut Vec<Row>| {
        rows[299].fields.length = 1;
        rows[0].fields.length = 3;
    };
    let mut shorter = many;
    last(&mut shorter);
    finds(
        transplant_of(shorter, &["postings_skip"], |rows| {
            rows[299].fields.length = 2;
            rows[3].fields.length = 1;
        }),
        "postings_skip",
        "posting 299 stands",
    );
}

#[test]
fn token_costs_are_those_of_the_text() {
    finds(
        transplant(&["columns"], |rows| {
            swap(rows, 0, 1, |fields| &mut fields.text_tokens)
        }),
        "columns",
        "tokens by its columns",
    );
}

#[test]
fn tags_by_row_and_rows_by_tag_agree() {
    let other = |rows: &mut Vec<Row>| {
        rows[6].tags = vec!["green".into()];
        rows[7].tags = vec!["red".into()];
    };
    finds(
        transplant(&["tag_sets"], other),
        "tag_sets",
        "does not have it",
    );
    finds(
        transplant(&["row_tags"], other),
        "tag_sets",
        "does not have it",
    );
}

#[test]
fn unit_vectors_have_unit_length() {
    let longer = |rows: &mut Vec<Row>| {
        rows[1].vector = Some(
            [3.0_f32, 0.0, 0.0]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        );
    };
    finds(transplant(&["vectors"], longer), "vectors", "has length 3");
}

#[test]
fn codes_are_those_of_the_vectors() {
    let turned = |rows: &mut Vec<Row>| {
        rows[1].vector = Some(
            [0.0_f32, -1.0, 0.0]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        );
    };
    let other_codes = transplant(&["vector_codes"], turned);
    finds(
        other_codes.clone(),
        "vector_codes",
        "is not that of its vector",
    );
    finds(
        transplant(&["vectors"], turned),
        "vector_codes",
        "is not that of its vector",
    );
    // A scrub that does not look at the content has nothing to compare them with.
    let vfs = MemoryVfs::default();
    vfs.put(&dir().join(segment_file_name(7)), other_codes.clone());
    let segment = Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped).expect("opens");
    assert_eq!(segment.verify_all().findings, []);

    // A factor without a value, and a trailer of another store.
    for (from_end, what) in [
        (32 + 4, "is not that of its vector"),
        (32 - 8, "trailer is"),
    ] {
        let mut bytes = file_of(rows());
        let place = layout(&bytes);
        let part = place
            .sections
            .iter()
            .find(|part| part.name == "vector_codes");
        let at = part.expect("codes").end - from_end;
        bytes[at..at + 4].copy_from_slice(&f32::NAN.to_le_bytes());
        repair(&mut bytes, &place);
        finds(bytes, "vector_codes", what);
    }
}

#[test]
fn a_merge_copies_codes_and_makes_none() {
    // Codes of another vector under right checksums: a merge that made codes would mend them.
    let turned = |rows: &mut Vec<Row>| {
        rows[1].vector = Some(
            [0.0_f32, -1.0, 0.0]
                .iter()
                .flat_map(|x| x.to_le_bytes())
                .collect(),
        );
    };
    let vfs = MemoryVfs::default();
    vfs.put(
        &dir().join(segment_file_name(7)),
        transplant(&["vector_codes"], turned),
    );
    let segment = Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped).expect("opens");
    let codes = |segment: &Segment| -> Vec<_> {
        let code = |row| {
            let mut code = Vec::new();
            (
                segment
                    .code(SpaceNumber::MAIN, row, &mut code)
                    .expect("codes"),
                code,
            )
        };
        (0..24).map(code).collect()
    };
    let merge = |spec: &SegmentSpec| {
        let input = MergeInput {
            partition: &segment,
            keep: (0..24).collect(),
        };
        let vfs = MemoryVfs::default();
        write_segment(&vfs, dir(), spec, &[input]).expect("written");
        Segment::open_unreferenced(&vfs, dir(), spec.file_number, ReadMode::Mapped).expect("opens")
    };
    let mut spec = real_spec();
    spec.file_number = 8;
    assert_eq!(codes(&merge(&spec)), codes(&segment));
    // Into another store they are made anew, with its seed.
    spec.store_id = [9; 16];
    let moved = merge(&spec);
    assert_ne!(codes(&moved), codes(&segment));
    assert_eq!(moved.verify_content(&mut |_| {}).findings, []);
}

#[test]
fn counts_of_the_footer_are_those_of_the_sections() {
    let bytes = file_of(rows());
    let place = layout(&bytes);
    // The counts stand before the lineage, which ends the footer: count u32 and two u64.
    let lineage = 4 + 2 * 8;
    let counts = place.trailer - lineage - (4 + 3 * 8);
    // Before the counts stand the highest seq of a row and its highest source class.
    for (at, section, what) in [
        (counts - 1, "columns", "the footer has"),
        (counts - 9, "columns", "the footer has"),
        (counts, "distilled", "summaries"),
        (counts + 4, "terms", "terms and"),
        (counts + 12, "terms", "postings, the footer"),
    ] {
        let mut damaged = bytes.clone();
        damaged[at] += 1;
        repair(&mut damaged, &place);
        finds(damaged, section, what);
    }
}

#[test]
fn a_file_that_does_not_open_still_has_all_its_blocks_looked_at() {
    let vfs = MemoryVfs::default();
    let mut bytes = file_of(rows());
    let place = layout(&bytes);
    for name in ["scopes", "detailed"] {
        let part = place.sections.iter().find(|part| part.name == name);
        bytes[part.expect("a section").start] ^= 1;
    }
    vfs.put(&dir().join(segment_file_name(7)), bytes);
    assert!(Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped).is_err());
    let scrub = Segment::scrub_blocks(&vfs, dir(), 7).expect("frame and footer are whole");
    let sections: Vec<&str> = scrub
        .findings
        .iter()
        .map(|finding| finding.section)
        .collect();
    assert_eq!(sections, ["scopes", "detailed"]);
}

/// Where the least value of each column stands, by its number.
fn least_values(bytes: &[u8]) -> Vec<(u16, usize)> {
    let parts = layout(bytes).sections;
    let columns = parts.iter().find(|part| part.name == "columns");
    let mut at = columns.expect("a section").start;
    let end = columns.expect("a section").end;
    let mut found = Vec::new();
    while at < end {
        let number = u16::from_le_bytes([bytes[at], bytes[at + 1]]);
        let header = at + 8;
        let count = u32::from_le_bytes(bytes[header + 4..header + 8].try_into().expect("4"));
        found.push((number, header + 8));
        at = header + 32;
        if bytes[header] > 0 {
            at += (count as usize * usize::from(bytes[header])).div_ceil(8) + 8;
        }
    }
    found
}

#[test]
fn no_column_out_of_range_stops_a_merge_with_a_panic() {
    let sound = file_of(rows());
    let columns = least_values(&sound);
    assert_eq!(columns.len(), 13);
    for (number, at) in columns {
        // Far above 32 bits, and outside the zone of times and seqs.
        let mut bytes = sound.clone();
        bytes[at + 5] ^= 1;
        let place = layout(&bytes);
        repair(&mut bytes, &place);
        let vfs = MemoryVfs::default();
        vfs.put(&dir().join(segment_file_name(7)), bytes);
        let segment = Segment::open_unreferenced(&vfs, dir(), 7, ReadMode::Mapped);
        let merged = segment.and_then(|segment| {
            let input = MergeInput {
                partition: &segment,
                keep: (0..segment.zone().rows).collect(),
            };
            let spec = SegmentSpec {
                file_number: 8,
                lineage: vec![7],
                train_dictionary: true,
                ..real_spec()
            };
            write_segment(&vfs, dir(), &spec, &[input])
        });
        // Times of commits, of validity and of expiry may be anything.
        let may_be_anything = (3..=6).contains(&number);
        match merged {
            Ok(_) => assert!(may_be_anything, "column {number}"),
            Err(SegmentError::Corrupt { section, .. }) => assert_eq!(section, "columns"),
            Err(error) => panic!("column {number}: {error}"),
        }
    }
}
