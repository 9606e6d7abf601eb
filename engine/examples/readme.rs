//! The README's example: this file and that text are the same, and a test compares them.

use chronolith::{Batch, Error, Options, Record, Request, Scope, ScopeSelector, Setup, Store};

fn main() -> Result<(), Error> {
    let dir = std::env::temp_dir().join(format!("chronolith-readme-{}", std::process::id()));
    let store = Store::open(&dir, Options::create(Setup::default()))?;
    let scope = Scope::parse("user/ana/project/apollo")?;

    // One batch is one commit: all of it, or none. `write` returns once it is on disk.
    let mut batch = Batch::new();
    for (id, day, text) in [
        (
            "port",
            0,
            "The staging proxy of Apollo listens on port 8443",
        ),
        ("owner", 1, "Mara owns the deploy pipeline"),
        (
            "port-2",
            9,
            "The staging proxy moved to port 9443 after the audit",
        ),
    ] {
        let event_time_us = 1_740_000_000_000_000 + day * chronolith::DAY_US;
        let mut record = Record::new(scope.clone(), id, event_time_us, text);
        record.tags.push("infra".into());
        batch.upsert(record);
    }
    store.write(batch)?;

    // A request names its scope: `user/ana` means that scope and everything below it.
    let request = Request::within(ScopeSelector::parse("user/ana")?)
        .text("which port does the staging proxy use")
        .tag("infra")
        .k(2);
    for hit in store.retrieve(&request)?.hits {
        println!(
            "{:.3}  {}  {}",
            hit.score,
            hit.id,
            hit.text.unwrap_or_default()
        );
    }
    store.close()
}
