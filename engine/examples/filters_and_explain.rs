//! How is a question narrowed, and how does the answer account for itself?
//!
//! `cargo run -p chronolith --example filters_and_explain`

use chronolith::{
    Batch, DAY_US, Error, Options, PackPolicy, Record, Request, Response, Scope, ScopeSelector,
    Setup, SourceClass, Store, TagEdge, TokenBudget,
};

/// 2025-03-01T00:00:00Z.
const MARCH_US: i64 = 1_740_787_200_000_000;
/// (id, scope, day from 1 March, tag, source class, text).
const LOG: [(&str, &str, i64, &str, SourceClass, &str); 8] = [
    (
        "r1",
        "team/apollo",
        0,
        "deploy",
        SourceClass::ToolOutput,
        "Release 1.4 went out at noon",
    ),
    (
        "r2",
        "team/apollo",
        3,
        "rollback",
        SourceClass::ToolOutput,
        "Release 1.4 was taken back: the login page returned 502",
    ),
    (
        "r3",
        "team/apollo",
        3,
        "incident",
        SourceClass::UserConfirmed,
        "Cause of the 502: the release dropped the session cookie",
    ),
    (
        "r4",
        "team/apollo",
        4,
        "deploy",
        SourceClass::ToolOutput,
        "Release 1.4.1 went out with the cookie restored",
    ),
    (
        "r5",
        "team/apollo",
        40,
        "deploy",
        SourceClass::ToolOutput,
        "Release 1.5 went out",
    ),
    (
        "r6",
        "team/apollo",
        41,
        "guess",
        SourceClass::ModelSummary,
        "The release may have broken the login page again",
    ),
    (
        "z1",
        "team/zephyr",
        3,
        "rollback",
        SourceClass::ToolOutput,
        "Release 9 of Zephyr was taken back",
    ),
    (
        "t1",
        "team",
        2,
        "rule",
        SourceClass::UserConfirmed,
        "No release on a Friday",
    ),
];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = tempfile::tempdir()?;
    let store = Store::open(dir.path().join("memory"), Options::create(Setup::default()))?;
    store.write(log()?)?;

    let apollo = || ScopeSelector::parse("team/apollo");
    show(
        &store,
        "one scope",
        &Request::within(apollo()?).text("release"),
    )?;

    // `+up`: the scope below, and each scope above it exactly. Zephyr stays unseen.
    let with_rules = Request::within(ScopeSelector::parse("team/apollo+up")?).text("release");
    show(&store, "the scope and those above it", &with_rules.k(10))?;

    let march = Request::within(apollo()?)
        .text("release")
        .since_us(MARCH_US)
        .until_us(MARCH_US + 31 * DAY_US);
    show(&store, "March only", &march)?;

    // `rollback` counts as `deploy` since the edge says so.
    let deploys = Request::within(apollo()?).text("release").tag("deploy");
    show(&store, "tag deploy, which a rollback is too", &deploys)?;

    let trusted = Request::within(apollo()?)
        .text("broken login page")
        .min_source(SourceClass::ToolOutput);
    show(&store, "nothing that a model guessed", &trusted)?;

    let story = Request::within(apollo()?)
        .text("session cookie dropped")
        .k(1)
        .context(1, 1);
    show(
        &store,
        "one hit with the record before and after it",
        &story,
    )?;

    let small = Request::within(apollo()?)
        .text("release login page")
        .budget(TokenBudget {
            tokens: 30,
            overhead_tokens: 0,
            policy: PackPolicy::RankSkip,
        });
    show(&store, "at most 30 tokens of text", &small)?;

    let explained = Request::within(apollo()?)
        .text("release 502")
        .tag("deploy")
        .k(2)
        .explain();
    let response = show(&store, "why these", &explained)?;
    for hit in &response.hits {
        for part in hit.explanation.iter().flat_map(|why| &why.terms) {
            println!(
                "   {}  {:<10} x{}  {:+.4}",
                hit.id, part.term, part.freq, part.score
            );
        }
    }
    println!("{}", response.plan);
    store.close()?;
    Ok(())
}

/// The log as one commit, with the edge that makes a rollback a kind of deploy.
fn log() -> Result<Batch, Error> {
    let mut batch = Batch::new();
    batch.link_tag(TagEdge {
        scope: Scope::parse("team/apollo")?,
        parent: "deploy".into(),
        child: "rollback".into(),
    });
    for (id, scope, day, tag, class, text) in LOG {
        let mut record = Record::new(Scope::parse(scope)?, id, MARCH_US + day * DAY_US, text);
        record.tags.push(tag.into());
        record.source_class = Some(class);
        batch.upsert(record);
    }
    Ok(batch)
}

/// Asks and prints the hits under a heading.
fn show(store: &Store, heading: &str, request: &Request) -> Result<Response, Error> {
    let response = store.retrieve(request)?;
    println!("-- {heading}");
    for hit in &response.hits {
        for row in &hit.before {
            println!("   {:>7}  {}  {}", "before", row.id, row.text);
        }
        let text = hit.text.as_deref().unwrap_or("(over the budget)");
        println!("   {:>7.4}  {}  {text}", hit.score, hit.id);
        for row in &hit.after {
            println!("   {:>7}  {}  {}", "after", row.id, row.text);
        }
    }
    println!();
    Ok(response)
}
