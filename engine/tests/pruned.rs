//! Is a pruned answer the answer of scoring every posting, to the last bit?
//!
//! Random stores made to be awkward: words so few that scores tie all the time, lengths from
//! one word to hundreds, deleted and overwritten rows, one to sixty-four segments and a
//! memtable, several scopes, and one store whose runs take several windows. Ten thousand
//! questions, each asked both ways.

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use chronolith::{
    Batch, Maintenance, Mode, Options, Recency, Record, Request, Response, Scope, ScopeSelector,
    Setup, SourceClass, Store,
};
use chronolith_vfs::{Clock, Env};

const DAY_US: i64 = 86_400 * 1_000_000;
const SCOPES: [&str; 5] = [
    "user/ana",
    "user/ana/project",
    "user/ben",
    "team",
    "team/x/y",
];

/// splitmix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).expect("below a usize")
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    /// Small numbers often, large ones seldom: words as text has them.
    fn skewed(&mut self, end: usize) -> usize {
        let upto = 1 + self.below(end);
        self.below(upto)
    }
}

/// What a store is like.
struct Shape {
    records: usize,
    flushes: usize,
    words: usize,
    days: i64,
    /// Event times.
    times: usize,
    /// One record in so many has the tag that few have; 0 = none.
    rare_tag: usize,
}

impl Shape {
    fn random(random: &mut Random) -> Self {
        Self {
            records: 30 + random.below(400),
            flushes: random.pick(&[0, 1, 2, 5, 20, 64]),
            words: random.pick(&[2, 6, 30, 300]),
            days: random.pick(&[1, 3, 40]),
            times: 1000,
            rare_tag: 0,
        }
    }
}

fn text(random: &mut Random, words: usize) -> String {
    let length = match random.below(40) {
        0 => 250 + random.below(400),
        1..4 => 40,
        _ => 1 + random.below(9),
    };
    let mut text = String::new();
    for _ in 0..length {
        text.push_str(&format!("w{} ", random.skewed(words)));
    }
    text
}

fn record(random: &mut Random, shape: &Shape, at: usize) -> Record {
    let scope = Scope::parse(random.pick(&SCOPES)).expect("a scope");
    // Few times and few ids: ties go to the last rule of the order.
    let (hours, times) = (shape.days * 24, shape.times);
    let hour = i64::try_from(random.below(times) * 1000 / times).expect("small") * hours / 1000;
    let id = match random.one_in(8) {
        true => format!("r{}", random.below(at + 1)),
        false => format!("r{at}"),
    };
    let mut record = Record::new(scope, id, hour * DAY_US / 24, text(random, shape.words));
    if random.one_in(3) {
        record.tags = vec![random.pick(&["red", "blue"]).into()];
    }
    if shape.rare_tag > 0 && random.one_in(shape.rare_tag) {
        record.tags.push("green".into());
    }
    record.source_class = random.pick(&[
        None,
        Some(SourceClass::Web),
        Some(SourceClass::UserConfirmed),
    ]);
    if random.one_in(3) {
        let weight = random.pick(&[0.001, 0.5, 1.0, 2.75, 64.0]);
        record.impacts = vec![("t0".into(), weight), ("t2".into(), 1.5)];
    }
    if random.one_in(2) {
        record.source_id = Some(format!("s{}", random.below(20)));
    }
    record
}

fn store(random: &mut Random, shape: &Shape) -> Store {
    let (env, _disk, _clock) = Env::sim(random.next());
    store_in(env, random, shape)
}

fn store_in(env: Env, random: &mut Random, shape: &Shape) -> Store {
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(Setup::default())
    };
    let store = Store::open("/store", options).expect("opens");
    let each = shape.records / (shape.flushes + 1) + 1;
    let mut batch = Batch::new();
    for at in 0..shape.records {
        let record = record(random, shape, at);
        if random.one_in(12) {
            let scope = record.scope.clone();
            batch.forget(scope, format!("r{}", random.below(at + 1)));
        }
        batch.upsert(record);
        if (at + 1).is_multiple_of(each) {
            store.write(std::mem::take(&mut batch)).expect("writes");
            if shape.flushes > 0 {
                store.flush().expect("flushes");
            }
        }
    }
    store.write(batch).expect("writes");
    store
}

fn question(random: &mut Random, shape: &Shape) -> Request {
    let scope = match random.below(4) {
        0 => ScopeSelector::parse("/").expect("the root"),
        1 => ScopeSelector::parse("user").expect("a scope"),
        _ => ScopeSelector::parse(random.pick(&SCOPES)).expect("a scope"),
    };
    let mut words = String::new();
    let count = random.pick(&[1, 1, 2, 3, 4, 8, 20]);
    for _ in 0..count {
        words.push_str(&format!("w{} ", random.skewed(shape.words + 1)));
    }
    if random.one_in(50) {
        // A weight whose contributions do not fit 31 bits.
        words.push_str(&"w1 ".repeat(900));
    }
    let end = shape.days * DAY_US;
    let mut request = Request::within(scope)
        .text(words)
        .mode(Mode::Sparse)
        .k(random.pick(&[0, 1, 2, 3, 10, 10, 100, 300]))
        .now_us(end)
        .ids_only()
        .threads(random.pick(&[1, 1, 1, 2, 3, 64]))
        .distinct(random.one_in(6))
        .recency(match random.below(5) {
            0 => Recency::Decay { tau_us: DAY_US / 7 },
            1 => Recency::Decay {
                tau_us: 30 * DAY_US,
            },
            2 => Recency::Boost {
                beta: 0.5,
                tau_us: DAY_US,
            },
            _ => Recency::Off,
        });
    request = add_clauses(random, shape, request);
    let time = |random: &mut Random| i64::try_from(random.below(1000)).expect("small") * end / 1000;
    if random.one_in(5) {
        let (a, b) = (time(random), time(random));
        request = request.since_us(a.min(b)).until_us(a.max(b));
    }
    if random.one_in(8) {
        request = request.tag(random.pick(&["red", "blue", "green"]));
    }
    if random.one_in(8) {
        request = request.min_source(SourceClass::Web);
    }
    request
}

fn add_clauses(random: &mut Random, shape: &Shape, mut request: Request) -> Request {
    for _ in 0..random.pick(&[0, 0, 0, 1, 1, 2, 3]) {
        let word = format!("w{}", random.skewed(shape.words + 1));
        let other = format!("w{}", random.skewed(shape.words + 1));
        request = match random.below(11) {
            9 | 10 => request.impact(
                random.pick(&["t0", "t1", "t2"]),
                random.pick(&[0.01, 1.0, 100.0]),
            ),
            0 => request.require(word),
            1 => request.require(format!("{word} {other}")),
            2 => request.exclude(word),
            3 => request.exclude(format!("{word} {other}")),
            4 => request.phrase(format!("{word} {other}")),
            5 => request.prefix(random.pick(&["w", "w1", "w2", "w12", "x"])),
            6 => request.fuzzy(word, 1),
            7 => request.fuzzy(word, 2),
            _ => request.weighted(word, random.pick(&[0.01, 2.5, 100.0])),
        };
    }
    request
}

fn ask(store: &Store, request: &Request) -> Response {
    store.retrieve(request).expect("answers")
}

/// What the pruned answers were spared by.
#[derive(Default)]
struct Seen {
    /// Partitions that bounds ruled out.
    bounded: u64,
    /// Answers with hits for which rows were picked by filters, not by postings.
    picked: u64,
    /// Answers for which some rows were scored before any list was read.
    first: u64,
}

/// Asks `questions` both ways.
fn compare(random: &mut Random, shape: &Shape, questions: usize) -> Seen {
    let store = store(random, shape);
    let mut seen = Seen::default();
    for number in 0..questions {
        let request = question(random, shape);
        let (pruned, all) = match (
            store.retrieve(&request),
            store.retrieve(&request.clone().exhaustive()),
        ) {
            (Ok(pruned), Ok(all)) => (pruned, all),
            (pruned, all) => {
                let (pruned, all) = (pruned.expect_err("refused"), all.expect_err("refused"));
                assert_eq!(pruned.to_string(), all.to_string(), "question {number}");
                continue;
            }
        };
        assert_eq!(pruned.exactness, all.exactness);
        assert_eq!(
            serde_json::to_string(&pruned.hits).expect("JSON"),
            serde_json::to_string(&all.hits).expect("JSON"),
            "question {number}: {request:?}"
        );
        let counters = pruned.plan.layout.sparse;
        seen.bounded += counters.partitions_bounded;
        seen.picked += u64::from(counters.rows_picked > 0 && !pruned.hits.is_empty());
        seen.first += u64::from(counters.rows_first > 0);
        assert!(pruned.plan.layout.sparse.postings <= all.plan.layout.sparse.postings);
    }
    store.close().expect("closes");
    seen
}

#[test]
fn a_pruned_answer_is_the_exhaustive_one() {
    let mut random = Random(7);
    let mut bounded = 0;
    for _ in 0..60 {
        let shape = Shape::random(&mut random);
        bounded += compare(&mut random, &shape, 160).bounded;
    }
    assert!(
        bounded > 0,
        "bounds never ruled a partition out: nothing was tested"
    );
}

#[test]
fn windows_of_a_long_run_make_no_difference() {
    let mut random = Random(8);
    let shape = Shape {
        records: 14_000,
        flushes: 1,
        words: 60,
        days: 1,
        times: 1000,
        rare_tag: 0,
    };
    let seen = compare(&mut random, &shape, 400);
    assert!(seen.first > 20, "{} answers with a first look", seen.first);
}

#[test]
fn rows_that_a_filter_picks_are_scored_as_all_others() {
    let mut random = Random(10);
    let shape = Shape {
        records: 12_000,
        flushes: 1,
        words: 6,
        days: 1000,
        times: 1000,
        rare_tag: 120,
    };
    let seen = compare(&mut random, &shape, 250);
    assert!(seen.picked > 5, "{} answers of rows picked", seen.picked);
}

#[test]
fn a_required_word_that_is_worth_nothing_still_drives() {
    let (env, _disk, _clock) = Env::sim(3);
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(Setup::default())
    };
    let store = Store::open("/store", options).expect("opens");
    let mut batch = Batch::new();
    for at in 0..2000 {
        let rare = if at % 40 == 0 { " rare" } else { "" };
        let scope = Scope::parse("a").expect("a scope");
        batch.upsert(Record::new(
            scope,
            format!("r{at}"),
            at,
            format!("common{rare}"),
        ));
    }
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
    let request = Request::within(ScopeSelector::parse("/").expect("the root"))
        .mode(Mode::Sparse)
        .now_us(0);
    // A weight of which every contribution rounds to nothing.
    let request = request.query_text("common +rare^0.00000001");
    let request = request.expect("a query");
    let (pruned, all) = (
        ask(&store, &request),
        ask(&store, &request.clone().exhaustive()),
    );
    assert_eq!(pruned.hits, all.hits);
    assert_eq!(pruned.hits.len(), 10);
}

/// A clock on which each look takes a microsecond.
#[derive(Debug, Default)]
struct SteppingClock(AtomicU64);

impl Clock for SteppingClock {
    fn now_us(&self) -> i64 {
        0
    }

    fn monotonic_ns(&self) -> u64 {
        self.0.fetch_add(1000, Ordering::Relaxed)
    }

    fn sleep(&self, _duration: Duration) {}
}

#[test]
fn a_cut_at_any_look_at_the_clock_gives_no_row_twice_and_none_too_good() {
    let mut random = Random(11);
    let shape = Shape {
        records: 14_000,
        flushes: 0,
        words: 60,
        days: 1,
        times: 1000,
        rare_tag: 0,
    };
    let (env, _disk, _clock) = Env::sim(random.next());
    let env = Env {
        clock: Arc::new(SteppingClock::default()),
        ..env
    };
    let store = store_in(env, &mut random, &shape);
    store.flush().expect("flushes");
    let (mut cut, mut first) = (0, 0);
    for number in 0..60 {
        let k = random.pick(&[1, 10, 300]);
        let words = (0..3).map(|_| format!("w{}", random.skewed(60)));
        let mut request = Request::within(ScopeSelector::parse("/").expect("the root"))
            .text(words.collect::<Vec<_>>().join(" "))
            .mode(Mode::Sparse)
            .k(k)
            .threads(random.pick(&[1, 3]))
            .now_us(0);
        if random.one_in(3) {
            request = request.distinct(true);
        }
        let whole = ask(&store, &request);
        for budget_us in 0..24 {
            let part = ask(&store, &request.clone().budget_us(budget_us));
            let ids: HashSet<_> = part.hits.iter().map(|hit| (&hit.scope, &hit.id)).collect();
            assert_eq!(
                ids.len(),
                part.hits.len(),
                "question {number}, {budget_us} us"
            );
            assert!(part.hits.len() <= whole.hits.len());
            for (hit, best) in part.hits.iter().zip(&whole.hits) {
                assert!(hit.score <= best.score, "question {number}, {budget_us} us");
            }
            match part.exactness {
                chronolith::Exactness::BudgetCut {
                    unvisited_upper_bound,
                } => {
                    cut += 1;
                    let counters = part.plan.layout.sparse;
                    first += u64::from(counters.rows_first > 0 && !part.hits.is_empty());
                    let missed = whole
                        .hits
                        .iter()
                        .filter(|hit| !ids.contains(&(&hit.scope, &hit.id)));
                    for hit in missed {
                        assert!(hit.score <= unvisited_upper_bound, "question {number}");
                    }
                }
                _ => assert_eq!(part.hits, whole.hits, "question {number}, {budget_us} us"),
            }
        }
    }
    assert!(
        cut > 100 && first > 20,
        "{cut} cut, {first} after a first look"
    );
}

#[test]
fn a_spent_budget_says_what_it_may_have_missed_and_more_time_is_never_worse() {
    let mut random = Random(9);
    let shape = Shape {
        records: 400,
        flushes: 20,
        words: 30,
        days: 40,
        times: 1000,
        rare_tag: 0,
    };
    let store = store(&mut random, &shape);
    let request = Request::within(ScopeSelector::parse("/").expect("the root"))
        .text("w0 w1 w2")
        .mode(Mode::Sparse)
        .now_us(0);
    let whole = ask(&store, &request);
    let none = ask(&store, &request.clone().budget_us(0));
    assert!(none.hits.is_empty());
    let chronolith::Exactness::BudgetCut {
        unvisited_upper_bound,
    } = none.exactness
    else {
        panic!("{:?}", none.exactness);
    };
    assert!(unvisited_upper_bound >= whole.hits[0].score);
    let enough = ask(&store, &request.budget_us(3_600_000_000));
    assert_eq!(enough.exactness, whole.exactness);
    assert_eq!(enough.hits, whole.hits);
    let ids: HashSet<&str> = whole.hits.iter().map(|hit| hit.id.as_str()).collect();
    assert!(ids.len() > 5);
}
