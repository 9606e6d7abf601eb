//! How does a store move to another embedder while it answers?
//!
//! `cargo run -p chronolith --example migrate_model`

#![expect(
    clippy::disallowed_methods,
    reason = "a service starts threads of its own"
)]

use std::convert::Infallible;

use chronolith::{
    Batch, Error, MigrateOptions, Options, Record, Request, Scope, ScopeSelector, Setup, Store,
    StoredRecord, VectorFormat, VectorSpace,
};

const NOTES: [(&str, &str); 4] = [
    ("n1", "the staging proxy listens on port 8443"),
    ("n2", "releases go out on friday mornings"),
    ("n3", "the proxy was moved to another port"),
    ("n4", "the office moves in october"),
];

/// A stand-in for an embedder: counts letters. Each model folds the alphabet in its own way, so
/// its vectors have nothing to do with those of another.
fn embed(model: u8, dim: usize, text: &str) -> Vec<f32> {
    let mut vector = vec![0.0; dim];
    for byte in text.bytes().filter(u8::is_ascii_lowercase) {
        vector[usize::from((byte - b'a') * model) % dim] += 1.0;
    }
    vector
}

fn old_model(text: &str) -> Vec<f32> {
    embed(1, 8, text)
}

fn new_model(text: &str) -> Vec<f32> {
    embed(3, 16, text)
}

fn space(model: &str, dim: u32) -> VectorSpace {
    VectorSpace {
        model: model.into(),
        dim,
        format: VectorFormat::F16,
        normalised: true,
    }
}

fn first_hit(store: &Store, request: Request) -> Result<String, Error> {
    let response = store.retrieve(&request.k(1))?;
    Ok(response.hits.into_iter().map(|hit| hit.id).collect())
}

fn show(store: &Store) -> Result<(), Error> {
    let stats = store.stats()?;
    for own in stats.spaces {
        let mark = if own.is_default { ", the default" } else { "" };
        println!(
            "space {}: {} vectors of {}{mark}",
            own.name, own.vectors, own.embedder
        );
    }
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let dir = std::env::temp_dir().join(format!("chronolith-migrate-{}", std::process::id()));
    let setup = Setup {
        vectors: Some(space("letters-1", 8)),
        ..Setup::default()
    };
    let store = Store::open(&dir, Options::create(setup))?;
    let scope = Scope::parse("user/ana")?;
    let mut batch = Batch::new();
    for (at, (id, text)) in (0..).zip(NOTES) {
        let mut record = Record::new(scope.clone(), id, 1_740_787_200_000_000 + at, text);
        record.vector = Some(old_model(text));
        batch.upsert(record);
    }
    store.write(batch)?;

    // A vector of the new model in the old space is refused, also where the dimension fits.
    let ask = || Request::within(ScopeSelector::Root);
    let question = "which port does the proxy have";
    let mixed = ask()
        .vector(embed(3, 8, question))
        .vector_model("letters-3");
    println!(
        "mixed: {}",
        store.retrieve(&mixed).expect_err("another model")
    );

    // In the background: this handle, or a clone of it on another thread, goes on serving.
    store.add_space("next", &space("letters-3", 16))?;
    let worker = store.clone();
    let migration = std::thread::spawn(move || {
        let embed = |rows: &[StoredRecord]| {
            let vectors = rows.iter().map(|row| Some(new_model(&row.record.text)));
            Ok::<_, Infallible>(vectors.collect())
        };
        worker.migrate_space("next", &MigrateOptions::default(), embed, &mut |_| {})
    });
    println!(
        "old: {}",
        first_hit(&store, ask().vector(old_model(question)))?
    );
    let done = migration.join().expect("the thread ends")?;
    println!("filled: {}", done.filled);
    println!(
        "new: {}",
        first_hit(&store, ask().vector_in("next", new_model(question)))?
    );
    // A filled record takes its room twice until it is merged.
    store.compact(true, &mut |_| {})?;
    show(&store)?;

    store.set_default_space("next")?;
    store.drop_space("main")?;
    // Merges drop the old vectors; forced, all of them at once.
    store.compact(true, &mut |_| {})?;
    println!(
        "default: {}",
        first_hit(&store, ask().vector(new_model(question)))?
    );
    show(&store)?;
    store.close()?;
    std::fs::remove_dir_all(&dir)?;
    Ok(())
}
