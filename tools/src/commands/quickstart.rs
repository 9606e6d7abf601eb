//! `quickstart`: what does a memory do for an agent? A bundled log, five questions, the reasons.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use chronolith::{
    Error, Mode, Options, ReadOnlyStore, Recency, Request, Response, ScopeSelector, Setup, Store,
    VectorFormat,
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

/// One question of the tour.
#[derive(Debug, Deserialize)]
struct Question {
    id: String,
    text: String,
    scope: String,
    mode: Mode2,
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
enum Mode2 {
    Auto,
    Sparse,
    Dense,
    Hybrid,
}

impl Mode2 {
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
    let watch = Stopwatch::start();
    let stored = write_log(&args.dir)?;
    let seconds = watch.seconds();
    let store = super::open_to_read(&args.dir)?;
    let answers = questions
        .iter()
        .map(|question| Ok(store.retrieve(&request(question)?)?))
        .collect::<Result<Vec<Response>, Failure>>()?;
    match args.json {
        true => print_json(args, stored, &questions, &answers),
        false => print(args, &store, (stored, seconds), &questions, &answers),
    }
}

/// Writes the log into a new store, or once more into an earlier quickstart's.
fn write_log(dir: &Path) -> Result<u64, Failure> {
    let setup = Setup {
        vectors: Some(builtin_space(VectorFormat::F16)),
        ..Setup::default()
    };
    let store = Store::open(dir, Options::create(setup)).map_err(|error| match error {
        Error::Manifest(_) => Failure::Failed(format!(
            "{} is neither new, nor empty, nor an earlier quickstart's ({error}); name another directory: chronolith quickstart DIR",
            dir.display()
        )),
        error => error.into(),
    })?;
    refuse_foreign(&store, dir)?;
    let settings = files::settings(dir)?;
    let mut ingester = Ingester::new(&store, &settings, None, None);
    ingester.read(LOG.as_bytes(), &progress::bar(LOG.len() as u64, "writing"))?;
    let stored = ingester.outcome.stored;
    if let Some(error) = ingester.outcome.errors.first() {
        return Err(Failure::Failed(format!(
            "the bundled log, line {}: {}",
            error.line, error.message
        )));
    }
    store.close()?;
    Ok(stored)
}

/// A store with records that are not the log's belongs to somebody: leave it alone.
fn refuse_foreign(store: &Store, dir: &Path) -> Result<(), Failure> {
    let ours: BTreeSet<(String, String)> = LOG
        .lines()
        .filter_map(|line| interchange::parse_line(line.as_bytes(), None).ok())
        .map(|record| (record.scope.path(), record.id))
        .collect();
    let mut foreign = false;
    store
        .snapshot()
        .for_each_record(&[ScopeSelector::Root], &mut |stored| {
            foreign |= !ours.contains(&(stored.record.scope.path(), stored.record.id));
            Ok(())
        })?;
    if foreign || !files::has_builtin(&files::settings(dir)?) {
        return Err(Failure::Failed(format!(
            "{} holds a store of your own, which quickstart leaves alone; name another directory: chronolith quickstart DIR",
            dir.display()
        )));
    }
    Ok(())
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
    stored: u64,
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
        "stored": stored,
        "questions": shown,
    }))
}

fn print(
    args: &Quickstart,
    store: &ReadOnlyStore,
    (stored, seconds): (u64, f64),
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
    writeln!(
        out,
        "  wrote     {stored} records into {dir} in {seconds:.2} s, each batch synced"
    )?;
    writeln!(
        out,
        "  reopened  {} records, {} scopes, {} segments, {} to {}",
        stats.records,
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
