use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::{btree_set, vec};
use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::writer::TagsBytes;
use super::*;
use crate::SegmentError;
use crate::format::Section;

type Rows = Vec<BTreeSet<String>>;

fn write(rows: &Rows) -> TagsBytes {
    let mut writer = TagsWriter::new();
    for tags in rows {
        // Any order is taken.
        let numbers: Vec<u32> = tags
            .iter()
            .rev()
            .map(|tag| writer.number(tag).expect("small"))
            .collect();
        writer.push(numbers).expect("small");
    }
    writer.finish().expect("small")
}

fn open(bytes: &TagsBytes, rows: usize) -> Result<Tags, SegmentError> {
    let section = |name, bytes: &Vec<u8>| Section::in_memory(name, bytes.clone());
    let (tags, sets) = (
        section("tags", &bytes.tags),
        section("tag_sets", &bytes.sets),
    );
    Tags::open(
        tags,
        sets,
        section("row_tags", &bytes.row_tags),
        rows as u32,
    )
}

fn check(rows: &Rows) {
    let tags = open(&write(rows), rows.len()).expect("intact");
    let mut by_tag: BTreeMap<&String, RoaringBitmap> = BTreeMap::new();
    let mut untagged = RoaringBitmap::new();
    for (row, names) in (0..).zip(rows) {
        assert_eq!(
            tags.of_row(row).expect("intact"),
            names.iter().cloned().collect::<Vec<_>>(),
            "row {row}"
        );
        for name in names {
            by_tag.entry(name).or_default().insert(row);
        }
        if names.is_empty() {
            untagged.insert(row);
        }
    }
    assert!(tags.of_row(rows.len() as u32).is_err());
    let mut walk = tags.walk();
    for row in (0..rows.len()).chain((0..rows.len()).rev()) {
        let mut numbers = vec![7];
        walk.push(row as u32, &mut numbers).expect("intact");
        let names = numbers[1..]
            .iter()
            .map(|tag| tags.name(*tag).expect("intact"));
        assert_eq!(names.collect::<BTreeSet<_>>(), rows[row]);
    }
    assert!(walk.push(rows.len() as u32, &mut Vec::new()).is_err());
    assert_eq!(tags.untagged().expect("intact"), untagged);
    let names: Vec<&String> = by_tag.keys().copied().collect();
    assert_eq!(
        tags.names().expect("intact").iter().collect::<Vec<_>>(),
        names
    );
    for (name, rows) in by_tag {
        assert_eq!(
            tags.rows_of(name).expect("intact").as_ref(),
            Some(&rows),
            "{name}"
        );
    }
    assert_eq!(tags.rows_of("no such tag").expect("intact"), None);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]
    #[test]
    fn tags_come_back_both_ways(rows in vec(btree_set("[a-cü]{1,3}", 0..4), 0..300)) {
        check(&rows);
    }

    #[test]
    fn damaged_sets_and_lists_are_errors_or_rows_of_the_segment(
        at in any::<prop::sample::Index>(), with in 1_u8..=255, in_sets in any::<bool>(),
    ) {
        let rows: Rows = (0..200).map(|row| (0..row % 4).map(|tag| format!("t{}", tag * row % 23)).collect()).collect();
        let mut bytes = write(&rows);
        let damaged = if in_sets { &mut bytes.sets } else { &mut bytes.row_tags };
        let at = at.index(damaged.len());
        damaged[at] ^= with;
        if let Ok(tags) = open(&bytes, 200) {
            for row in 0..200 {
                if let Ok(names) = tags.of_row(row) {
                    prop_assert!(names.is_sorted_by(|a, b| a < b));
                }
            }
            for name in tags.names().expect("intact") {
                if let Ok(Some(set)) = tags.rows_of(&name) {
                    prop_assert!(set.max().is_none_or(|row| row < 200));
                }
            }
            let _ = tags.untagged();
        }
    }
}

#[test]
fn no_rows_no_tags_one_tag_and_many_tags_work() {
    check(&vec![]);
    check(&vec![BTreeSet::new(); 65]);
    check(&vec![BTreeSet::from(["only".into()]); 64]);
    let many: BTreeSet<String> = (0..2000).map(|i| format!("tag {i}")).collect();
    check(&vec![
        BTreeSet::new(),
        many,
        BTreeSet::from(["tag 7".into()]),
    ]);
}

#[test]
fn a_repeated_name_counts_once() {
    let mut writer = TagsWriter::new();
    let numbers = ["a", "b", "a"].map(|tag| writer.number(tag).expect("small"));
    writer.push(numbers).expect("small");
    let tags = open(&writer.finish().expect("small"), 1).expect("intact");
    assert_eq!(tags.of_row(0).expect("intact"), ["a", "b"]);
}

#[test]
fn rows_with_few_tags_take_little() {
    let rows: Rows = (0..6400)
        .map(|row| {
            (0..row % 4)
                .map(|tag| format!("t{}", tag * 5 + row % 5))
                .collect()
        })
        .collect();
    let bytes = write(&rows).row_tags.len();
    // 1.5 tags of 4 bits, a count of 2 bits and 1.5 bits of directory a row.
    assert_eq!(bytes, 6400 * 6 / 8 + 6400 * 2 / 8 + 6400 / 64 * 12 + 16);
}

#[test]
fn sections_of_another_segment_are_refused() {
    let rows: Rows = (0..10)
        .map(|row| BTreeSet::from([format!("t{row}")]))
        .collect();
    let bytes = write(&rows);
    assert!(open(&bytes, 10).is_ok());
    assert!(open(&bytes, 11).is_err());
    let other = write(&rows[..9].to_vec());
    let mixed = TagsBytes {
        tags: bytes.tags.clone(),
        sets: other.sets,
        row_tags: bytes.row_tags.clone(),
    };
    assert!(
        open(&mixed, 10)
            .expect_err("mixed")
            .to_string()
            .contains("section tag_sets")
    );
}
