//! Does the memtable answer like its plain twin, for every seq and under a running writer?

#![expect(clippy::cast_possible_truncation, reason = "tests of few rows")]

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use roaring::RoaringBitmap;

use super::naive::Naive;
use super::{Memtable, MemtableOptions};
use crate::analyze::{Analyzed, Analyzer};
use crate::codec::prepare;
use crate::prepared::{Prepared, TokenCounter, VectorFormat, VectorSpace};
use crate::read::{Partition, Run, TimeOrder};
use crate::record::{Record, SourceClass};
use crate::scope::{Scope, ScopeRanges, ScopeSelector};
use crate::space::{NumberedSpace, SpaceNumber, SpaceSet};
use crate::vectors::Coder;

const SCOPES: [&str; 6] = ["a", "a/b", "a/b/c", "a-b", "b", "a/c"];
const TERMS: [&str; 7] = ["all", "b", "c", "d", "e", "f", "ff"];
const TAGS: [&str; 3] = ["x", "y", "z"];

/// Of a space beside the main one.
const OTHER: SpaceNumber = SpaceNumber::new(3);

fn options() -> MemtableOptions {
    let space = |dim| VectorSpace {
        model: "m".into(),
        dim,
        format: VectorFormat::F16,
        normalised: true,
    };
    let other = NumberedSpace {
        number: OTHER,
        name: "other".into(),
        space: space(3),
    };
    MemtableOptions {
        spaces: vec![NumberedSpace::main(space(2)), other],
        bytes_max: 0,
        hash_seed: 7,
        code_seed: Some(11),
    }
}

/// A row whose text holds each term so often.
fn prepared(scope: &str, id: &str, time_us: i64, terms: &[(&str, u32)]) -> Prepared {
    let words = terms.iter().flat_map(|(term, n)| (0..*n).map(|_| *term));
    let text = words.collect::<Vec<_>>().join(" ");
    let record = Record::new(Scope::parse(scope).expect("a scope"), id, time_us, text);
    let analyzer = Analyzer::default();
    prepare(
        record,
        &analyzer,
        &mut Analyzed::new(),
        &SpaceSet::default(),
        TokenCounter::default(),
    )
    .expect("fits")
}

/// A row by its choices: scope, id, time, terms as bits, tags as bits, more as bits.
fn chosen((scope, id, time_us, terms, tags, more): (usize, u8, i64, u8, u8, u8)) -> Prepared {
    let bits = |bits: u8, at: usize| bits >> at & 1 == 1;
    let terms: Vec<(&str, u32)> = (0..TERMS.len())
        .filter(|at| bits(terms, *at))
        .map(|at| (TERMS[at], u32::from(more % 3) + 1))
        .collect();
    let mut row = prepared(SCOPES[scope], &format!("id{id}"), time_us, &terms);
    row.record.tags = (0..TAGS.len())
        .filter(|at| bits(tags, *at))
        .map(|at| TAGS[at].into())
        .collect();
    if bits(more, 0) {
        row.vectors.put(SpaceNumber::MAIN, vec![more, 1, 2, 3]);
    }
    if bits(more, 6) {
        row.vectors.put(OTHER, vec![more, 6, 5, 4, 3, 2]);
    }
    // Of a space that the store no longer has.
    row.vectors.put(SpaceNumber::new(2), vec![0]);
    row.record.summary = bits(more, 1).then(|| "short".into());
    row.record.source_class = bits(more, 2).then_some(SourceClass::Web);
    row.record.importance = bits(more, 3).then_some(0.25);
    row.record.source_id = bits(more, 4).then(|| format!("doc{id}"));
    row.record.speaker = bits(more, 5).then(|| "ana".into());
    row
}

fn some_rows() -> impl Strategy<Value = Vec<Arc<Prepared>>> {
    let ordered = any::<bool>();
    let row = (
        0..SCOPES.len(),
        0..6u8,
        0..40i64,
        0..128u8,
        0..8u8,
        any::<u8>(),
    );
    (ordered, proptest::collection::vec(row, 0..60)).prop_map(|(ordered, mut rows)| {
        if ordered {
            rows.sort_by_key(|row| row.2);
        }
        rows.into_iter().map(|row| Arc::new(chosen(row))).collect()
    })
}

/// Both twins with the same rows; seqs leave gaps.
fn twins(rows: &[Arc<Prepared>]) -> (Memtable, Naive) {
    let (fast, mut naive) = (Memtable::new(options()), Naive::default());
    for (n, row) in (0u32..).zip(rows) {
        let (seq, commit_time_us) = (10 + 2 * u64::from(n), 20 + i64::from(n % 3));
        assert_eq!(fast.insert(row, seq, commit_time_us), n);
        naive.insert(row, seq, commit_time_us);
    }
    (fast, naive)
}

fn ranges(selectors: &[&str]) -> ScopeRanges {
    let parsed: Vec<_> = selectors
        .iter()
        .map(|text| ScopeSelector::parse(text).expect("a selector"))
        .collect();
    ScopeRanges::new(&parsed).expect("some")
}

fn walked(
    partition: &dyn Partition,
    run: &Run,
    from: i64,
    to: i64,
    order: TimeOrder,
) -> Vec<(i64, u32)> {
    let mut rows = Vec::new();
    let mut visit = |row, time_us| {
        rows.push((time_us, row));
        if rows.len() == 9 {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    };
    partition
        .walk_time(run, from, to, order, &mut visit)
        .expect("healthy");
    rows
}

fn posted(partition: &dyn Partition, run: &Run, term: &str, step: u32) -> Option<Vec<u32>> {
    let mut cursor = partition.postings(term.as_bytes(), run).expect("healthy")?;
    let (mut answers, mut freqs) = (vec![cursor.count()], Vec::new());
    let mut row = run.rows.start;
    while row < run.rows.end + step {
        answers.push(cursor.freq_at(row).expect("healthy"));
        cursor
            .read_until(row + step / 2, &mut answers, &mut freqs)
            .expect("healthy");
        row += step;
    }
    answers.append(&mut freqs);
    Some(answers)
}

fn all_terms(partition: &dyn Partition) -> Vec<(Vec<u8>, Vec<u32>, Vec<u32>)> {
    let mut stream = partition.terms().expect("healthy");
    let mut all = Vec::new();
    while let Some(term) = stream.next_term().expect("healthy").map(<[u8]>::to_vec) {
        let (mut rows, mut freqs) = (vec![99], vec![99]);
        stream
            .read_postings(&mut rows, &mut freqs)
            .expect("healthy");
        all.push((term, rows, freqs));
    }
    all
}

fn compare_run(fast: &Memtable, naive: &Naive, run: &Run, step: u32) {
    assert_eq!(
        fast.population(run).expect("ok"),
        naive.population(run).expect("ok")
    );
    let (mut left, mut right) = (Vec::new(), Vec::new());
    fast.for_each_row(run, &mut |row| left.push(row));
    naive.for_each_row(run, &mut |row| right.push(row));
    assert_eq!(left, right);
    for modulus in [1, 2, 5, 50] {
        let set: RoaringBitmap = (0..70).filter(|row| row % modulus == 0).collect();
        assert_eq!(fast.rows_in_run(run, &set), naive.rows_in_run(run, &set));
    }
    for (from, to) in [(i64::MIN, i64::MAX), (10, 30), (17, 18), (30, 10)] {
        for order in [TimeOrder::OldestFirst, TimeOrder::NewestFirst] {
            assert_eq!(
                walked(fast, run, from, to, order),
                walked(naive, run, from, to, order)
            );
        }
    }
    for term in TERMS.into_iter().chain(["absent"]) {
        assert_eq!(
            posted(fast, run, term, step),
            posted(naive, run, term, step),
            "{term}"
        );
    }
}

fn compare_row(fast: &Memtable, naive: &Naive, row: u32) {
    // NaN is not equal to itself; its text is.
    assert_eq!(
        format!("{:?}", fast.fields(row)),
        format!("{:?}", naive.fields(row))
    );
    assert_eq!(
        fast.event_time_us(row).expect("ok"),
        naive.event_time_us(row).expect("ok")
    );
    assert_eq!(
        fast.length(row).expect("ok"),
        naive.length(row).expect("ok")
    );
    assert_eq!(
        fast.source_class(row).expect("ok"),
        naive.source_class(row).expect("ok")
    );
    assert_eq!(
        fast.scope_key(row).expect("ok"),
        naive.scope_key(row).expect("ok")
    );
    assert_eq!(fast.id(row).expect("ok"), naive.id(row).expect("ok"));
    assert_eq!(
        fast.source_id(row).expect("ok"),
        naive.source_id(row).expect("ok")
    );
    assert_eq!(fast.tags(row).expect("ok"), naive.tags(row).expect("ok"));
    for space in [SpaceNumber::MAIN, OTHER] {
        let vector = naive.vector(space, row).expect("ok");
        assert_eq!(fast.vector(space, row).expect("ok"), vector);
        let (mut code, mut made) = (Vec::new(), Vec::new());
        let factor = fast.code(space, row, &mut code).expect("ok");
        let coder = coder(fast, space);
        let made_factor = vector.map(|vector| coder.encode(&vector, &mut made));
        assert_eq!((factor, code), (made_factor, made), "row {row}");
    }
    assert_eq!(fast.vector(SpaceNumber::new(2), row).expect("ok"), None);
    assert_eq!(
        fast.stored(row).expect("ok"),
        naive.stored(row).expect("ok")
    );
}

fn coder(table: &Memtable, space: SpaceNumber) -> Coder {
    let mut spaces = table.spaces().iter();
    let own = spaces.find(|own| own.number == space).expect("a space");
    Coder::new(&own.space, 11)
}

fn compare(fast: &Memtable, naive: &Naive, at_seq: u64, step: u32) {
    assert_eq!(
        fast.scopes(at_seq).expect("ok"),
        naive.scopes(at_seq).expect("ok")
    );
    let selectors: [&[&str]; 6] = [
        &["/"],
        &["a"],
        &["=a"],
        &["a/b+up"],
        &["=a/b", "=b", "absent"],
        &["=a-b", "a/b"],
    ];
    for selectors in selectors {
        let scopes = ranges(selectors);
        let runs = fast.select(&scopes, at_seq).expect("ok");
        assert_eq!(
            runs,
            naive.select(&scopes, at_seq).expect("ok"),
            "{selectors:?}"
        );
        for run in &runs {
            compare_run(fast, naive, run, step);
        }
    }
    for scope in SCOPES.into_iter().chain(["absent"]) {
        let key = Scope::parse(scope).expect("a scope");
        for id in ["id0", "id1", "id2", "id3", "absent"] {
            let found = fast.find(key.key(), id, at_seq).expect("ok");
            assert_eq!(found, naive.find(key.key(), id, at_seq).expect("ok"));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    #[test]
    fn every_question_is_answered_like_the_naive_twin_does(
        rows in some_rows(),
        at_seq in 8..140u64,
        step in 1..9u32,
    ) {
        let (fast, naive) = twins(&rows);
        prop_assert_eq!(fast.zone(), naive.zone());
        compare(&fast, &naive, at_seq, step);
        compare(&fast, &naive, u64::MAX, step);
        for tag in TAGS.into_iter().chain(["absent"]) {
            prop_assert_eq!(fast.tag_rows(tag).expect("ok"), naive.tag_rows(tag).expect("ok"));
        }
        prop_assert_eq!(fast.untagged_rows().expect("ok"), naive.untagged_rows().expect("ok"));
        for row in 0..fast.rows() {
            compare_row(&fast, &naive, row);
        }
        fast.seal();
        prop_assert_eq!(all_terms(&fast), all_terms(&naive));
    }
}

#[test]
fn a_merge_reads_frequencies_of_any_size() {
    let (fast, mut naive) = (Memtable::new(options()), Naive::default());
    let counts = [1, 254, 255, 256, 3, 1000, 255, 2];
    for (n, count) in (0..).zip(counts) {
        let terms = [("all", count), ("b", 1), ("c", 256 - count % 256)];
        let scope = SCOPES[n as usize % 3];
        let row = Arc::new(prepared(scope, &format!("id{n}"), 0, &terms));
        fast.insert(&row, n + 1, 0);
        naive.insert(&row, n + 1, 0);
    }
    fast.seal();
    let terms = all_terms(&fast);
    assert_eq!(terms[0].2, counts);
    assert_eq!(terms, all_terms(&naive));
}

#[test]
fn many_scopes_and_terms_are_found_after_every_table_has_grown() {
    let (fast, mut naive) = (Memtable::new(options()), Naive::default());
    for n in 0..3000u32 {
        let scope = format!("u/{}", n * 7 % 1000);
        let terms = [(format!("t{}", n % 900), 1), (format!("w{}", n / 2), 2)];
        let terms: Vec<(&str, u32)> = terms.iter().map(|(term, n)| (term.as_str(), *n)).collect();
        let row = Arc::new(prepared(
            &scope,
            &format!("id{}", n % 2000),
            i64::from(n),
            &terms,
        ));
        fast.insert(&row, u64::from(n), 0);
        naive.insert(&row, u64::from(n), 0);
    }
    assert_eq!(
        fast.scopes(2500).expect("ok"),
        naive.scopes(2500).expect("ok")
    );
    for n in (0..3000u32).step_by(371) {
        let scopes = ranges(&[&format!("=u/{}", n * 7 % 1000)]);
        let runs = fast.select(&scopes, 2900).expect("ok");
        assert_eq!(runs, naive.select(&scopes, 2900).expect("ok"));
        for term in [format!("t{}", n % 900), format!("w{}", n / 2)] {
            assert_eq!(
                posted(&fast, &runs[0], &term, 100),
                posted(&naive, &runs[0], &term, 100)
            );
        }
    }
    fast.seal();
    assert_eq!(all_terms(&fast), all_terms(&naive));
}

#[test]
fn memory_is_counted_and_an_empty_memtable_is_small() {
    let table = Memtable::new(MemtableOptions {
        bytes_max: 100_000,
        ..options()
    });
    assert!(
        table.bytes() < 1024 && size_of::<Memtable>() < 8192,
        "{}",
        size_of::<Memtable>()
    );
    let mut inserted = 0;
    while !table.is_full() {
        let row = prepared("a", &inserted.to_string(), inserted, &[("all", 1)]);
        let before = table.bytes();
        table.insert(&row, inserted.cast_unsigned(), 0);
        assert!(table.bytes() > before);
        inserted += 1;
    }
    assert!(
        (200..600).contains(&inserted),
        "{inserted} small rows in 100 kB"
    );
}

#[test]
#[should_panic(expected = "a sealed memtable takes no inserts")]
fn a_sealed_memtable_refuses_rows() {
    let table = Memtable::new(options());
    table.seal();
    table.insert(&prepared("a", "x", 0, &[]), 1, 0);
}

/// What row `n` of the concurrent test is; its seq is n + 1.
fn numbered(n: u64) -> Prepared {
    let (scope, term) = (
        ["s/0", "s/1", "s/2"][(n % 3) as usize],
        format!("t{}", n % 4),
    );
    let mut row = prepared(
        scope,
        &format!("id{}", n % 30),
        n.cast_signed(),
        &[("all", 1), (&term, 2)],
    );
    row.record.tags = vec![format!("tag{}", n % 2)];
    row
}

/// Checks that a reader at `at_seq` sees exactly the rows below it.
fn check_prefix(table: &Memtable, at_seq: u64) {
    let runs = table.select(&ranges(&["s"]), at_seq).expect("ok");
    assert_eq!(runs.len() as u64, at_seq.min(3));
    for (n, run) in (0u64..).zip(&runs) {
        let expected: Vec<u32> = (n..at_seq).step_by(3).map(|row| row as u32).collect();
        let population = table.population(run).expect("ok");
        assert_eq!(population.rows, expected.len() as u64);
        assert_eq!(population.length_sum, 3 * population.rows);
        let mut cursor = table.postings(b"all", run).expect("ok").expect("some");
        assert_eq!(u64::from(cursor.count()), population.rows);
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        cursor
            .read_until(u32::MAX, &mut rows, &mut freqs)
            .expect("ok");
        assert_eq!(rows, expected);
        for term in 0..4u64 {
            let cursor = table
                .postings(format!("t{term}").as_bytes(), run)
                .expect("ok");
            let with_term = expected
                .iter()
                .filter(|row| u64::from(**row) % 4 == term)
                .count();
            assert_eq!(
                cursor.map_or(0, |cursor| cursor.count()) as usize,
                with_term
            );
        }
        let last = *expected.last().expect("a run has rows");
        let newest = table.find(
            format!("s\0{n}\0").as_bytes(),
            &format!("id{}", last % 30),
            at_seq,
        );
        assert_eq!(newest.expect("ok"), Some(last));
        assert_eq!(table.tags(last).expect("ok"), [format!("tag{}", last % 2)]);
        let tagged = table
            .tag_rows(&format!("tag{}", last % 2))
            .expect("ok")
            .expect("some");
        assert!(tagged.contains(last));
        let mut walk = Vec::new();
        let visit = &mut |row, _| {
            walk.push(row);
            ControlFlow::Continue(())
        };
        table
            .walk_time(run, 0, i64::MAX, TimeOrder::OldestFirst, visit)
            .expect("ok");
        assert_eq!(walk, expected);
    }
}

#[test]
fn every_snapshot_under_a_running_writer_is_a_whole_prefix() {
    const ROWS: u64 = 4000;
    let table = Memtable::new(options());
    let visible = AtomicU64::new(0);
    std::thread::scope(|threads| {
        threads.spawn(|| {
            for n in 0..ROWS {
                table.insert(&numbered(n), n + 1, 0);
                visible.store(n + 1, Ordering::Release);
            }
        });
        for reader in 0..4 {
            let (table, visible) = (&table, &visible);
            threads.spawn(move || {
                let mut checked = 0;
                while checked < ROWS {
                    checked = visible.load(Ordering::Acquire);
                    check_prefix(table, checked);
                    check_prefix(table, checked / (reader + 1));
                }
            });
        }
    });
}
