use std::collections::BTreeMap;

use proptest::collection::{btree_map, vec};
use proptest::prelude::*;

use super::*;
use crate::SegmentError;
use crate::format::{Section, VecSink};
use crate::read::{Postings, TermStream};

const ROWS: u32 = 1000;
type Model = BTreeMap<Vec<u8>, BTreeMap<u32, u32>>;

fn write(model: &Model) -> [Vec<u8>; 3] {
    let mut writer = TermsWriter::new();
    let mut sink = VecSink::default();
    for (term, postings) in model {
        let (rows, freqs): (Vec<u32>, Vec<u32>) = postings.iter().unzip();
        writer
            .add(&mut sink, term, &rows, &freqs)
            .expect("in memory");
    }
    let TermsBytes { terms, skip } = writer.finish();
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
        prop_assert_eq!(terms.len() as usize, model.len());
        let rows = a.min(b)..a.max(b);
        for (term, postings) in &model {
            let info = terms.get(term).expect("intact").expect("held");
            prop_assert_eq!(info.df as usize, postings.len());
            let expected = postings.range(rows.clone()).count();
            let cursor = terms.postings_of(info, rows.clone()).expect("intact");
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

#[test]
fn a_stream_goes_on_over_batches_and_keys_are_found_by_number() {
    let name = |i: u32| format!("term{i:05}").into_bytes();
    let model: Model = (0..3000)
        .map(|i| (name(i), BTreeMap::from([(i % ROWS, 1)])))
        .collect();
    let bytes = write(&model);
    let terms = open(bytes.clone()).expect("intact");
    let mut stream = terms.stream();
    for i in 0..3000 {
        assert_eq!(stream.next_term().expect("intact"), Some(&name(i)[..]));
    }
    assert_eq!(stream.next_term().expect("intact"), None);

    let fst_bytes = bytes[0].len() as u64 - 16 - 3000 * 12;
    let dictionary = FstDictionary::open(
        Section::in_memory("terms", bytes[0].clone()),
        0,
        fst_bytes,
        3000,
    )
    .expect("intact");
    let mut key = Vec::new();
    for i in [0, 1, 511, 512, 2999] {
        dictionary.key(i, &mut key).expect("held");
        assert_eq!(key, name(i));
    }
    assert!(dictionary.key(3000, &mut key).is_err());
}

#[test]
fn a_term_without_postings_is_left_out() {
    let mut writer = TermsWriter::new();
    let mut sink = VecSink::default();
    writer.add(&mut sink, b"gone", &[], &[]).expect("in memory");
    let bytes = writer.finish();
    let terms = open([bytes.terms, sink.bytes, bytes.skip]).expect("intact");
    assert_eq!(terms.len(), 0);
    assert!(terms.get(b"gone").expect("intact").is_none());
    assert!(terms.stream().next_term().expect("intact").is_none());
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
    // Each byte of the trailer, and the FST's version, count and root.
    for at in (len - 16..len)
        .chain(0..8)
        .chain(len - 16 - 60 - 16..len - 16 - 60)
    {
        let error = with(&|terms| terms[at] ^= 0x41)
            .expect_err("damaged")
            .to_string();
        assert!(error.contains("section terms"), "{at}: {error}");
    }
    assert!(with(&|terms| terms.truncate(15)).is_err());
    assert!(with(&|terms| terms.insert(0, 0)).is_err());
    // An entry that leads out of the segment.
    let terms = with(&|terms| terms[len - 16 - 60 + 6] = 9).expect("lists are read later");
    let info = terms.get(&[0]).expect("intact").expect("held");
    assert!(terms.postings_of(info, 0..ROWS).is_err());
}
