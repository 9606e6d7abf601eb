//! What does each question to a segment cost?
//!
//! `cargo bench -p chronolith-segments --bench partition -- [filter]`
//!
//! Segments are written to real files and mapped. Terms and rows are asked for in a shuffled
//! order, so that a figure holds the cache misses of a query that meets a term for the first
//! time; `lookups`, `cursors` and `fields` print the cost of a whole round.

#![expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "a bench counts small numbers"
)]

use std::hint::black_box;
use std::ops::ControlFlow;
use std::path::Path;

use chronolith_segments::analyze::{Analyzed, Analyzer, AnalyzerKind, AnalyzerOptions, Language};
use chronolith_segments::{
    Bucket, Memtable, MemtableOptions, MergeInput, Partition, ReadMode, Record, Run, Scope,
    ScopeRanges, ScopeSelector, Segment, SegmentRef, SegmentSpec, SourceClass, SpaceNumber,
    SpaceSet, TermEntry, TermVisit, TimeOrder, TokenCounter, prepare, write_segment,
};
use chronolith_vfs::RealVfs;
use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use tempfile::TempDir;

const STORE_ID: [u8; 16] = [7; 16];
/// Rows of the segment whose terms are looked up.
const ROWS: u32 = 50_000;
/// Questions of a round.
const ROUND: u64 = 1000;
const MINUTE_US: i64 = 60_000_000;

/// A file and what keeps it.
struct Bed {
    dir: TempDir,
    file: SegmentRef,
}

impl Bed {
    /// Writes records in the order given, then opens the segment.
    fn new(records: impl Iterator<Item = Record>) -> Self {
        let options = AnalyzerOptions::default();
        let analyzer = Analyzer::new(AnalyzerKind::Default, Language::ENGLISH, options);
        let analyzer = analyzer.expect("the default");
        let memtable = Memtable::new(MemtableOptions::default());
        let (mut scratch, mut seq) = (Analyzed::default(), 0);
        let spaces = SpaceSet::default();
        for record in records {
            let counter = TokenCounter::BytesOverFour;
            let prepared = prepare(record, &analyzer, &mut scratch, &spaces, counter);
            let prepared = prepared.expect("fits");
            seq += 1;
            memtable.insert(&prepared, seq, 0);
        }
        memtable.seal();
        let dir = TempDir::new_in(Path::new(env!("CARGO_TARGET_TMPDIR"))).expect("room");
        let spec = SegmentSpec {
            store_id: STORE_ID,
            file_number: 1,
            analyzer_id: analyzer.id(),
            spaces: Vec::new(),
            layout: SpaceNumber::MAIN,
            token_counter: TokenCounter::BytesOverFour,
            bucket: Bucket {
                level: 0,
                start_us: 0,
                end_us: i64::from(u32::MAX) * MINUTE_US,
            },
            lineage: Vec::new(),
            train_dictionary: false,
        };
        let input = MergeInput {
            partition: &memtable,
            keep: (0..memtable.zone().rows).collect(),
        };
        let written = write_segment(&RealVfs::new(), dir.path(), &spec, &[input]);
        let file = written.expect("written").meta.file;
        Self { dir, file }
    }

    fn open(&self) -> Segment {
        let (vfs, mode) = (RealVfs::new(), ReadMode::Mapped);
        Segment::open(&vfs, self.dir.path(), &self.file, STORE_ID, mode).expect("sound")
    }
}

/// splitmix64.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut z = *state;
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

fn below(state: &mut u64, end: u64) -> u64 {
    ((u128::from(random(state)) * u128::from(end)) >> 64) as u64
}

fn chance(state: &mut u64) -> f64 {
    (random(state) >> 11) as f64 / (1_u64 << 53) as f64
}

/// A word of the vocabulary: distinct, longer for rarer ones.
fn word(rank: u64, out: &mut String) {
    const SYLLABLES: [&str; 16] = [
        "ba", "do", "fi", "gu", "ke", "la", "mo", "ni", "pu", "re", "sa", "to", "vi", "zu", "ho",
        "ku",
    ];
    let mut left = rank + 16;
    while left > 0 {
        out.push_str(SYLLABLES[(left % 16) as usize]);
        left /= 16;
    }
    out.push('n');
}

/// About 30 words of a Zipf vocabulary of 200,000, and words whose rows and frequencies are
/// known: `densef`, `tenthf`, `hundredthf` stand once, `densev` and `tenthv` 1 to 6 times.
fn text(row: u64, state: &mut u64) -> String {
    let mut text = String::new();
    for _ in 0..15 + below(state, 30) {
        // Inverse of a truncated Pareto: near enough to Zipf.
        let rank = (200_000_f64.powf(chance(state)) - 1.0) as u64;
        word(rank, &mut text);
        text.push(' ');
    }
    for (share, once, often) in [
        (2, "densef ", "densev "),
        (10, "tenthf ", "tenthv "),
        (100, "hundredthf ", "hundredthv "),
    ] {
        if below(state, share) == 0 {
            text.push_str(once);
            for _ in 0..=below(state, 6) {
                text.push_str(often);
            }
        }
    }
    text.push_str(&format!("record{row}"));
    text
}

fn record(row: u64, scope: &str, state: &mut u64) -> Record {
    let scope = Scope::parse(scope).expect("a scope");
    let time = i64::try_from(row).expect("small") * MINUTE_US;
    let id = format!(
        "0190163d-{:04x}-739b-aea5-{row:012x}",
        random(state) & 0xffff
    );
    let mut record = Record::new(scope, id, time, text(row, state));
    record.source_class = Some(SourceClass::ToolOutput);
    record.source_id = Some(format!("doc-{}", row / 20));
    record.tags = (0..3)
        .map(|i| format!("topic/{}", below(state, 500) + i * 500))
        .collect();
    record
}

fn one_scope(rows: u32) -> Bed {
    let mut state = 7;
    Bed::new((0..u64::from(rows)).map(move |row| record(row, "agent", &mut state)))
}

/// Plain rows in `scopes` scopes below `a` and `b`, by turns.
fn plain(rows: u64, scopes: u64) -> Bed {
    let records = (0..rows).map(move |row| {
        let scope = row % scopes;
        let half = if scope * 4 < scopes { "a" } else { "b" };
        let scope = Scope::parse(&format!("{half}/user-{scope:06}")).expect("a scope");
        let time = i64::try_from(row).expect("small") * MINUTE_US;
        Record::new(scope, format!("id-{row}"), time, "word")
    });
    Bed::new(records)
}

fn ranges(selector: &str) -> ScopeRanges {
    ScopeRanges::new(&[ScopeSelector::parse(selector).expect("a selector")]).expect("one")
}

fn run_of(segment: &Segment, selector: &str) -> Run {
    let mut runs = segment.select(&ranges(selector), u64::MAX).expect("sound");
    assert_eq!(runs.len(), 1, "{selector}");
    runs.remove(0)
}

fn all_terms(segment: &Segment) -> Vec<Vec<u8>> {
    let mut stream = segment.terms().expect("sound");
    let mut terms = Vec::new();
    while let Some(term) = stream.next_term().expect("sound") {
        terms.push(term.to_vec());
    }
    terms
}

fn shuffle<T>(items: &mut [T], state: &mut u64) {
    for end in (1..items.len()).rev() {
        items.swap(end, below(state, end as u64 + 1) as usize);
    }
}

fn sizes(segment: &Segment, terms: usize) {
    let description = segment.describe();
    let rows = description.meta.zone.rows;
    println!("{rows} rows, {terms} terms, {} bytes a row:", {
        description.meta.file.bytes / u64::from(rows)
    });
    for section in description.sections {
        println!(
            "  {:16} {:9} bytes {:6.2} a row {:6.2} a term",
            section.name,
            section.bytes,
            section.bytes as f64 / f64::from(rows),
            section.bytes as f64 / terms as f64,
        );
    }
}

/// Look-ups of so many different terms by turns: few stay in the caches, many do not.
fn lookups(c: &mut Criterion, segment: &Segment, terms: &[Vec<u8>], different: usize) {
    let name = format!("look-up, {different} of {} terms", terms.len());
    let mut group = c.benchmark_group(name);
    group.throughput(Throughput::Elements(ROUND));
    let mut state = 3;
    let mut present: Vec<_> = terms.to_vec();
    shuffle(&mut present, &mut state);
    present.truncate(different);
    let mut absent = present.clone();
    absent.iter_mut().for_each(|term| term.push(b'q'));
    for (name, terms) in [("present", &present), ("absent", &absent)] {
        let mut at = 0;
        group.bench_function(name, |b| {
            b.iter(|| {
                for _ in 0..ROUND {
                    black_box(segment.term(black_box(&terms[at])).expect("sound"));
                    at = (at + 1) % terms.len();
                }
            });
        });
    }
    group.finish();
}

/// Terms of each class: one row, short, long.
fn classes(segment: &Segment, terms: &[Vec<u8>]) -> [Vec<TermEntry>; 3] {
    let mut classes = [Vec::new(), Vec::new(), Vec::new()];
    for term in terms {
        let entry = segment.term(term).expect("sound").expect("held");
        classes[usize::from(entry.rows > 1) + usize::from(entry.rows >= 128)].push(entry);
    }
    let mut state = 5;
    classes
        .iter_mut()
        .for_each(|class| shuffle(class, &mut state));
    classes
}

fn cursors(c: &mut Criterion, segment: &Segment, terms: &[Vec<u8>]) {
    let mut group = c.benchmark_group("cursor");
    group.throughput(Throughput::Elements(ROUND));
    let classes = classes(segment, terms);
    let mut state = 9;
    let narrow: Vec<Run> = (0..ROUND)
        .map(|_| {
            let start = u32::try_from(below(&mut state, u64::from(ROWS) - 12)).expect("a row");
            Run {
                key: 0,
                rows: start..start + 12,
            }
        })
        .collect();
    let middle = Run {
        key: 0,
        rows: ROWS / 4..ROWS / 4 * 3 + 7,
    };
    let whole = Run {
        key: 0,
        rows: 0..ROWS,
    };
    for (name, class) in ["one", "short", "long"].iter().zip(&classes) {
        let mut open = |what: &str, run: &dyn Fn(usize) -> Run| {
            let runs: Vec<Run> = (0..narrow.len()).map(run).collect();
            let mut at = 0;
            group.bench_function(format!("open {name}, {what}"), |b| {
                b.iter(|| {
                    for run in &runs {
                        let found = segment.postings_of(&class[at], run).expect("sound");
                        black_box(found.map_or(0, |found| found.count()));
                        at = (at + 1) % class.len();
                    }
                });
            });
        };
        open("whole segment", &|_| whole.clone());
        open("half of it", &|_| middle.clone());
        open("12 rows", &|at| narrow[at].clone());
    }
    group.finish();
}

fn reads(c: &mut Criterion, segment: &Segment) {
    let whole = Run {
        key: 0,
        rows: 0..ROWS,
    };
    let mut group = c.benchmark_group("read");
    let (mut rows, mut freqs) = (Vec::new(), Vec::new());
    for name in ["densef", "densev", "tenthf", "tenthv", "hundredthv"] {
        let entry = segment.term(name.as_bytes()).expect("sound").expect(name);
        group.throughput(Throughput::Elements(u64::from(entry.rows)));
        for (how, step) in [("whole", ROWS), ("by 4096 rows", 4096)] {
            group.bench_function(format!("{name}, {how}"), |b| {
                b.iter(|| {
                    let found = segment.postings_of(&entry, &whole).expect("sound");
                    let mut found = found.expect("postings");
                    let mut end = 0;
                    while end < ROWS {
                        end += step;
                        rows.clear();
                        freqs.clear();
                        found.read_until(end, &mut rows, &mut freqs).expect("sound");
                        black_box((&rows, &freqs));
                    }
                });
            });
        }
        for step in [7, 997] {
            let probes = u64::from(ROWS.div_ceil(step));
            group.throughput(Throughput::Elements(probes));
            group.bench_function(format!("{name}, freq of every {step}th row"), |b| {
                b.iter(|| {
                    let found = segment.postings_of(&entry, &whole).expect("sound");
                    let mut found = found.expect("postings");
                    let mut sum = 0_u64;
                    for row in (0..ROWS).step_by(step as usize) {
                        sum += u64::from(found.freq_at(row).expect("sound"));
                    }
                    sum
                });
            });
        }
    }
    group.finish();
}

fn fields(c: &mut Criterion, segment: &Segment) {
    let mut group = c.benchmark_group("ten hits");
    let mut state = 11;
    let mut rows = move || {
        (0..10)
            .map(|_| u32::try_from(below(&mut state, u64::from(ROWS))).expect("a row"))
            .collect::<Vec<u32>>()
    };
    let mut bench = |name: &str, read: &dyn Fn(u32)| {
        group.bench_function(name, |b| {
            b.iter_batched(
                &mut rows,
                |rows| rows.into_iter().for_each(read),
                BatchSize::SmallInput,
            );
        });
    };
    bench("id", &|row| {
        black_box(segment.id(row).expect("sound"));
    });
    bench("event time", &|row| {
        black_box(segment.event_time_us(row).expect("sound"));
    });
    bench("scope key", &|row| {
        black_box(segment.scope_key(row).expect("sound"));
    });
    bench("source class", &|row| {
        black_box(segment.source_class(row).expect("sound"));
    });
    bench("source id", &|row| {
        black_box(segment.source_id(row).expect("sound"));
    });
    bench("tags", &|row| {
        black_box(segment.tags(row).expect("sound"));
    });
    bench("all fields", &|row| {
        black_box(segment.fields(row).expect("sound"));
    });
    bench("all but tags", &|row| {
        black_box(segment.id(row).expect("sound"));
        black_box(segment.event_time_us(row).expect("sound"));
        black_box(segment.scope_key(row).expect("sound"));
        black_box(segment.source_class(row).expect("sound"));
        black_box(segment.source_id(row).expect("sound"));
    });
    group.finish();
}

fn small_dictionary(c: &mut Criterion) {
    let bed = one_scope(14_000);
    let segment = bed.open();
    let terms = all_terms(&segment);
    lookups(c, &segment, &terms, 500);
    lookups(c, &segment, &terms, 16_000);
    let mut group = c.benchmark_group("prefix");
    group.bench_function("of 10 to 20 terms", |b| {
        b.iter(|| {
            let mut found = 0;
            let walked = segment.terms_from(b"record1234", &mut |term, _| {
                found += 1;
                match term.starts_with(b"record1234") {
                    true => TermVisit::Continue,
                    false => TermVisit::Stop,
                }
            });
            walked.expect("sound");
            found
        });
    });
    group.finish();
}

fn terms(c: &mut Criterion) {
    let bed = one_scope(ROWS);
    let segment = bed.open();
    let terms = all_terms(&segment);
    sizes(&segment, terms.len());
    lookups(c, &segment, &terms, 16_000);
    cursors(c, &segment, &terms);
    reads(c, &segment);
    fields(c, &segment);
    let mut group = c.benchmark_group("lengths");
    group.throughput(Throughput::Elements(u64::from(ROWS)));
    group.bench_function("short lengths, first time", |b| {
        b.iter_batched(
            || bed.open(),
            |segment| segment.short_lengths().expect("sound").len(),
            BatchSize::PerIteration,
        );
    });
    group.finish();
}

fn scopes(c: &mut Criterion) {
    let bed = plain(50_000, 10_000);
    let segment = bed.open();
    let mut group = c.benchmark_group("scopes, 10,000");
    group.throughput(Throughput::Elements(ROUND));
    let mut state = 13;
    let mut select = |name: &str, selector: &mut dyn FnMut() -> String| {
        let asked: Vec<ScopeRanges> = (0..ROUND).map(|_| ranges(&selector())).collect();
        group.bench_function(name, |b| {
            b.iter(|| {
                for scopes in &asked {
                    black_box(segment.select(scopes, u64::MAX).expect("sound"));
                }
            });
        });
    };
    select("select one", &mut || {
        format!("=b/user-{:06}", 2500 + below(&mut state, 7500))
    });
    select("select a subtree", &mut || {
        format!("b/user-{:06}", 2500 + below(&mut state, 7500))
    });
    select("select none", &mut || {
        format!("b/user-{:06}x", 2500 + below(&mut state, 7500))
    });
    group.bench_function("population", |b| {
        let runs: Vec<Run> = (0..ROUND)
            .map(|_| {
                run_of(
                    &segment,
                    &format!("=b/user-{:06}", 2500 + below(&mut state, 7500)),
                )
            })
            .collect();
        b.iter(|| {
            for run in &runs {
                black_box(segment.population(run).expect("sound"));
            }
        });
    });
    group.finish();
}

fn timeline(c: &mut Criterion) {
    const ALL: u64 = 1_000_000;
    let mut group = c.benchmark_group("100 rows of 1,000,000 by time");
    let mut state = 17;
    // The window holds 100 rows of the run, wherever its rows lie.
    for (layout, scopes, selector, every) in [
        ("one scope", 1, "/", 1),
        ("all of 1,000 scopes", 1000, "/", 1),
        ("25 % in 250 of 1,000 scopes", 1000, "a", 4),
        ("24 % in 12,000 of 50,000 scopes", 50_000, "a", 4),
        ("2 % in one of 50 scopes", 50, "a/user-000003", 50),
        ("one of 1,000 scopes", 1000, "b/user-000700", 1000),
    ] {
        let bed = plain(ALL, scopes);
        let segment = bed.open();
        let run = run_of(&segment, selector);
        let window = 100 * every * MINUTE_US;
        let last = i64::try_from(ALL).expect("small") * MINUTE_US - window;
        group.bench_function(layout, |b| {
            b.iter(|| {
                let from = i64::try_from(below(&mut state, last as u64)).expect("a time");
                let mut rows = 0_u32;
                let mut visit = |row, _| {
                    rows += 1;
                    black_box(row);
                    ControlFlow::Continue(())
                };
                let order = TimeOrder::NewestFirst;
                segment
                    .walk_time(&run, from, from + window, order, &mut visit)
                    .expect("sound");
                rows
            });
        });
    }
    group.finish();
}

criterion_group!(benches, small_dictionary, terms, scopes, timeline);
criterion_main!(benches);
