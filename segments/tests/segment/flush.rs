//! A memtable and the segment flushed from it give the same answers about the same records.

use chronolith_segments::analyze::{Analyzed, Analyzer, AnalyzerKind, AnalyzerOptions, Language};
use chronolith_segments::{
    Memtable, MemtableOptions, MergeInput, Partition, ReadMode, Record, Run, Scope, ScopeRanges,
    ScopeSelector, Segment, SpaceNumber, SpaceSet, TermVisit, TokenCounter, code_seed, prepare,
    write_segment,
};

use crate::memory::MemoryVfs;
use crate::naive::{DIM, OTHER, OTHER_DIM, bits, dir, open, spec_of_two};
use crate::plain::Plain;

fn record(i: u64) -> Record {
    let scope = Scope::parse(["user/ana", "user/ana/x", "user/bob"][i as usize % 3]).expect("ok");
    let text = format!(
        "Deploy {} failed with E{}: see src/main.rs, again and again",
        i,
        i % 4
    );
    let mut record = Record::new(
        scope,
        format!("id-{}", i % 17),
        (i as i64 * 31 % 47) * 1000,
        text,
    );
    record.tags = (0..i % 3).map(|tag| format!("t{tag}")).collect();
    record.summary = i.is_multiple_of(5).then(|| format!("deploy {i}"));
    record.source_id = i.is_multiple_of(2).then(|| format!("doc-{}", i % 6));
    record.vector = (!i.is_multiple_of(4)).then(|| vec![1.0 + i as f32; DIM as usize]);
    record.importance = i.is_multiple_of(3).then_some(0.25);
    match i.is_multiple_of(3) {
        true => record.vector_in("other", vec![2.0 - i as f32; OTHER_DIM as usize]),
        false => record,
    }
}

type InSpaces = [(Option<Vec<u8>>, Option<f32>, Vec<u8>); 2];

/// Vector and code of a row in each space.
fn in_spaces(partition: &dyn Partition, row: u32) -> InSpaces {
    [SpaceNumber::MAIN, OTHER].map(|space| {
        let (vector, mut code) = (partition.vector(space, row).expect("ok"), Vec::new());
        let factor = partition.code(space, row, &mut code).expect("ok");
        (vector.map(|vector| vector.into_owned()), factor, code)
    })
}

#[test]
fn a_flushed_memtable_answers_as_before() {
    let spec = spec_of_two(1);
    let analyzer = Analyzer::new(
        AnalyzerKind::Default,
        Language::ENGLISH,
        AnalyzerOptions::default(),
    )
    .expect("ok");
    let memtable = Memtable::new(MemtableOptions {
        spaces: spec.spaces.clone(),
        bytes_max: 64 << 20,
        hash_seed: 1,
        code_seed: Some(code_seed(&spec.store_id)),
    });
    let spaces = SpaceSet {
        spaces: spec.spaces.clone(),
        default: SpaceNumber::MAIN,
        next: SpaceNumber::new(3),
    };
    let mut scratch = Analyzed::default();
    for i in 0..60 {
        let counter = TokenCounter::BytesOverFour;
        let prepared = prepare(record(i), &analyzer, &mut scratch, &spaces, counter);
        let prepared = prepared.expect("fits");
        memtable.insert(&prepared, i + 1, 1_000_000 + i as i64);
    }
    memtable.seal();
    let vfs = MemoryVfs::default();
    let input = MergeInput {
        partition: &memtable,
        keep: (0..60).collect(),
    };
    let written = write_segment(&vfs, dir(), &spec, &[input]).expect("written");
    let plain = MergeInput {
        partition: &Plain(&memtable),
        keep: (0..60).collect(),
    };
    let each = write_segment(&MemoryVfs::default(), dir(), &spec, &[plain]).expect("written");
    assert_eq!(written, each, "rows at once, and each for itself");
    let segment = open(&vfs, &written, ReadMode::Mapped);
    assert_eq!(segment.verify_all().findings, []);
    assert_eq!(segment.zone(), Partition::zone(&memtable));
    for (row, to) in (0..).zip(&written.remap[0]) {
        let key = memtable.scope_key(row).expect("ok");
        assert_eq!(segment.scope_key(*to).expect("ok"), key);
        assert_eq!(segment.id(*to).expect("ok"), memtable.id(row).expect("ok"));
        assert_eq!(
            bits(&segment.fields(*to).expect("ok")),
            bits(&memtable.fields(row).expect("ok"))
        );
        assert_eq!(
            segment.tags(*to).expect("ok"),
            memtable.tags(row).expect("ok")
        );
        assert_eq!(
            segment.source_id(*to).expect("ok"),
            memtable.source_id(row).expect("ok")
        );
        assert_eq!(in_spaces(&segment, *to), in_spaces(&memtable, row));
        assert_eq!(
            segment.stored(*to).expect("ok"),
            memtable.stored(row).expect("ok")
        );
        let id = memtable.id(row).expect("ok");
        for at_seq in [row.into(), u64::MAX] {
            let found = memtable.find(&key, &id, at_seq).expect("ok");
            let expected = found.map(|row| written.remap[0][row as usize]);
            assert_eq!(segment.find(&key, &id, at_seq).expect("ok"), expected);
        }
    }
    compare_counts(&memtable, &segment);
    compare_walks(&memtable, &segment);
}

/// Both walk the same terms, with jumps over some of them; a segment's bounds are those of the
/// rows' lengths.
fn compare_walks(memtable: &Memtable, segment: &Segment) {
    let walk = |partition: &dyn Partition, from: &[u8], step: usize| {
        let mut found = Vec::new();
        let walked = partition.terms_from(from, &mut |term, entry| {
            found.push((term.to_vec(), entry.rows));
            match found.len() % step {
                0 => TermVisit::SkipTo([term, b"m"].concat()),
                _ if term.starts_with(b"x") => TermVisit::Stop,
                _ => TermVisit::Continue,
            }
        });
        walked.expect("ok");
        found
    };
    for from in [&b""[..], b"d", b"deploy", b"zz"] {
        for step in [1, 2, 5, 1000] {
            let (of_segment, of_memtable) = (walk(segment, from, step), walk(memtable, from, step));
            let terms = |walked: &[(Vec<u8>, u32)]| -> Vec<Vec<u8>> {
                walked.iter().map(|(term, _)| term.clone()).collect()
            };
            assert_eq!(
                terms(&of_segment),
                terms(&of_memtable),
                "from {from:?} by {step}"
            );
        }
    }
    assert!(walk(segment, b"", 1000).len() > 60);
    let rows = 0..segment.zone().rows;
    let run = Run { key: 0, rows };
    let visited = segment.terms_from(b"", &mut |_, entry| {
        let postings = segment.postings_of(entry, &run).expect("ok");
        let (mut rows, mut freqs) = (Vec::new(), Vec::new());
        let mut postings = postings.expect("a term has postings");
        postings
            .read_until(u32::MAX, &mut rows, &mut freqs)
            .expect("ok");
        assert_eq!(rows.len(), entry.rows as usize);
        for (row, freq) in rows.iter().zip(&freqs) {
            let length = segment.length(*row).expect("ok");
            assert!(entry.bounds.covers(*freq, length));
            if rows.len() == 1 {
                assert_eq!(entry.bounds.pairs(), [(*freq, length)]);
            }
        }
        TermVisit::Continue
    });
    visited.expect("ok");
}

/// Both have the same terms, and count each one alike in every request's runs.
fn compare_counts(memtable: &Memtable, segment: &dyn Partition) {
    let mut terms = Vec::new();
    let mut stream = segment.terms().expect("ok");
    let mut other = memtable.terms().expect("ok");
    while let Some(term) = stream.next_term().expect("ok") {
        assert_eq!(other.next_term().expect("ok"), Some(term));
        terms.push(term.to_vec());
    }
    assert_eq!(other.next_term().expect("ok"), None);
    assert!(terms.len() > 60);
    for selector in ["/", "user/ana", "=user/ana", "user/bob"] {
        let selector = ScopeSelector::parse(selector).expect("ok");
        let scopes = ScopeRanges::new(&[selector]).expect("ok");
        let count = |partition: &dyn Partition, term: &[u8]| -> u64 {
            let runs = partition.select(&scopes, u64::MAX).expect("ok");
            let counts = runs.iter().map(|run| {
                let postings = partition.postings(term, run).expect("ok");
                postings.map_or(0, |postings| u64::from(postings.count()))
            });
            counts.sum()
        };
        for term in &terms {
            assert_eq!(count(memtable, term), count(segment, term));
        }
    }
}
