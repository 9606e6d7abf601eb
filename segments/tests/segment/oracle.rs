//! Compares every answer of a segment with a filter over the rows it should hold.

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use chronolith_segments::{
    Accept, CodeRows, Coder, Nearest, Partition, Run, ScopeRanges, ScopeSelector, Segment,
    SegmentError, SpaceNumber, TimeOrder, WindowRows, code_seed,
};

use crate::naive::{OTHER, Row, bits, terms_of};

const SELECTORS: [&[&str]; 7] = [
    &["/"],
    &["a"],
    &["=a"],
    &["a/b+up"],
    &["a/b", "c"],
    &["=a/b/d", "=c"],
    &["none"],
];
const TAGS: [&str; 4] = ["t1", "t2", "t3", "absent"];

fn ranges(selectors: &[&str]) -> ScopeRanges {
    let selectors: Vec<ScopeSelector> = selectors
        .iter()
        .map(|text| ScopeSelector::parse(text).expect("a selector"))
        .collect();
    ScopeRanges::new(&selectors).expect("not empty")
}

/// `rows` are those that the segment should hold, in its order.
pub fn check(segment: &Segment, rows: &[Row]) {
    assert_eq!(segment.zone().rows as usize, rows.len());
    check_rows(segment, rows);
    check_terms(segment, rows);
    check_tags(segment, rows);
    check_codes(segment, rows, SpaceNumber::MAIN);
    check_codes(segment, rows, OTHER);
    let seq_max = rows
        .iter()
        .map(|row| row.fields.commit_seq)
        .max()
        .expect("a row");
    for at_seq in [u64::MAX, seq_max, seq_max / 2, seq_max.saturating_sub(1), 0] {
        check_scopes(segment, rows, at_seq);
        for selectors in SELECTORS {
            check_runs(segment, rows, &ranges(selectors), at_seq);
        }
    }
    let scrub = segment.verify_all();
    assert_eq!(scrub.findings, []);
    assert!(scrub.blocks > 0);
}

/// Codes are those of the rows' vectors, and every way to scan them offers the same.
fn check_codes(segment: &Segment, rows: &[Row], number: SpaceNumber) {
    let Some(space) = segment.vector_space(number) else {
        return;
    };
    let coder = Coder::new(space, code_seed(&segment.store_id()));
    let query = coder.query(&vec![0.7; space.dim as usize]);
    let mut expected = Vec::new();
    for (at, row) in numbered(rows) {
        let (mut found, mut made) = (Vec::new(), Vec::new());
        let factor = segment.code(number, at, &mut found).expect("code");
        let made_factor = row.in_space(number).map(|v| coder.encode(v, &mut made));
        assert_eq!((factor, &found), (made_factor, &made), "row {at}");
        if let Some(factor) = factor {
            let mut estimates = Vec::new();
            query.estimate_many(&found, &factor.to_le_bytes(), &mut estimates);
            expected.push((at, estimates[0]));
        }
    }
    let all = 0..segment.zone().rows;
    let listed: Vec<u32> = all.clone().collect();
    let run = Run { key: 0, rows: all };
    for rows in [CodeRows::Run(&run), CodeRows::Listed(&listed)] {
        for modulus in [1, 3] {
            let mut nearest = Nearest::new(usize::MAX);
            let mut accept = |row: u32| Ok(row.is_multiple_of(modulus));
            let accept: Option<Accept<'_>> = match modulus {
                1 => None,
                _ => Some(&mut accept),
            };
            let compared = segment.scan_codes(number, &query, rows, 4, accept, &mut nearest);
            assert_eq!(compared.expect("codes"), expected.len() as u64);
            let found: Vec<_> = nearest.into_rows();
            assert!(found.iter().all(|one| one.source == 4));
            let found: Vec<_> = found.iter().map(|one| (one.row, one.estimate)).collect();
            let mut expected = expected.clone();
            expected.retain(|(row, _)| row.is_multiple_of(modulus));
            assert_eq!(found, expected);
        }
    }
}

fn numbered(rows: &[Row]) -> impl Iterator<Item = (u32, &Row)> {
    (0..).zip(rows)
}

fn check_rows(segment: &Segment, rows: &[Row]) {
    for (at, row) in numbered(rows) {
        assert_eq!(segment.id(at).expect("id"), row.id);
        assert_eq!(
            bits(&segment.fields(at).expect("fields")),
            bits(&row.fields)
        );
        assert_eq!(
            segment.event_time_us(at).expect("time"),
            row.fields.event_time_us
        );
        assert_eq!(segment.length(at).expect("length"), row.fields.length);
        assert_eq!(
            segment.source_class(at).expect("class"),
            row.fields.source_class
        );
        assert_eq!(segment.scope_key(at).expect("key"), row.scope.key());
        assert_eq!(
            segment.source_id(at).expect("source id").as_deref(),
            row.source_id.as_deref()
        );
        assert_eq!(segment.tags(at).expect("tags"), row.tags);
        for space in [SpaceNumber::MAIN, OTHER, SpaceNumber::new(1)] {
            let vector = segment.vector(space, at).expect("vector");
            assert_eq!(vector.as_deref(), row.in_space(space));
        }
        assert_eq!(segment.stored(at).expect("stored"), row.stored);
        for at_seq in [
            row.fields.commit_seq,
            row.fields.commit_seq.saturating_sub(1),
            u64::MAX,
        ] {
            let newest = numbered(rows)
                .filter(|(_, other)| other.scope == row.scope && other.id == row.id)
                .filter(|(_, other)| other.fields.commit_seq <= at_seq)
                .max_by_key(|(_, other)| other.fields.commit_seq);
            let found = segment
                .find(row.scope.key(), &row.id, at_seq)
                .expect("find");
            assert_eq!(found, newest.map(|(at, _)| at), "{} at {at_seq}", row.id);
        }
    }
    assert_eq!(
        segment
            .find(rows[0].scope.key(), "no such id", u64::MAX)
            .expect("find"),
        None
    );
    assert_eq!(
        segment
            .find(b"no such scope\0", &rows[0].id, u64::MAX)
            .expect("find"),
        None
    );
    let outside = u32::try_from(rows.len()).expect("few");
    assert!(
        segment.id(outside).is_err()
            && segment.fields(outside).is_err()
            && segment.stored(outside).is_err()
    );
}

fn check_terms(segment: &Segment, rows: &[Row]) {
    let mut stream = segment.terms().expect("terms");
    let (mut found_rows, mut freqs) = (Vec::new(), Vec::new());
    for (term, postings) in terms_of(rows) {
        assert_eq!(stream.next_term().expect("term"), Some(&term[..]));
        stream
            .read_postings(&mut found_rows, &mut freqs)
            .expect("postings");
        let found: Vec<(u32, u32)> = found_rows
            .iter()
            .copied()
            .zip(freqs.iter().copied())
            .collect();
        assert_eq!(found, postings);
    }
    assert_eq!(stream.next_term().expect("end"), None);
}

fn check_tags(segment: &Segment, rows: &[Row]) {
    for tag in TAGS {
        let expected: Vec<u32> = numbered(rows)
            .filter(|(_, row)| row.tags.iter().any(|t| t == tag))
            .map(|(at, _)| at)
            .collect();
        let found = segment
            .tag_rows(tag)
            .expect("tags")
            .map(|set| set.iter().collect::<Vec<_>>());
        assert_eq!(found, (!expected.is_empty()).then_some(expected));
    }
    let untagged: Vec<u32> = numbered(rows)
        .filter(|(_, row)| row.tags.is_empty())
        .map(|(at, _)| at)
        .collect();
    assert_eq!(
        segment
            .untagged_rows()
            .expect("untagged")
            .iter()
            .collect::<Vec<_>>(),
        untagged
    );
}

fn check_scopes(segment: &Segment, rows: &[Row], at_seq: u64) {
    let mut expected: BTreeMap<&[u8], (u64, u64, i64, i64)> = BTreeMap::new();
    for row in rows.iter().filter(|row| row.fields.commit_seq <= at_seq) {
        let time = row.fields.event_time_us;
        let entry = expected
            .entry(row.scope.key())
            .or_insert((0, 0, time, time));
        *entry = (
            entry.0 + 1,
            entry.1 + u64::from(row.fields.length),
            entry.2.min(time),
            entry.3.max(time),
        );
    }
    let found = segment.scopes(at_seq).expect("scopes");
    let found: Vec<_> = found
        .iter()
        .map(|entry| {
            let (first, last) = entry.event_time_us;
            (
                &entry.key[..],
                (
                    entry.population.rows,
                    entry.population.length_sum,
                    first,
                    last,
                ),
            )
        })
        .collect();
    assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
}

fn check_runs(segment: &Segment, rows: &[Row], scopes: &ScopeRanges, at_seq: u64) {
    let expected: Vec<u32> = numbered(rows)
        .filter(|(_, row)| scopes.contains(row.scope.key()) && row.fields.commit_seq <= at_seq)
        .map(|(at, _)| at)
        .collect();
    let runs = segment.select(scopes, at_seq).expect("runs");
    let mut found = Vec::new();
    for run in &runs {
        segment.for_each_row(run, &mut |row| found.push(row));
    }
    assert_eq!(found, expected);
    for run in &runs {
        check_run(segment, rows, run);
    }
}

/// Windows give the rows that a walk gives, in order of rows.
fn check_windows(segment: &Segment, rows: &[Row], run: &Run, times: &[i64]) {
    let ends = [i64::MIN, i64::MAX].into_iter();
    let ends: Vec<i64> = ends
        .chain(times.iter().flat_map(|time| [*time, time + 1]).step_by(3))
        .collect();
    for (at, from) in ends.iter().enumerate() {
        let to = ends[(at * 7 + 1) % ends.len()];
        let inside = |(_, row): &(u32, &Row)| (*from..to).contains(&row.fields.event_time_us);
        let expected = numbered(rows).filter(|(row, _)| run.rows.contains(row));
        let expected: Vec<u32> = expected.filter(inside).map(|(row, _)| row).collect();
        for rows_max in [0, 1, usize::MAX] {
            let found = segment.window(run, *from, to, rows_max).expect("times");
            match found {
                Some(WindowRows::Run(run)) => {
                    assert_eq!(run.rows.collect::<Vec<_>>(), expected);
                }
                Some(WindowRows::Listed(found)) => assert_eq!(found, expected),
                None => assert!(expected.len() > rows_max, "{} {rows_max}", expected.len()),
            }
        }
    }
}

fn check_run(segment: &Segment, rows: &[Row], run: &Run) {
    let inside = || numbered(rows).filter(|(at, _)| run.rows.contains(at));
    let population = segment.population(run).expect("population");
    assert_eq!(population.rows, inside().count() as u64);
    assert_eq!(
        population.length_sum,
        inside()
            .map(|(_, row)| u64::from(row.fields.length))
            .sum::<u64>()
    );
    for (term, postings) in terms_of(rows) {
        let expected: Vec<(u32, u32)> = postings
            .into_iter()
            .filter(|(row, _)| run.rows.contains(row))
            .collect();
        let found = segment.postings(&term, run).expect("postings");
        assert_eq!(found.is_some(), !expected.is_empty());
        let Some(mut found) = found else {
            continue;
        };
        assert_eq!(found.count() as usize, expected.len());
        let (mut read, mut freqs) = (Vec::new(), Vec::new());
        for end in [run.rows.start + 1, run.rows.end] {
            found
                .read_until(end, &mut read, &mut freqs)
                .expect("postings");
        }
        assert_eq!(read.into_iter().zip(freqs).collect::<Vec<_>>(), expected);
        let mut found = segment
            .postings(&term, run)
            .expect("postings")
            .expect("some");
        for row in run.rows.clone() {
            let freq = expected
                .iter()
                .find(|(at, _)| *at == row)
                .map_or(0, |(_, freq)| *freq);
            assert_eq!(found.freq_at(row).expect("freq"), freq);
        }
    }
    assert!(
        segment
            .postings(b"no such term", run)
            .expect("none")
            .is_none()
    );
    let mut times: Vec<i64> = inside().map(|(_, row)| row.fields.event_time_us).collect();
    times.sort_unstable();
    check_windows(segment, rows, run, &times);
    for space in [SpaceNumber::MAIN, OTHER] {
        let vectors = inside().filter(|(_, row)| row.in_space(space).is_some());
        let found = segment.vectors_in(space, run).expect("vectors");
        assert_eq!(found, vectors.count() as u64);
    }
    let middle = times.get(times.len() / 2).copied().unwrap_or(0);
    for (from, to) in [
        (i64::MIN, i64::MAX),
        (middle, i64::MAX),
        (i64::MIN, middle),
        (middle, middle + 1),
        (5, 3),
    ] {
        let mut expected: Vec<(i64, u32)> = inside()
            .map(|(at, row)| (row.fields.event_time_us, at))
            .filter(|(time, _)| (from..to).contains(time))
            .collect();
        expected.sort_unstable();
        for order in [TimeOrder::OldestFirst, TimeOrder::NewestFirst] {
            let walked = walk(segment, run, from, to, order, usize::MAX).expect("walk");
            let mut times: Vec<i64> = walked.iter().map(|(time, _)| *time).collect();
            if order == TimeOrder::NewestFirst {
                times.reverse();
            }
            assert!(times.is_sorted());
            let mut sorted = walked.clone();
            sorted.sort_unstable();
            assert_eq!(sorted, expected);
            assert_eq!(
                walk(segment, run, from, to, order, 2).expect("walk"),
                walked[..walked.len().min(2)]
            );
        }
    }
}

fn walk(
    segment: &Segment,
    run: &Run,
    from: i64,
    to: i64,
    order: TimeOrder,
    stop: usize,
) -> Result<Vec<(i64, u32)>, SegmentError> {
    let mut walked = Vec::new();
    segment.walk_time(run, from, to, order, &mut |row, time| {
        walked.push((time, row));
        if walked.len() == stop {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    })?;
    Ok(walked)
}

/// Every answer of a segment as text, for comparison with another state of the same file.
pub fn answers(segment: &Segment) -> Result<String, SegmentError> {
    use std::fmt::Write;
    let mut out = format!("{:?} {:?}\n", segment.meta(), segment.lineage());
    out += &crate::clusters::runs_of(segment)?;
    for row in 0..segment.zone().rows {
        let (id, key) = (segment.id(row)?, segment.scope_key(row)?);
        let found = segment.find(&key, &id, u64::MAX)?;
        let parts = (
            bits(&segment.fields(row)?),
            &id,
            segment.source_id(row)?,
            segment.tags(row)?,
            found,
        );
        writeln!(
            out,
            "{parts:?} {:?} {:?} {:?}",
            (
                segment.vector(SpaceNumber::MAIN, row)?,
                segment.vector(OTHER, row)?
            ),
            {
                let (mut code, mut other) = (Vec::new(), Vec::new());
                let factor = segment.code(SpaceNumber::MAIN, row, &mut code)?;
                let factors = (factor, segment.code(OTHER, row, &mut other)?);
                (factors, code, other)
            },
            segment.stored(row)?
        )
        .expect("a string");
    }
    let mut stream = segment.terms()?;
    let (mut rows, mut freqs, mut terms) = (Vec::new(), Vec::new(), Vec::new());
    while let Some(term) = stream.next_term()? {
        terms.push(term.to_vec());
        stream.read_postings(&mut rows, &mut freqs)?;
        writeln!(out, "{:?} {rows:?} {freqs:?}", terms.last()).expect("a string");
    }
    for tag in TAGS {
        write!(out, "{:?}", segment.tag_rows(tag)?).expect("a string");
    }
    writeln!(
        out,
        "{:?} {:?}",
        segment.untagged_rows()?,
        segment.scopes(u64::MAX)?
    )
    .expect("a string");
    for selectors in SELECTORS {
        for run in segment.select(&ranges(selectors), u64::MAX)? {
            let newest = walk(
                segment,
                &run,
                i64::MIN,
                i64::MAX,
                TimeOrder::NewestFirst,
                usize::MAX,
            )?;
            writeln!(out, "{run:?} {:?} {newest:?}", segment.population(&run)?).expect("a string");
            for term in terms.iter().take(8) {
                let count = segment
                    .postings(term, &run)?
                    .map(|postings| postings.count());
                write!(out, "{count:?} ").expect("a string");
            }
        }
    }
    Ok(out)
}
