//! What do clauses and snippets promise, and where are their limits?
//!
//! That pruned answers with clauses are those of scoring everything is in `pruned.rs`; that
//! both are what the definitions say is in the model suite of `chronolith-tests`.

use chronolith::{
    Batch, CLAUSES_MAX, Clause, EXPANSIONS_MAX, Error, Exactness, Maintenance, Mode, Options,
    PHRASE_CHECKS_MAX, Record, Request, Response, SNIPPET_CHARS_MAX, Scope, ScopeSelector, Setup,
    Store, TEXT_BYTES_MAX, VectorFormat, VectorSpace,
};
use chronolith_vfs::Env;

fn store() -> Store {
    let space = VectorSpace {
        model: "test".into(),
        dim: 2,
        format: VectorFormat::F32,
        normalised: true,
    };
    let setup = Setup {
        vectors: Some(space),
        ..Setup::default()
    };
    let (env, _disk, _clock) = Env::sim(1);
    let options = Options {
        maintenance: Maintenance::Manual,
        env,
        ..Options::create(setup)
    };
    Store::open("/store", options).expect("opens")
}

fn scope(path: &str) -> Scope {
    Scope::parse(path).expect("a scope")
}

fn write(store: &Store, path: &str, texts: &[&str]) {
    let mut batch = Batch::new();
    for (at, text) in texts.iter().enumerate() {
        let time = i64::try_from(at).expect("small");
        let mut record = Record::new(scope(path), format!("r{at}"), time, *text);
        record.vector = Some(vec![1.0, 0.0]);
        batch.upsert(record);
    }
    store.write(batch).expect("writes");
}

fn within(path: &str) -> Request {
    Request::within(ScopeSelector::Subtree(scope(path))).now_us(0)
}

fn ids(response: &Response) -> Vec<&str> {
    response.hits.iter().map(|hit| hit.id.as_str()).collect()
}

fn ask(store: &Store, request: &Request) -> Response {
    store.retrieve(request).expect("answers")
}

/// Field and message of a refusal.
fn refused(store: &Store, request: &Request) -> (&'static str, String) {
    match store.retrieve(request) {
        Err(Error::Refused(refused)) => (refused.field, refused.message),
        other => panic!("{other:?}"),
    }
}

#[test]
fn what_cannot_be_meant_is_refused_by_name() {
    let store = store();
    write(&store, "a", &["one two three"]);
    let clause = |clause| within("a").clause(clause);
    let fuzzy = |word: &str, distance| within("a").fuzzy(word, distance);
    let cases = [
        (within("a").require(" !? "), "require", "no word"),
        (within("a").exclude(""), "exclude", "no word"),
        (within("a").phrase("--"), "phrase", "no word"),
        (within("a").prefix(""), "prefix", "no word"),
        (within("a").prefix("\u{ad}"), "prefix", "no word"),
        (within("a").prefix("two words"), "prefix", "white space"),
        (within("a").prefix("\u{0}"), "prefix", "control"),
        (within("a").prefix("x".repeat(257)), "prefix", "256 bytes"),
        (fuzzy("", 1), "fuzzy", "no word"),
        (fuzzy("two words", 1), "fuzzy", "white space"),
        (fuzzy("one", 0), "fuzzy", "1 to 2"),
        (fuzzy("one", 3), "fuzzy", "1 to 2"),
        (within("a").weighted("one", 0.0), "words", "above 0"),
        (within("a").weighted("one", -1.0), "words", "above 0"),
        (within("a").weighted("one", f64::NAN), "words", "above 0"),
        (within("a").weighted("one", 100.5), "words", "at most 100"),
        (
            clause(Clause::Phrase {
                words: "one two".into(),
                weight: f64::INFINITY,
            }),
            "phrase",
            "at most 100",
        ),
        (within("a").snippets(0), "snippets", "1 to 10000"),
        (
            within("a").snippets(SNIPPET_CHARS_MAX + 1),
            "snippets",
            "1 to 10000",
        ),
        (
            within("a").text("x").require("y".repeat(TEXT_BYTES_MAX)),
            "text",
            "its clauses included",
        ),
    ];
    for (request, field, message) in cases {
        let found = refused(&store, &request);
        assert_eq!(found.0, field, "{found:?} of {request:?}");
        assert!(found.1.contains(message), "{found:?} of {request:?}");
    }
    ask(&store, &within("a").snippets(SNIPPET_CHARS_MAX));
    ask(&store, &within("a").weighted("one", 100.0));
}

#[test]
fn clauses_and_their_terms_are_counted_together() {
    let store = store();
    write(&store, "a", &["one"]);
    let many = |count: usize| (0..count).fold(within("a"), |all, _| all.exclude("zero"));
    ask(&store, &many(CLAUSES_MAX));
    assert_eq!(refused(&store, &many(CLAUSES_MAX + 1)).0, "clauses");
    let words =
        |from: usize, to: usize| -> String { (from..to).map(|at| format!("w{at} ")).collect() };
    let both = |end: usize| within("a").text(words(0, 600)).exclude(words(600, end));
    ask(&store, &both(1024));
    assert_eq!(refused(&store, &both(1025)).0, "text");
}

#[test]
fn a_filter_changes_no_score_and_no_statistic() {
    let store = store();
    let texts = ["port proxy", "port old proxy", "port", "old", "other words"];
    write(&store, "a", &texts);
    for flushed in [false, true] {
        if flushed {
            store.flush().expect("flushes");
        }
        let plain = ask(&store, &within("a").text("port proxy"));
        let without = ask(&store, &within("a").text("port proxy").exclude("old"));
        let with = ask(&store, &within("a").text("port").require("proxy"));
        assert_eq!(ids(&plain), ["r0", "r1", "r2"]);
        assert_eq!(ids(&without), ["r0", "r2"]);
        assert_eq!(ids(&with), ["r0", "r1"]);
        assert_eq!(plain.plan.statistics, without.plan.statistics);
        assert_eq!(plain.hits[0].score, without.hits[0].score);
        assert_eq!(plain.hits[0].score, with.hits[0].score);
        assert_eq!(plain.hits[2].score, without.hits[1].score);
    }
}

#[test]
fn excluded_words_are_out_of_every_mode() {
    let store = store();
    write(
        &store,
        "a",
        &["port old", "port", "read_file", "read the file"],
    );
    let latest = ask(&store, &within("a").exclude("old"));
    assert_eq!(latest.plan.mode, None, "the latest rows");
    assert_eq!(ids(&latest), ["r3", "r2", "r1"]);
    let one_word = ask(&store, &within("a").exclude("read_file"));
    assert_eq!(
        ids(&one_word),
        ["r3", "r1", "r0"],
        "a word of several terms"
    );
    let vector = within("a").vector(vec![1.0, 0.0]).mode(Mode::Dense);
    let dense = |request: Request| ask(&store, &request).hits.len();
    assert_eq!(dense(vector.clone()), 4);
    assert_eq!(dense(vector.clone().exclude("old")), 3);
    assert_eq!(dense(vector.clone().require("port").exclude("old")), 1);
    assert_eq!(dense(vector.clone().phrase("read the file")), 1);
    assert_eq!(dense(vector.require("nowhere")), 0);
    let hybrid = within("a").vector(vec![1.0, 0.0]).text("port");
    assert_eq!(ids(&ask(&store, &hybrid.exclude("old")))[0], "r1");
}

#[test]
fn weights_multiply_and_add_up() {
    let store = store();
    write(&store, "a", &["port", "proxy", "staging"]);
    let score = |request: Request| ask(&store, &request).hits[0].score;
    let once = score(within("a").text("port"));
    // Scores are rounded once, after weighing.
    let is = |request: Request, times: f64| (score(request) - once * times).abs() < 1e-5;
    assert!(is(within("a").weighted("port", 3.0), 3.0));
    assert!(is(within("a").text("port port").weighted("port", 0.5), 2.5));
    assert!(is(within("a").text("port").phrase("port"), 2.0));
}

#[test]
fn a_prefix_scores_as_the_best_word_that_begins_so() {
    let store = store();
    let texts = [
        "stage rare_one",
        "staging",
        "staging",
        "stable staging",
        "none",
    ];
    write(&store, "a", &texts);
    let request = within("a").prefix("sta").explain();
    let found = ask(&store, &request);
    let best = &found.hits[0].explanation.as_ref().expect("asked for").terms;
    assert_eq!(best.len(), 1, "one of several counts: {best:?}");
    assert_eq!(best[0].stands_for.as_deref(), Some("sta"));
    assert_eq!(best[0].score, found.hits[0].score);
    let clause = &found.plan.clauses[0];
    assert_eq!((clause.kind, &*clause.text), ("prefix", "sta"));
    let expansions: Vec<&str> = clause.expansions.iter().map(|t| &*t.term).collect();
    assert_eq!(expansions, ["stabl", "stage"]);
    assert!(!ids(&found).contains(&"r4"));
    assert!(ask(&store, &within("a").prefix("zzz")).hits.is_empty());
}

#[test]
fn too_many_expansions_are_refused_and_other_scopes_do_not_count() {
    let store = store();
    let words = |count: usize| -> String { (0..count).map(|at| format!("sta{at} ")).collect() };
    let (most, too_many) = (words(EXPANSIONS_MAX), words(EXPANSIONS_MAX + 1));
    write(&store, "a", &[&most]);
    let request = within("a").prefix("sta").explain();
    let alone = ask(&store, &request);
    write(&store, "b", &[&too_many, &words(900)]);
    write(&store, "a-b", &["stagnation"]);
    for flushed in [false, true] {
        if flushed {
            store.flush().expect("flushes");
        }
        let beside = ask(&store, &request);
        assert_eq!(beside.hits[0].score, alone.hits[0].score);
        assert_eq!(beside.plan.clauses, alone.plan.clauses);
        assert_eq!(beside.plan.clauses[0].expansions.len(), EXPANSIONS_MAX);
        let (field, message) = refused(&store, &within("b").prefix("sta"));
        assert_eq!(field, "prefix");
        assert!(
            message.contains("`sta` stands for more than 64 terms"),
            "{message}"
        );
        assert!(message.contains("write more of the word"), "{message}");
        assert_eq!(ask(&store, &within("b").prefix("sta89")).hits.len(), 1);
        assert_eq!(refused(&store, &within("b").fuzzy("sta1", 2)).0, "fuzzy");
        assert_eq!(ask(&store, &within("b").fuzzy("stag899", 1)).hits.len(), 1);
    }
}

#[test]
fn a_word_of_dead_rows_alone_is_no_expansion() {
    let store = store();
    let words: String = (0..60).map(|at| format!("sta{at} ")).collect();
    let dead: String = (60..80).map(|at| format!("sta{at} ")).collect();
    write(&store, "a", &[&words, &dead]);
    let count = || {
        ask(&store, &within("a").prefix("sta").explain())
            .plan
            .clauses
    };
    assert_eq!(refused(&store, &within("a").prefix("sta")).0, "prefix");
    store.flush().expect("flushes");
    store.forget(scope("a"), "r1").expect("forgets");
    assert_eq!(count()[0].expansions.len(), 60);
    store.compact(true, &mut |_| {}).expect("compacts");
    assert_eq!(count()[0].expansions.len(), 60);
}

#[test]
fn a_slip_anywhere_in_a_word_is_forgiven() {
    let store = store();
    write(&store, "a", &["kubernetes", "port", "東京都", "naïve"]);
    let finds = |word: &str, distance| {
        let found = ask(&store, &within("a").fuzzy(word, distance));
        ids(&found).join(" ")
    };
    let stem = "kubernet";
    assert_eq!(finds("kubernet", 1), "r0", "{stem}");
    assert_eq!(finds("uubernet", 1), "r0", "the first letter");
    assert_eq!(finds("kbrenet", 2), "");
    assert_eq!(finds("kubrenet", 2), "r0", "an exchange is two changes");
    assert_eq!(finds("prot", 2), "r1");
    assert_eq!(finds("NAÏV", 1), "r3", "folded");
    assert_eq!(finds("西京", 1), "r2", "a character is one change");
}

#[test]
fn a_phrase_is_verified_on_the_text_of_rows_that_score_enough() {
    let store = store();
    let count = PHRASE_CHECKS_MAX + 50;
    let mut batch = Batch::new();
    for at in 0..count {
        let text = if at == 0 { "red blue" } else { "blue red" };
        let id = format!("r{at}");
        batch.upsert(Record::new(scope("a"), id, i64::from(count - at), text));
        if at % 5000 == 4999 {
            store.write(std::mem::take(&mut batch)).expect("writes");
        }
    }
    store.write(batch).expect("writes");
    store.flush().expect("flushes");
    let request = within("a").phrase("red blue").mode(Mode::Sparse);
    for request in [request.clone(), request.clone().exhaustive()] {
        let found = ask(&store, &request);
        assert_eq!(found.plan.layout.phrase_checks, PHRASE_CHECKS_MAX);
        let Exactness::BudgetCut {
            unvisited_upper_bound,
        } = found.exactness
        else {
            panic!("{:?}", found.exactness);
        };
        let score = ask(&store, &within("a").text("red blue")).hits[0].score;
        assert_eq!(unvisited_upper_bound, score, "all rows score alike");
    }
    // Within the bound the answer is exact, and rows that score less are not read.
    let few = within("a").phrase("red blue").until_us(5000);
    let found = ask(&store, &few);
    assert_eq!(found.exactness, Exactness::Exact);
    assert!(found.hits.is_empty());
    let newest = within("a").phrase("blue red").k(3);
    let found = ask(&store, &newest);
    assert_eq!((found.exactness, found.hits.len()), (Exactness::Exact, 3));
    assert!(
        found.plan.layout.phrase_checks < 50,
        "{:?}",
        found.plan.layout
    );
}

#[test]
fn a_line_of_text_asks_what_its_clauses_ask() {
    let store = store();
    let texts = [
        "the staging proxy listens on port 8443",
        "the old staging proxy",
        "a proxy for staging",
        "kubernetes deployment",
    ];
    write(&store, "a", &texts);
    let by_text = |text: &str| {
        let request = within("a").query_text(text).expect("a query");
        ids(&ask(&store, &request)).join(" ")
    };
    assert_eq!(by_text("staging +proxy -old"), "r2 r0");
    assert_eq!(by_text("\"staging proxy\""), "r1 r0");
    assert_eq!(by_text("depl* kubrnetes~2^0.1"), "r3");
    assert_eq!(by_text("-proxy"), "r3");
    assert_eq!(by_text(""), "r3 r2 r1 r0", "nothing asked: the latest");
    let error = within("a").query_text("staging \"proxy").expect_err("open");
    assert_eq!(error.column, 9);
}

#[test]
fn snippets_show_the_best_stretch_and_cost_no_budget() {
    let store = store();
    let long = format!(
        "{} the staging proxy moved {}",
        "x ".repeat(500),
        "y ".repeat(500)
    );
    write(&store, "a", &[&long, "staging"]);
    let request = within("a").text("staging proxy").snippets(30);
    for request in [request.clone(), request.clone().ids_only()] {
        let found = ask(&store, &request);
        let hit = &found.hits[0];
        let snippet = hit.snippet.as_ref().expect("asked for");
        assert!(
            snippet.text.contains("the staging proxy moved"),
            "{snippet:?}"
        );
        assert!(snippet.text.chars().count() <= 30);
        assert_eq!(snippet.text, long[snippet.start..snippet.end]);
        let marked: Vec<&str> = snippet
            .highlights
            .iter()
            .map(|range| &snippet.text[range.clone()])
            .collect();
        assert_eq!(marked, ["staging", "proxy"]);
    }
    let bare = ask(&store, &request.clone().ids_only());
    assert_eq!((&bare.hits[0].text, bare.text_tokens), (&None, 0));
    let without = ask(&store, &within("a").text("staging proxy"));
    assert!(without.hits.iter().all(|hit| hit.snippet.is_none()));
}

#[test]
fn an_impact_is_worth_the_product_of_both_weights_and_survives_everything() {
    let store = store();
    let mut record = Record::new(scope("a"), "r0", 0, "port");
    record.impacts = vec![("port".into(), 1.3), ("##ing".into(), 64.0)];
    let mut batch = Batch::new();
    batch.upsert(record);
    store.write(batch).expect("writes");
    write(&store, "b", &["port ##ing"]);
    let score = |token: &str, weight| {
        let found = ask(&store, &within("a").impact(token, weight));
        found.hits.first().map(|hit| hit.score)
    };
    let kept = 333.0 / 256.0;
    for step in 0..3 {
        match step {
            1 => store.flush().expect("flushes"),
            2 => drop(store.compact(true, &mut |_| {}).expect("compacts")),
            _ => {}
        }
        assert_eq!(score("port", 2.0), Some(2.0 * kept));
        assert_eq!(score("##ing", 100.0), Some(6400.0));
        assert_eq!(score("ing", 1.0), None);
        let words = ask(&store, &within("a").text("port"));
        assert_eq!(words.plan.statistics.length_sum, 1, "no length");
        let both = ask(
            &store,
            &within("a").text("port").impact("port", 1.0).explain(),
        );
        assert_eq!(both.hits[0].score, words.hits[0].score + kept);
        let parts = &both.hits[0].explanation.as_ref().expect("asked for").terms;
        assert_eq!(parts[0].term, "impact port");
        assert_eq!(parts[0].freq, 333);
        // No word and no pattern of words reaches a token, nor another scope's.
        assert!(ask(&store, &within("a").prefix("##")).hits.is_empty());
        assert!(
            ask(&store, &within("a").fuzzy("xport", 1).explain())
                .hits
                .len()
                == 1
        );
        assert!(
            ask(&store, &within("b").impact("port", 1.0))
                .hits
                .is_empty()
        );
        let stored = store
            .get(&scope("a"), "r0")
            .expect("reads")
            .expect("is there");
        let expected = [
            ("##ing".to_owned(), 64.0),
            ("port".to_owned(), 333.0 / 256.0),
        ];
        assert_eq!(stored.record.impacts, expected);
    }
    assert!(store.verify(&mut |_| {}).expect("verifies").is_ok());
}

#[test]
fn impacts_that_cannot_be_kept_or_asked_for_are_refused() {
    let store = store();
    let put = |impacts: Vec<(String, f32)>| {
        let mut record = Record::new(scope("a"), "r", 0, "x");
        record.impacts = impacts;
        let mut batch = Batch::new();
        batch.upsert(record);
        store.write(batch)
    };
    for impacts in [
        vec![("a".to_owned(), 0.0)],
        vec![("a".to_owned(), 64.5)],
        vec![("a".to_owned(), f32::NAN)],
        vec![(String::new(), 1.0)],
        vec![("a".to_owned(), 1.0), ("a".to_owned(), 2.0)],
        (0..513).map(|at| (at.to_string(), 1.0)).collect(),
    ] {
        match put(impacts) {
            Err(Error::RefusedInBatch { refused, .. }) => assert_eq!(refused.field, "impacts"),
            other => panic!("{other:?}"),
        }
    }
    put((0..512).map(|at| (at.to_string(), 1.0)).collect()).expect("fits");
    assert_eq!(refused(&store, &within("a").impact("", 1.0)).0, "impact");
    assert_eq!(refused(&store, &within("a").impact("a", 0.0)).0, "impact");
    assert_eq!(refused(&store, &within("a").impact("a", 101.0)).0, "impact");
    let long = "x".repeat(256);
    assert_eq!(refused(&store, &within("a").impact(long, 1.0)).0, "impact");
}
