//! The answers are as good as those of independent tools on the same text.

use chronolith::{AnalyzerKind, Fusion, Maintenance, Mode, Options, Setup, Store, VectorFormat};
use chronolith_tests::data::{Judgements, Quality, Query, Set, deep, reference, write_all};

use super::layouts::options;

/// The reference breaks ties otherwise.
const SPARSE_OFF_MAX: f64 = 0.01;
/// The reference multiplies in another order, on f16 vectors too.
const DENSE_OFF_MAX: f64 = 0.003;
/// The reference fuses the same two lists of a hundred.
const HYBRID_OFF_MAX: f64 = 0.015;
/// The reference prints three digits.
const ROUNDING: f64 = 0.0005;

/// A mode with the row of the reference table that it is held against.
struct Run {
    name: &'static str,
    mode: Mode,
    dense_weight: f64,
    off_max: f64,
}

const RUNS: [Run; 4] = [
    Run {
        name: "bm25-stem",
        mode: Mode::Sparse,
        dense_weight: 0.0,
        off_max: SPARSE_OFF_MAX,
    },
    Run {
        name: "dense",
        mode: Mode::Dense,
        dense_weight: 1.0,
        off_max: DENSE_OFF_MAX,
    },
    Run {
        name: "cc0.3",
        mode: Mode::Hybrid,
        dense_weight: 0.3,
        off_max: HYBRID_OFF_MAX,
    },
    Run {
        name: "cc0.5",
        mode: Mode::Hybrid,
        dense_weight: 0.5,
        off_max: HYBRID_OFF_MAX,
    },
];

fn scored(set: &Set) -> impl Iterator<Item = (&Query, &Judgements)> {
    let kept = set
        .queries
        .iter()
        .filter(|query| query.category != "adversarial");
    kept.filter_map(|query| Some((query, set.judged.get(&query.id)?)))
}

fn measure(store: &Store, set: &Set, run: &Run) -> Quality {
    let fusion = Fusion::Convex {
        dense_weight: run.dense_weight,
    };
    let mut figures = Vec::new();
    for (query, judged) in scored(set) {
        let mut request = query.request().mode(run.mode).fusion(fusion).ids_only();
        if ["irc", "commits"].contains(&set.name) {
            request = query
                .time_from_us
                .into_iter()
                .fold(request, |r, us| r.since_us(us));
            request = query
                .time_to_us
                .into_iter()
                .fold(request, |r, us| r.until_us(us));
        }
        let response = store.retrieve(&request).expect("answers");
        let ids: Vec<&str> = response.hits.iter().map(|hit| hit.id.as_str()).collect();
        figures.push(Quality::of(&ids, judged));
    }
    Quality::mean(&figures)
}

/// Compares every run of a set with the reference; true where all are within their bounds.
fn is_as_good(name: &'static str) -> bool {
    let Some(set) = Set::load(name) else {
        return true;
    };
    let root = tempfile::tempdir().expect("a directory");
    let setup = Setup {
        analyzer: AnalyzerKind::PlainEn,
        vectors: set.space(VectorFormat::F16),
        ..Setup::default()
    };
    let options = Options {
        ..options(&setup, Maintenance::Manual)
    };
    let store = Store::open(root.path().join("store"), options).expect("opens");
    write_all(&store, &set.records);
    store.flush().expect("flushed");
    let single_scope = set.scopes().len() == 1;
    let mut all_good = true;
    for run in RUNS {
        if !set.has_vectors && run.mode != Mode::Sparse {
            continue;
        }
        let scoped = reference(name, &format!("{}-scope-idf", run.name));
        let Some(expected) = scoped.or_else(|| reference(name, run.name)) else {
            continue;
        };
        let found = measure(&store, &set, &run);
        let pairs = found.figures().into_iter().zip(expected.figures());
        let off = pairs.map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
        // With several scopes the reference's hybrid uses statistics of the whole set.
        let held = single_scope || run.mode != Mode::Hybrid;
        let good = !held || off <= run.off_max + ROUNDING;
        all_good &= good;
        println!(
            "{name:12} {:10} found {:.3?} reference {:.3?} off {off:.4}{}",
            run.name,
            found.figures(),
            expected.figures(),
            match (held, good) {
                (false, _) => " (reported only)",
                (true, true) => "",
                (true, false) => " TOO FAR",
            }
        );
    }
    all_good
}

#[test]
fn plain_en_is_as_good_as_the_reference() {
    let all = [
        "locomo",
        "beam-100k",
        "nfcorpus",
        "cranfield",
        "cacm",
        "npl",
        "musique",
    ];
    let rest = ["beam-500k", "irc", "commits"];
    let sample = ["locomo", "cranfield", "cacm", "musique"];
    let names: Vec<_> = match deep() {
        true => all.into_iter().chain(rest).collect(),
        false => sample.to_vec(),
    };
    let bad: Vec<_> = names.into_iter().filter(|name| !is_as_good(name)).collect();
    assert!(
        bad.is_empty(),
        "further from the reference than allowed: {bad:?}"
    );
}
