//! `quickstart`: what does a memory do for an agent? A bundled log, five questions, the reasons.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use chronolith::{
    Error, Maintenance, Mode, Options, ReadOnlyStore, Recency, Request, Response, ScopeSelector,
    Setup, Store, VectorFormat,
};
use owo_colors::OwoColorize;
use serde::Deserialize;
use serde_json::{Value, json};

use super::ingest::Ingester;
use super::init::builtin_space;
use super::query;
use crate::cli::{Quickstart, parse_recency};
use crate::failure::Failure;
use crate::files::Stopwatch;
use crate::{files, hits, interchange, output, progress, times};

/// The log: one record a line.
const LOG: &str = include_str!("../../data/quickstart.jsonl");
/// The questions.
const QUESTIONS: &str = include_str!("../../data/quickstart_questions.json");
/// Hits that are shown of each answer.
const HITS_SHOWN: usize = 2;
/// Hits that are asked for.
const K: usize = 5;

/// What writing the log came to.
#[derive(Debug)]
struct Written {
    lines: usize,
    seconds: f64,
    anew: bool,
}

/// One question of the tour.
#[derive(Debug, Deserialize)]
struct Question {
    id: String,
    text: String,
    scope: String,
    mode: AskedMode,
    expected: String,
    why: String,
    #[serde(default)]
    time_from: Option<String>,
    #[serde(default)]
    time_to: Option<String>,
    #[serde(default)]
    min_source: Option<String>,
    #[serde(default)]
    recency: Option<String>,
    #[serde(default)]
    now: Option<String>,
}

/// The engine's mode, as the file spells it.
#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum AskedMode {
    Auto,
    Sparse,
    Dense,
    Hybrid,
}

impl AskedMode {
    fn engine(self) -> Mode {
        match self {
            Self::Auto => Mode::Auto,
            Self::Sparse => Mode::Sparse,
            Self::Dense => Mode::Dense,
            Self::Hybrid => Mode::Hybrid,
        }
    }
}

pub(crate) fn run(args: &Quickstart) -> Result<(), Failure> {
    let questions: Vec<Question> = serde_json::from_str(QUESTIONS)?;
    let written = write_log(&args.dir)?;
    let store = super::open_to_read(&args.dir)?;
    let answers = questions
        .iter()
        .map(|question| Ok(store.retrieve(&request(question)?)?))
        .collect::<Result<Vec<Response>, Failure>>()?;
    match args.json {
        true => print_json(args, &written, &questions, &answers),
        false => print(args, &store, &written, &questions, &answers),
    }
}

/// Writes the log into a new store; an earlier quickstart's that is complete stays as it is.
///
/// The months are flushed one by one and nothing compacts them: as in a store that grew over
/// half a year, each month lies in a partition of its own.
fn write_log(dir: &Path) -> Result<Written, Failure> {
    let setup = Setup {
        vectors: Some(builtin_space(VectorFormat::F16)),
        ..Setup::default()
    };
    let options = Options {
        maintenance: Maintenance::Manual,
        ..Options::create(setup)
    };
    let watch = Stopwatch::start();
    let store = Store::open(dir, options).map_err(|error| match error {
        Error::Manifest(_) => Failure::Failed(format!(
            "{} is neither new, nor empty, nor an earlier quickstart's ({error}); name another directory: chronolith quickstart DIR",
            dir.display()
        )),
        error => error.into(),
    })?;
    let ours = keys_of_log();
    let complete = refuse_foreign(&store, dir, &ours)? == ours.len();
    if !complete {
        let settings = files::settings(dir)?;
        let mut ingester = Ingester::new(&store, &settings, None, None);
        for month in months() {
            let bar = progress::bar(month.len() as u64, "writing");
            ingester.read(month.as_bytes(), &bar)?;
            bar.finish_and_clear();
            store.flush()?;
        }
        if let Some(error) = ingester.outcome.errors.first() {
            let message = &error.message;
            return Err(Failure::Failed(format!("the bundled log: {message}")));
        }
    }
    store.close()?;
    Ok(Written {
        lines: LOG.lines().count(),
        seconds: watch.seconds(),
        anew: !complete,
    })
}

/// Scope and id of every record that the log ends with.
fn keys_of_log() -> BTreeSet<(String, String)> {
    LOG.lines()
        .filter_map(|line| interchange::parse_line(line.as_bytes(), None).ok())
        .map(|record| (record.scope.path(), record.id))
        .collect()
}

/// The log cut where a month ends; its lines ascend in time.
fn months() -> Vec<String> {
    let mut months: Vec<(String, String)> = Vec::new();
    for line in LOG.lines() {
        let month = interchange::parse_line(line.as_bytes(), None)
            .map(|record| times::show(record.event_time_us)[..7].to_owned())
            .unwrap_or_default();
        if months.last().is_none_or(|(last, _)| *last != month) {
            months.push((month, String::new()));
        }
        if let Some((_, lines)) = months.last_mut() {
            lines.push_str(line);
            lines.push('\n');
        }
    }
    months.into_iter().map(|(_, lines)| lines).collect()
}

/// A store with records that are not the log's belongs to somebody: leave it alone. Gives how
/// many of the log's it holds.
fn refuse_foreign(
    store: &Store,
    dir: &Path,
    ours: &BTreeSet<(String, String)>,
) -> Result<usize, Failure> {
    let (mut foreign, mut found) = (0, 0);
    store
        .snapshot()
        .for_each_record(&[ScopeSelector::Root], &mut |stored| {
            let key = (stored.record.scope.path(), stored.record.id);
            *(if ours.contains(&key) {
                &mut found
            } else {
                &mut foreign
            }) += 1;
            Ok(())
        })?;
    if foreign > 0 || !files::has_builtin(&files::settings(dir)?) {
        return Err(Failure::Failed(format!(
            "{} holds a store of your own, which quickstart leaves alone; name another directory: chronolith quickstart DIR",
            dir.display()
        )));
    }
    Ok(found)
}

fn request(question: &Question) -> Result<Request, Failure> {
    let wrong = |field: &str| Failure::Failed(format!("bundled question {}: {field}", question.id));
    let time = |text: &Option<String>, field: &str| {
        text.as_deref()
            .map(|text| times::parse(text).map_err(|_| wrong(field)))
            .transpose()
    };
    let recency = match &question.recency {
        Some(text) => parse_recency(text).map_err(|_| wrong("recency"))?,
        None => Recency::Off,
    };
    let mut request = Request::within(ScopeSelector::parse(&question.scope)?)
        .text(question.text.as_str())
        .mode(question.mode.engine())
        .recency(recency)
        .k(K)
        .explain();
    if let Some(vector) = files::embed(&question.text) {
        request = request.vector(vector).vector_model(chronolith_embed::ID);
    }
    if let Some(us) = time(&question.time_from, "time_from")? {
        request = request.since_us(us);
    }
    if let Some(us) = time(&question.time_to, "time_to")? {
        request = request.until_us(us);
    }
    if let Some(us) = time(&question.now, "now")? {
        request = request.now_us(us);
    }
    if let Some(name) = &question.min_source {
        request = request.min_source(query::source_class(name)?);
    }
    Ok(request)
}

fn print_json(
    args: &Quickstart,
    written: &Written,
    questions: &[Question],
    answers: &[Response],
) -> Result<(), Failure> {
    let shown: Vec<Value> = questions
        .iter()
        .zip(answers)
        .map(|(question, answer)| {
            json!({
                "id": question.id,
                "question": question.text,
                "scope": question.scope,
                "expected": question.expected,
                "why": question.why,
                "answer": query::to_json(answer),
            })
        })
        .collect();
    output::print_json(&json!({
        "store": args.dir.display().to_string(),
        "stored": written.lines,
        "questions": shown,
    }))
}

fn print(
    args: &Quickstart,
    store: &ReadOnlyStore,
    written: &Written,
    questions: &[Question],
    answers: &[Response],
) -> Result<(), Failure> {
    let mut out = output::for_people();
    let dir = args.dir.display();
    let stats = store.stats()?;
    writeln!(
        out,
        "{}",
        "Chronolith quickstart: half a year of an agent's memory".bold()
    )?;
    writeln!(out)?;
    let lines = written.lines;
    match written.anew {
        true => writeln!(
            out,
            "  wrote     {lines} records into {dir} in {:.2} s, month by month, synced",
            written.seconds
        )?,
        false => writeln!(out, "  found     an earlier run's {lines} records in {dir}")?,
    }
    writeln!(
        out,
        "  reopened  {} records ({} had been corrected) of {} scopes in {} segments\n  times     {} to {}",
        stats.records,
        lines as u64 - stats.records,
        stats.scopes,
        stats.segments,
        stats
            .oldest_ts_us
            .map_or_else(String::new, |us| times::show(us)[..10].to_owned()),
        stats
            .newest_ts_us
            .map_or_else(String::new, |us| times::show(us)[..10].to_owned()),
    )?;
    writeln!(
        out,
        "  vectors   made by the embedder in this binary; nothing was downloaded"
    )?;
    for (at, (question, answer)) in questions.iter().zip(answers).enumerate() {
        print_question(&mut out, at + 1, question, answer)?;
    }
    writeln!(out, "\n{}", "What to try next".bold())?;
    for (command, why) in [
        (
            format!("query {dir} \"who is on call\" --scope user/ana"),
            "your own question",
        ),
        (
            format!("query {dir} --scope user/ana -k 3"),
            "the latest records",
        ),
        (
            format!("query {dir} \"deploy\" --scope user/ana --explain"),
            "every decision behind an answer",
        ),
        (
            format!("get {dir} fact:who --scope user/ana"),
            "one record in full",
        ),
        (format!("stats {dir}"), "what is in the store"),
        (
            "init memory".to_owned(),
            "a store of your own; then: ingest memory FILE.jsonl",
        ),
    ] {
        writeln!(out, "  {}", format!("# {why}").dimmed())?;
        writeln!(out, "  chronolith {command}")?;
    }
    Ok(out.flush()?)
}

fn print_question(
    out: &mut impl Write,
    number: usize,
    question: &Question,
    answer: &Response,
) -> Result<(), Failure> {
    writeln!(out, "\n{}", "-".repeat(output::WIDTH).dimmed())?;
    writeln!(
        out,
        "{} {}",
        format!("{number}.").bold(),
        question.text.bold()
    )?;
    let mut asked = vec![format!("scope {}", question.scope)];
    asked.extend(
        question
            .time_from
            .as_ref()
            .map(|time| format!("since {}", &time[..time.len().min(10)])),
    );
    asked.extend(
        question
            .time_to
            .as_ref()
            .map(|time| format!("until {}", &time[..time.len().min(10)])),
    );
    asked.extend(
        question
            .min_source
            .as_ref()
            .map(|class| format!("source at least {class}")),
    );
    asked.extend(
        question
            .recency
            .as_ref()
            .map(|recency| format!("recency {recency}")),
    );
    asked.push(format!(
        "{} of {} partitions searched",
        hits::searched(&answer.plan),
        answer.plan.layout.partitions.len()
    ));
    for line in output::wrap(&asked.join(" · "), 3, 3) {
        writeln!(out, "{}", line.dimmed())?;
    }
    for line in output::wrap(&question.why, 3, 4) {
        writeln!(out, "{}", line.italic())?;
    }
    writeln!(out)?;
    for (at, hit) in answer.hits.iter().take(HITS_SHOWN).enumerate() {
        hits::print_hit(out, at + 1, hit, &answer.plan, 3)?;
    }
    Ok(())
}
