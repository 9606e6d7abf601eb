//! `get`: what does the store hold under this id?

use std::io::Write;

use chronolith::{Scope, StoredRecord};
use owo_colors::OwoColorize;
use serde_json::{Value, json};

use super::open_to_read;
use crate::cli::Get;
use crate::failure::Failure;
use crate::output::{clean, wrap};
use crate::{interchange, output, times};

pub(crate) fn run(args: &Get) -> Result<(), Failure> {
    let scope = Scope::parse(&args.scope)
        .map_err(|refused| Failure::Usage(format!("--scope {:?}: {refused}", args.scope)))?;
    let store = open_to_read(&args.store)?;
    let Some(stored) = store.get(&scope, &args.id)? else {
        return Err(Failure::Failed(format!(
            "no record {} in scope {scope}; scopes are matched exactly here",
            args.id
        )));
    };
    match args.json {
        true => output::print_json(&to_json(&stored)),
        false => print(&stored),
    }
}

fn to_json(stored: &StoredRecord) -> Value {
    let mut fields = interchange::to_json(&stored.record, true);
    fields.insert("ts_us".into(), json!(stored.record.event_time_us));
    fields.insert("ts".into(), times::show(stored.record.event_time_us).into());
    fields.insert("commit_seq".into(), json!(stored.commit_seq));
    fields.insert("commit_time_us".into(), json!(stored.commit_time_us));
    fields.insert(
        "commit_time".into(),
        times::show(stored.commit_time_us).into(),
    );
    fields.insert("length".into(), json!(stored.length));
    Value::Object(fields)
}

fn print(stored: &StoredRecord) -> Result<(), Failure> {
    let record = &stored.record;
    let mut out = output::for_people();
    let mut field = |name: &str, value: String| {
        writeln!(out, "{} {}", format!("{name:<13}").dimmed(), clean(&value))
    };
    field("id", record.id.clone())?;
    field("scope", record.scope.path())?;
    field("time", times::show(record.event_time_us))?;
    field(
        "written",
        format!(
            "{} (seq {})",
            times::show(stored.commit_time_us),
            stored.commit_seq
        ),
    )?;
    let texts = [
        ("speaker", record.speaker.clone()),
        ("source", record.source.clone()),
        (
            "source class",
            record.source_class.map(|class| class.name().to_owned()),
        ),
        ("source id", record.source_id.clone()),
        (
            "importance",
            record.importance.map(|value| value.to_string()),
        ),
        (
            "tags",
            Some(record.tags.join(", ")).filter(|tags| !tags.is_empty()),
        ),
        (
            "vector",
            record
                .vector
                .as_ref()
                .map(|vector| format!("{} components", vector.len())),
        ),
        (
            "impacts",
            Some(format!("{} tokens", record.impacts.len())).filter(|_| !record.impacts.is_empty()),
        ),
        (
            "attributes",
            Some(record.attributes.clone()).filter(|text| !text.is_empty()),
        ),
        ("summary", record.summary.clone()),
    ];
    for (name, value) in texts {
        if let Some(value) = value {
            field(name, value)?;
        }
    }
    for one in &record.vectors {
        let components = one.vector.len();
        field(
            "vector",
            format!("{components} components in space {}", one.space),
        )?;
    }
    field("length", format!("{} tokens", stored.length))?;
    writeln!(out)?;
    for line in wrap(&record.text, 0, usize::MAX) {
        writeln!(out, "{line}")?;
    }
    Ok(out.flush()?)
}
