use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::SegmentError;
use crate::format::{Section, VecSink};
use crate::read::{Postings, TermBounds, TermStream, TermVisit};

const ROWS: u32 = 1000;
const SEED: u64 = 42;
/// Bytes of the trailer.
const TRAILER: usize = 32;
type Model = BTreeMap<Vec<u8>, BTreeMap<u32, u32>>;

fn write(model: &Model) -> [Vec<u8>; 3] {
    let lengths = vec![9; ROWS as usize];
    let mut writer = TermsWriter::new(SEED, &lengths);
    let mut sink = VecSink::default();
    for (term, postings) in model {
        let (rows, freqs): (Vec<u32>, Vec<u32>) = postings.iter().unzip();
        writer
            .add(&mut sink, term, &rows, &freqs)
            .expect("in memory");
    }
    let TermsBytes { terms, skip } = writer.finish(&mut sink).expect("in memory");
    [terms, sink.bytes, skip]
}

fn open([terms, postings, skip]: [Vec<u8>; 3]) -> Result<Terms, SegmentError> {
    let section = Section::in_memory;
    Terms::open(
        section("terms", terms),
        section("postings", postings),
        section("postings_skip", skip),
        ROWS,
    )
}

fn model() -> impl Strategy<Value = Model> {
    let postings = prop_oneof![
        4 => btree_map(0..ROWS, 1_u32..5, 1..4),
        1 => btree_map(0..ROWS, 1_u32..5, 100..300),
    ];
    btree_map(
        vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 0..5),
        postings,
        0..30,
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn every_term_is_found_with_its_postings(model in model(), a in 0..ROWS, b in 0..ROWS) {
        let terms = open(write(&model)).expect("intact");
        let rows = a.min(b)..a.max(b);
        for (term, postings) in &model {
            let info = terms.get(term).expect("intact").expect("held");
            prop_assert_eq!(info.df as usize, postings.len());
            let expected = postings.range(rows.clone()).count();
            let cursor = terms.postings_of(&info, rows.clone()).expect("intact");
            prop_assert_eq!(cursor.map_or(0, |cursor| cursor.count()) as usize, expected);
            let mut longer = term.clone();
            longer.push(b'!');
            prop_assert_eq!(terms.get(&longer).expect("intact").is_some(), model.contains_key(&longer));
        }
    }

    #[test]
    fn a_stream_gives_all_terms_in_order(model in model()) {
        let terms = open(write(&model)).expect("intact");
        let mut stream = terms.stream();
        let (mut rows, mut freqs) = (vec![1], vec![2]);
        let mut found = Model::new();
        while let Some(term) = stream.next_term().expect("intact") {
            let term = term.to_vec();
            prop_assert!(found.last_key_value().is_none_or(|(last, _)| *last < term));
            stream.read_postings(&mut rows, &mut freqs).expect("intact");
            found.insert(term, rows.iter().copied().zip(freqs.iter().copied()).collect());
        }
        prop_assert_eq!(found, model);
        prop_assert!(stream.next_term().expect("still the end").is_none());
    }
}

/// The terms that a walk visits, where the visitor says `Continue`, `SkipTo` or `Stop` by turns.
fn walked(terms: &Terms, from: &[u8], turns: &[TermVisit]) -> Vec<(Vec<u8>, u32)> {
    let mut found = Vec::new();
    let mut turns = turns.iter();
    let walk = terms.walk(from, &mut |term, info| {
        found.push((term.to_vec(), info.df));
        Ok(turns.next().cloned().unwrap_or(TermVisit::Continue))
    });
    walk.expect("intact");
    found
}

/// The same by looking at every term.
fn walked_naively(model: &Model, from: &[u8], turns: &[TermVisit]) -> Vec<(Vec<u8>, u32)> {
    let (mut found, mut from) = (Vec::new(), from.to_vec());
    let mut turns = turns.iter();
    for (term, postings) in model {
        if *term < from {
            continue;
        }
        found.push((term.clone(), u32::try_from(postings.len()).expect("few")));
        match turns.next() {
            Some(TermVisit::Stop) => break,
            Some(TermVisit::SkipTo(to)) => from.clone_from(to),
            _ => {}
        }
    }
    found
}

fn key() -> impl Strategy<Value = Vec<u8>> {
    vec(prop_oneof![Just(b'a'), Just(b'b'), any::<u8>()], 0..5)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]
    #[test]
    fn a_walk_visits_what_looking_at_every_term_finds(
        keys in prop::collection::btree_set(key(), 0..200),
        from in key(),
        turns in vec(prop_oneof![
            4 => Just(TermVisit::Continue),
            4 => key().prop_map(TermVisit::SkipTo),
            1 => Just(TermVisit::Stop),
        ], 0..30),
    ) {
        let model: Model = keys.into_iter().map(|key| (key, BTreeMap::from([(3, 1)]))).collect();
        let terms = open(write(&model)).expect("intact");
        prop_assert_eq!(walked(&terms, &from, &turns), walked_naively(&model, &from, &turns));
    }

    #[test]
    fn keys_of_any_length_come_back(lens in prop::collection::btree_set((0_usize..400, 0_usize..1025), 0..60)) {
        // Long shared prefixes and long rests: both lengths of a head pass their halves.
        let mut model = Model::new();
        for (shared, len) in lens {
            let mut key = vec![b'k'; shared.min(len)];
            key.resize(len, b'x');
            model.insert(key, BTreeMap::from([(1, 1)]));
        }
        let terms = open(write(&model)).expect("intact");
        for key in model.keys() {
            prop_assert!(terms.get(key).expect("intact").is_some());
        }
        prop_assert_eq!(walked(&terms, b"", &[]).len(), model.len());
    }

    #[test]
    fn damaged_dictionaries_give_errors_or_terms_and_end(
        model in model(),
        at in any::<prop::sample::Index>(),
        with in 1_u8..=255,
    ) {
        let mut bytes = write(&model);
        let at = at.index(bytes[0].len());
        bytes[0][at] ^= with;
        let Ok(terms) = open(bytes) else { return Ok(()) };
        for term in model.keys() {
            if let Ok(Some(info)) = terms.get(term) {
                let _ = terms.postings_of(&info, 0..ROWS).map(|cursor| cursor.map(|c| c.count()));
            }
        }
        let mut before: Option<Vec<u8>> = None;
        let _ = terms.walk(b"", &mut |term, _| {
            assert!(before.as_deref().is_none_or(|before| before < term), "terms ascend");
            before = Some(term.to_vec());
            Ok(TermVisit::Continue)
        });
    }
}

/// Model of `count` terms of one row each.
fn numbered(count: u32) -> (Model, impl Fn(u32) -> Vec<u8>) {
    let name = |i: u32| format!("term{i:05}").into_bytes();
    let model = (0..count)
        .map(|i| (name(i), BTreeMap::from([(i % ROWS, 1)])))
        .collect();
    (model, name)
}

#[test]
fn all_of_many_terms_are_found_and_no_others() {
    // More than 256 blocks: their numbers take two bytes.
    let (model, name) = numbered(5000);
    let terms = open(write(&model)).expect("intact");
    let mut stream = terms.stream();
    for i in 0..5000 {
        assert_eq!(stream.next_term().expect("intact"), Some(&name(i)[..]));
        let info = terms.get(&name(i)).expect("intact").expect("held");
        assert_eq!(
            info.bounds,
            TermBounds::one(1, 9),
            "the length is the row's"
        );
        assert_eq!(terms.get(&name(i)[..8]).expect("intact"), None);
        assert_eq!(terms.get(&name(i + 5000)).expect("intact"), None);
    }
    assert_eq!(stream.next_term().expect("intact"), None);
    assert_eq!(stream.next_term().expect("still the end"), None);
}

#[test]
fn keys_of_an_fst_are_found_by_number() {
    let (_, name) = numbered(0);
    let mut builder = FstBuilder::new();
    for i in 0..3000 {
        assert_eq!(builder.push(&name(i)).expect("few"), i);
    }
    let bytes = builder.finish();
    let len = bytes.len() as u64;
    let section = Section::in_memory("tags", bytes);
    let dictionary = FstDictionary::open(section, 0, len, 3000).expect("intact");
    let mut key = Vec::new();
    for i in [0, 1, 511, 512, 2999] {
        dictionary.key(i, &mut key).expect("held");
        assert_eq!(key, name(i));
    }
    assert!(dictionary.key(3000, &mut key).is_err());
}

#[test]
fn an_entry_comes_back_in_a_segment_of_few_rows_and_of_many() {
    use super::format::Entry;
    for (wide, row_max) in [(false, (1 << 22) - 1), (true, crate::limits::ROWS_MAX - 1)] {
        for (row, freq, length) in [(0, 1, 0), (row_max, 255, 255), (77, 3, 40)] {
            let entry = Entry::One { row, freq, length };
            let length = if wide { 0 } else { length };
            let expected = Some(Entry::One { row, freq, length });
            assert_eq!(Entry::decode(&entry.encode(wide), wide), expected);
        }
        for (df, bytes, bounds) in [(1, 0, [0, 0]), (127, 1270, [255, 254]), (2, 5, [3, 255])] {
            let entry = Entry::Short { df, bytes, bounds };
            assert_eq!(Entry::decode(&entry.encode(wide), wide), Some(entry));
            assert_eq!(Entry::short_bytes(&entry.encode(wide)), u64::from(bytes));
        }
        for skip_offset in [0, 4, ((1_u64 << 38) - 1) * 4] {
            let entry = Entry::Long { skip_offset };
            assert_eq!(Entry::decode(&entry.encode(wide), wide), Some(entry));
            assert_eq!(Entry::short_bytes(&entry.encode(wide)), 0);
        }
    }
}

#[test]
fn a_frequency_that_does_not_fit_an_entry_comes_back() {
    for freq in [255, 256, u32::MAX] {
        let model = Model::from([(b"word".to_vec(), BTreeMap::from([(7, freq)]))]);
        let terms = open(write(&model)).expect("intact");
        let info = terms.get(b"word").expect("intact").expect("held");
        assert!(info.bounds.covers(freq, 9));
        let mut cursor = terms
            .postings_of(&info, 0..ROWS)
            .expect("intact")
            .expect("one");
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        cursor
            .read_until(ROWS, &mut rows, &mut freqs)
            .expect("intact");
        assert_eq!((rows, freqs), (vec![7], vec![freq]));
    }
}

#[test]
fn a_term_without_postings_is_left_out() {
    let mut writer = TermsWriter::new(SEED, &[]);
    let mut sink = VecSink::default();
    writer.add(&mut sink, b"gone", &[], &[]).expect("in memory");
    let bytes = writer.finish(&mut sink).expect("in memory");
    let terms = open([bytes.terms, sink.bytes, bytes.skip]).expect("intact");
    assert!(terms.get(b"gone").expect("intact").is_none());
    assert!(terms.stream().next_term().expect("intact").is_none());
}

#[test]
fn a_hash_index_without_a_free_place_ends_a_search_in_an_error() {
    let (model, name) = numbered(40);
    let mut bytes = write(&model);
    let places = 4 * (16 + 16);
    for bucket in bytes[0][..places].chunks_mut(32).take(3) {
        bucket[..16].fill(0x55);
    }
    let terms = open(bytes).expect("places are looked at later");
    let error = terms.get(&name(99)).expect_err("no end").to_string();
    assert!(
        error.contains("no free place") && error.contains("section terms"),
        "{error}"
    );
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let model: Model = (0..5_u8)
        .map(|i| (vec![i], BTreeMap::from([(u32::from(i), 1)])))
        .collect();
    let intact = write(&model);
    let len = intact[0].len();
    let with = |change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = intact.clone();
        change(&mut bytes[0]);
        open(bytes)
    };
    assert!(with(&|_| ()).is_ok());
    // Each byte of the trailer but the seed, with which nothing is found.
    for at in (len - TRAILER..len - 16).chain(len - 8..len) {
        let error = with(&|terms| terms[at] ^= 0x41)
            .expect_err("damaged")
            .to_string();
        assert!(error.contains("section terms"), "{at}: {error}");
    }
    let other_seed = with(&|terms| terms[len - 16] ^= 1).expect("any seed");
    assert_eq!(other_seed.get(&[0]).expect("intact"), None);
    assert!(with(&|terms| terms.truncate(15)).is_err());
    assert!(with(&|terms| terms.insert(0, 0)).is_err());
    // An entry that leads out of the segment: the first one, behind the only bucket.
    let entry = 32 + 5;
    let terms = with(&|terms| terms[entry + 4] = 9).expect("lists are read later");
    let info = terms.get(&[0]).expect("intact").expect("held");
    assert!(terms.postings_of(&info, 0..ROWS).is_err());
    // A class that there is not.
    let terms = with(&|terms| terms[entry] |= 3).expect("entries are read later");
    assert!(terms.get(&[0]).is_err());
}
