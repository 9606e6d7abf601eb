//! `eval` gives the published figures on real conversations; the full table is the data
//! suite's.

use crate::support::{Room, chronolith, data};

#[test]
fn eval_gives_the_figures_of_a_hand_made_set() {
    let room = Room::new();
    let store = room.store("store", &["--embedder", "none"]);
    let records = "{\"id\":\"a\",\"ts\":10,\"scope\":\"s\",\"text\":\"red apple\"}\n{\"id\":\"b\",\"ts\":20,\"scope\":\"s\",\"text\":\"apple\"}\n{\"id\":\"c\",\"ts\":1,\"scope\":\"t\",\"text\":\"apple\"}\n";
    chronolith(["ingest", &store, &room.file("r.jsonl", records)]).ends(0);
    let queries = "{\"id\":\"q1\",\"text\":\"apple\",\"scope\":\"s\",\"category\":\"x\",\"time_from\":5,\"time_to\":15}\n{\"id\":\"q2\",\"text\":\"apple\",\"scope\":\"t\",\"category\":\"y\"}\n{\"id\":\"q3\",\"text\":\"apple\",\"scope\":\"t\",\"category\":\"y\"}\n";
    let queries = room.file("q.jsonl", queries);
    let qrels = room.file("r.tsv", "q1\ta\t1\nq2\tc\t2\nq2\tmissing\t1\n");
    let eval = |flags: &[&str]| {
        let args = [
            "eval",
            &store,
            "--queries",
            &queries,
            "--qrels",
            &qrels,
            "--mode",
            "sparse",
            "--json",
        ];
        chronolith(args.into_iter().chain(flags.iter().copied()))
            .ends(0)
            .json()
    };
    let all = eval(&[]);
    assert_eq!(
        (&all["queries"], &all["judged"], &all["mode"]),
        (&3.into(), &2.into(), &"sparse".into())
    );
    assert_eq!(
        all["hit@1"], 0.5,
        "b is shorter than a and comes first: {all}"
    );
    assert_eq!(all["mrr@10"], 0.75);
    assert_eq!(all["recall@10"], 0.75);
    assert_eq!(all["per_category"]["y"]["recall@1"], 0.5);
    for key in [
        "hit@5",
        "hit@10",
        "recall@1",
        "recall@5",
        "ndcg@10",
        "skip_rate",
    ] {
        assert!(all[key].is_f64(), "{key} in {all}");
    }
    assert!(all["latency_us"]["p95"].is_u64());
    assert_eq!(eval(&["--time", "filter"])["hit@1"], 1.0);
    assert_eq!(eval(&["--skip-category", "x"])["judged"], 1);
    let args = ["eval", &store, "--queries", &queries, "--qrels", &qrels];
    let bad = room.file("bad.tsv", "q1 a 1\n");
    chronolith(["eval", &store, "--queries", &queries, "--qrels", &bad])
        .ends(1)
        .says("line 1");
    chronolith(args.into_iter().chain(["--mode", "dense"]))
        .ends(2)
        .says("--vectors");
}

#[test]
fn locomo_is_as_good_as_published() {
    let Some(data) = data("quality on locomo") else {
        return;
    };
    let room = Room::new();
    let store = room.store("locomo", &["--dim", "384", "--analyzer", "plain-en"]);
    let file = |name: &str| {
        data.join("locomo")
            .join(name)
            .to_str()
            .expect("UTF-8")
            .to_owned()
    };
    chronolith([
        "ingest",
        &store,
        &file("records.jsonl"),
        "--vectors",
        &file("records.f16.npy"),
    ])
    .ends(0);
    // Measured once by independent tools, kept with the data: R@10, MRR@10.
    for (flags, recall, mrr, within) in [
        (&["--mode", "sparse"][..], 0.557, 0.400, 0.01),
        (&["--mode", "dense"], 0.433, 0.264, 0.003),
    ] {
        let (queries, qrels, vectors) = (
            file("queries.jsonl"),
            file("qrels.tsv"),
            file("queries.f16.npy"),
        );
        let args = [
            "eval",
            &store,
            "--queries",
            &queries,
            "--qrels",
            &qrels,
            "--vectors",
            &vectors,
            "--skip-category",
            "adversarial",
            "--json",
        ];
        let figures = chronolith(args.into_iter().chain(flags.iter().copied()))
            .ends(0)
            .json();
        for (key, expected) in [("recall@10", recall), ("mrr@10", mrr)] {
            let got = figures[key].as_f64().expect("a figure");
            // Published figures are rounded to three digits.
            assert!(
                (got - expected).abs() <= within + 0.0005,
                "{flags:?} {key}: {got}, published {expected}"
            );
        }
    }
}
