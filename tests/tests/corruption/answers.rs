//! Everything that is asked of a store, and the whole of what it says.

use chronolith::{Error, Fusion, Mode, Recency, Request, ScopeSelector, Snapshot, SourceClass};

use super::fixture::{IDS, START_US, id};

/// One entry a question, so that a damaged partition spoils only what needs it.
pub(crate) type Answers = Vec<String>;

fn requests() -> Vec<Request> {
    let within = |scope: &str| {
        let selector = ScopeSelector::parse(scope).expect("a scope");
        Request::within(selector)
            .now_us(START_US + 80 * 86_400_000_000)
            .k(200)
    };
    let vector = vec![0.1, 0.9, 0.3, 0.5];
    let day = 86_400_000_000;
    vec![
        within("user").text("staging proxy number"),
        within("team")
            .text("deploy rollback database incident")
            .k(5),
        within("user/ana").vector(vector.clone()).mode(Mode::Dense),
        within("user")
            .text("review port")
            .vector(vector)
            .fusion(Fusion::Convex { dense_weight: 0.3 }),
        within("user").text("number").tag("kinds"),
        within("user")
            .tag("ops")
            .since_us(START_US + 2 * day)
            .until_us(START_US + 9 * day),
        within("team").and_within(ScopeSelector::parse("user/ana/work").expect("a scope")),
        within("user")
            .text("number")
            .min_source(SourceClass::ProjectFile)
            .distinct(true),
        within("user").text("port").context(2, 2).k(3),
        within("user")
            .text("database")
            .recency(Recency::Decay { tau_us: 30 * day }),
    ]
}

/// Asks everything; the first error ends it.
pub(crate) fn answers(snapshot: &Snapshot) -> Result<Answers, Error> {
    all(snapshot).into_iter().collect()
}

/// Asks everything; a question's error is its answer.
pub(crate) fn all(snapshot: &Snapshot) -> Vec<Result<String, Error>> {
    let mut all = Vec::new();
    for request in requests() {
        let response = snapshot.retrieve(&request);
        all.push(response.map(|response| {
            let shown = (&response.hits, &response.exactness, response.text_tokens);
            serde_json::to_string(&shown).expect("serialises")
        }));
    }
    for at in 0..IDS {
        let (scope, id) = id(at);
        let stored = snapshot.get(&scope, &id);
        all.push(stored.map(|stored| format!("{:?}", stored.map(|s| (s.record, s.commit_seq)))));
    }
    all
}
