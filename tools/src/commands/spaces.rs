//! `spaces`: which vector spaces has a store, and how does it move from one embedder to another?

use std::convert::Infallible;
use std::io::Write;

use chronolith::{
    MigrateOptions, Migrated, Options, Store, StoredRecord, VectorFormat, VectorSpace,
};
use serde_json::json;

use super::init::builtin_space;
use super::{open_to_read, open_to_write};
use crate::cli::{Spaces, VectorFormatChoice};
use crate::failure::Failure;
use crate::output::clean;
use crate::{files, output, progress};

pub(crate) fn run(args: &Spaces) -> Result<(), Failure> {
    let changes = [&args.add, &args.fill, &args.default, &args.drop];
    if changes.iter().all(|change| change.is_none()) {
        return show(&open_to_read(&args.store)?.stats()?, None, args.json);
    }
    let store = open_to_write(&args.store, Options::default())?;
    let changed = change(&store, args);
    let stats = store.stats()?;
    // What was done before an error stays, and is closed in order.
    let closed = store.close();
    let migrated = changed?;
    closed?;
    show(&stats, migrated.as_ref(), args.json)
}

/// Adds, fills, makes the default and drops, in this order.
fn change(store: &Store, args: &Spaces) -> Result<Option<Migrated>, Failure> {
    if let Some(name) = &args.add {
        store.add_space(name, &space_of(args))?;
    }
    let migrated = args
        .fill
        .as_ref()
        .map(|name| fill(store, name))
        .transpose()?;
    if let Some(name) = &args.default {
        store.set_default_space(name)?;
    }
    if let Some(name) = &args.drop {
        store.drop_space(name)?;
    }
    Ok(migrated)
}

fn space_of(args: &Spaces) -> VectorSpace {
    let format = match args.vector_format {
        VectorFormatChoice::F16 => VectorFormat::F16,
        VectorFormatChoice::F32 => VectorFormat::F32,
    };
    match (args.dim, &args.model) {
        (Some(dim), Some(model)) => VectorSpace {
            model: model.clone(),
            dim,
            format,
            normalised: true,
        },
        _ => builtin_space(format),
    }
}

/// Gives records that lack the space the built-in embedder's vector of their text.
fn fill(store: &Store, name: &str) -> Result<Migrated, Failure> {
    let spaces = store.spaces();
    if let Some(own) = spaces.iter().find(|own| own.name == name)
        && own.space.model != chronolith_embed::ID
    {
        return Err(Failure::Failed(format!(
            "the vectors of space {name} are of {}, and this command has {} alone; fill it from \
             your program, with Store::migrate_space",
            own.space.model,
            chronolith_embed::ID
        )));
    }
    let spinner = progress::spinner("filling");
    let embed = |rows: &[StoredRecord]| {
        let vectors = rows.iter().map(|row| files::embed(&row.record.text));
        Ok::<_, Infallible>(vectors.collect())
    };
    let done = store.migrate_space(name, &MigrateOptions::default(), embed, &mut |done| {
        spinner.set_message(format!("filling: {} records", done.filled));
    });
    spinner.finish_and_clear();
    Ok(done?)
}

fn show(
    stats: &chronolith::Stats,
    migrated: Option<&Migrated>,
    as_json: bool,
) -> Result<(), Failure> {
    if as_json {
        return output::print_json(&json!({
            "spaces": stats.spaces, "records": stats.records, "migrated": migrated,
        }));
    }
    let mut out = output::for_people();
    if let Some(done) = migrated {
        writeln!(
            out,
            "{} records filled, {} without a vector, {} changed meanwhile",
            done.filled, done.passed, done.changed
        )?;
    }
    if stats.spaces.is_empty() {
        writeln!(out, "no vector space")?;
    }
    for own in &stats.spaces {
        let mark = if own.is_default { "*" } else { " " };
        writeln!(
            out,
            "{mark} {:<16} {} of {} records, {} ({} components)",
            own.name,
            own.vectors.min(stats.records),
            stats.records,
            clean(&own.embedder),
            own.dim
        )?;
    }
    Ok(out.flush()?)
}
