//! `ingest`: how do lines become records on disk, and what becomes of the bad ones?
//!
//! Lines stream through one batch at a time. A refused record is reported and taken out; its
//! neighbours are written all the same. What was acknowledged stays, whatever comes after.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;

use chronolith::manifest::Settings;
use chronolith::manifest::names::CATALOG_DIR;
use chronolith::{Batch, Durability, Error, Options, Record, Scope, Store};
use serde_json::json;

use super::open_to_write;
use crate::cli::{DurabilityChoice, Ingest};
use crate::failure::Failure;
use crate::files::{FileReader, Stopwatch};
use crate::interchange::{LineError, parse_line};
use crate::lines::{LINE_BYTES_MAX, Line, Lines};
use crate::npy::Matrix;
use crate::{files, output, progress};

/// A batch is written once its records are about this big: far below the frame limit.
const BATCH_BYTES: usize = 4 << 20;
/// Most errors that are kept for the report; the count goes on.
const ERRORS_MAX: usize = 1000;
/// Most errors that are shown one by one to a person.
const ERRORS_SHOWN: u64 = 50;

/// What came of a run.
#[derive(Debug, Default)]
pub(crate) struct Outcome {
    pub(crate) stored: u64,
    pub(crate) refused: u64,
    pub(crate) errors: Vec<LineError>,
}

pub(crate) fn run(args: &Ingest) -> Result<(), Failure> {
    let watch = Stopwatch::start();
    let settings = files::settings(&args.store)?;
    let default_scope = args
        .default_scope
        .as_deref()
        .map(|path| {
            Scope::parse(path)
                .map_err(|refused| Failure::Usage(format!("--default-scope: {refused}")))
        })
        .transpose()?;
    let vectors = open_vectors(args, &settings)?;
    let from_stdin = args.records == Path::new("-");
    let input: Box<dyn BufRead> = match from_stdin {
        true => Box::new(BufReader::with_capacity(256 << 10, std::io::stdin())),
        false => Box::new(FileReader::buffered(&args.records)?),
    };
    let bar = match from_stdin {
        true => progress::spinner("ingesting"),
        false => progress::bar(files::bytes_of(&args.records), "ingesting"),
    };
    let store = open_to_write(&args.store, options(args.durability))?;
    let mut ingest = Ingester::new(&store, &settings, vectors, default_scope);
    ingest.batch_max = args.batch as usize;
    ingest.caller_vouches = args.vector_model.is_some();
    ingest.show_errors = !args.json;
    let read = ingest.read(input, &bar);
    bar.finish_and_clear();
    let mut outcome = ingest.outcome;
    // The engine refuses a batch's lines after those the parser refused.
    outcome.errors.sort_by_key(|error| error.line);
    let closed = store.close().map_err(Failure::from);
    report(args, &outcome, watch.seconds())?;
    read.and(closed)?;
    match outcome.refused {
        0 => Ok(()),
        _ => Err(Failure::Reported(1)),
    }
}

fn options(durability: DurabilityChoice) -> Options {
    Options {
        durability: match durability {
            DurabilityChoice::Sync => Durability::Synced,
            DurabilityChoice::Buffered => Durability::Buffered,
        },
        ..Options::default()
    }
}

/// Opens and checks the vector file before anything is written.
fn open_vectors(args: &Ingest, settings: &Settings) -> Result<Option<Matrix>, Failure> {
    let space = settings.default_space();
    if let Some(model) = &args.vector_model {
        let stored = space.map_or("none", |space| &space.model);
        if stored != model {
            return Err(Failure::Failed(format!(
                "the vectors are of {model}, the store's of {stored}; vectors of two embedders cannot be compared"
            )));
        }
    }
    let Some(path) = &args.vectors else {
        return Ok(None);
    };
    let Some(space) = space else {
        return Err(Failure::Failed(format!(
            "{} keeps no vectors; create one with `chronolith init STORE --dim N`",
            args.store.display()
        )));
    };
    if files::has_builtin(settings) && args.vector_model.is_none() {
        return Err(Failure::Failed(format!(
            "{} makes its vectors with its built-in embedder and takes no others; for your own create one with `chronolith init STORE --dim N`",
            args.store.display()
        )));
    }
    if args.records == Path::new("-") {
        return Err(Failure::Usage(
            "--vectors needs a file of records: the lines are counted before the first is written"
                .into(),
        ));
    }
    let matrix = Matrix::open(path)?;
    matrix.check_dim(space.dim)?;
    let lines = count_lines(&args.records)?;
    if matrix.rows != lines {
        return Err(Failure::Failed(format!(
            "{} has {} rows, {} has {lines} lines; row i must belong to line i. Nothing was written",
            path.display(),
            matrix.rows,
            args.records.display()
        )));
    }
    Ok(Some(matrix))
}

fn count_lines(path: &Path) -> Result<u64, Failure> {
    let mut lines = Lines::new(FileReader::buffered(path)?);
    let mut count = 0;
    while lines
        .next()
        .map_err(|error| Failure::io("read", path, &error))?
        .is_some()
    {
        count += 1;
    }
    Ok(count)
}

/// Carries lines into a store, batch by batch.
pub(crate) struct Ingester<'a> {
    store: &'a Store,
    /// Dimension of the store's vectors, if it keeps any.
    dim: Option<usize>,
    builtin: bool,
    vectors: Option<Matrix>,
    default_scope: Option<Scope>,
    batch_max: usize,
    /// Vectors in the lines were declared to be the store's embedder's.
    caller_vouches: bool,
    show_errors: bool,
    /// Records of the next commit, with their lines.
    waiting: Vec<(u64, Record)>,
    waiting_bytes: usize,
    pub(crate) outcome: Outcome,
}

impl<'a> Ingester<'a> {
    pub(crate) fn new(
        store: &'a Store,
        settings: &Settings,
        vectors: Option<Matrix>,
        default_scope: Option<Scope>,
    ) -> Self {
        Self {
            store,
            dim: settings.default_space().map(|space| space.dim as usize),
            builtin: files::has_builtin(settings),
            vectors,
            default_scope,
            batch_max: 512,
            caller_vouches: false,
            show_errors: true,
            waiting: Vec::new(),
            waiting_bytes: 0,
            outcome: Outcome::default(),
        }
    }

    /// Reads all lines and writes what is good. On an error what was written before stays.
    pub(crate) fn read(
        &mut self,
        input: impl BufRead,
        bar: &indicatif::ProgressBar,
    ) -> Result<(), Failure> {
        let mut lines = Lines::new(input);
        let mut number = 0;
        loop {
            let parsed = match lines.next() {
                Ok(None) => break,
                Ok(Some(Line::TooLong)) => Some(Err((
                    "line",
                    format!("is longer than {} MiB", LINE_BYTES_MAX >> 20),
                ))),
                Ok(Some(Line::Whole(bytes))) => {
                    parse(bytes, number == 0, self.default_scope.as_ref())
                }
                Err(error) => {
                    self.write()?;
                    return Err(Failure::Failed(format!(
                        "cannot read the records after line {number}: {error}"
                    )));
                }
            };
            number += 1;
            match parsed {
                None => {}
                Some(Ok(record)) => self.take(number, record)?,
                Some(Err((field, message))) => self.refuse(number, field, message),
            }
            if number % 256 == 0 {
                bar.set_position(lines.bytes_read);
            }
        }
        self.write()
    }

    fn take(&mut self, line: u64, mut record: Record) -> Result<(), Failure> {
        if let Err((field, message)) = self.add_vector(line, &mut record)? {
            self.refuse(line, field, message);
            return Ok(());
        }
        self.waiting_bytes += weight(&record);
        self.waiting.push((line, record));
        match self.waiting.len() >= self.batch_max || self.waiting_bytes >= BATCH_BYTES {
            true => self.write(),
            false => Ok(()),
        }
    }

    /// Gives the record the vector that belongs to it.
    fn add_vector(
        &self,
        line: u64,
        record: &mut Record,
    ) -> Result<Result<(), crate::interchange::Fault>, Failure> {
        let fault = |message: String| Ok(Err(("vector", message)));
        if let Some(matrix) = &self.vectors {
            if record.vector.is_some() {
                return fault("stands in the line and in the vector file; give one".into());
            }
            record.vector = Some(matrix.row(line - 1)?);
        }
        match (&record.vector, self.dim) {
            (Some(_), None) => fault("is given, but the store keeps no vectors".into()),
            (Some(_), _) if self.builtin && !self.caller_vouches => fault(
                "is given, but the store makes its own with its built-in embedder; leave it out"
                    .into(),
            ),
            (Some(vector), Some(dim)) if vector.len() != dim => fault(format!(
                "has {} components; the store's have {dim}",
                vector.len()
            )),
            (None, _) if self.builtin => {
                record.vector = files::embed(&record.text);
                Ok(Ok(()))
            }
            _ => Ok(Ok(())),
        }
    }

    /// Commits what waits, without the records that the engine refuses.
    fn write(&mut self) -> Result<(), Failure> {
        let mut waiting = std::mem::take(&mut self.waiting);
        self.waiting_bytes = 0;
        while !waiting.is_empty() {
            let mut batch = Batch::new();
            for (_, record) in &waiting {
                batch.upsert(record.clone());
            }
            match self.store.write(batch) {
                Ok(_) => {
                    self.outcome.stored += waiting.len() as u64;
                    return Ok(());
                }
                Err(Error::RefusedInBatch { index, refused }) if index < waiting.len() => {
                    let (line, _) = waiting.remove(index);
                    self.refuse(line, refused.field, refused.message);
                }
                // Not about one record: halve, so that one big neighbour costs no other.
                Err(Error::Refused(_)) if waiting.len() > 1 => {
                    let rest = waiting.split_off(waiting.len() / 2);
                    for part in [waiting, rest] {
                        self.waiting = part;
                        self.write()?;
                    }
                    return Ok(());
                }
                Err(Error::Refused(refused)) => {
                    let (line, _) = waiting.remove(0);
                    self.refuse(line, refused.field, refused.message);
                }
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn refuse(&mut self, line: u64, field: &str, message: String) {
        self.outcome.refused += 1;
        if self.show_errors && self.outcome.refused <= ERRORS_SHOWN {
            anstream::eprintln!("line {line}: {field}: {}", output::clean(&message));
        }
        if self.outcome.errors.len() < ERRORS_MAX {
            self.outcome.errors.push(LineError {
                line,
                field: field.to_owned(),
                message,
            });
        }
    }
}

/// `None` for a blank line. A byte order mark is allowed where editors put it: at the start.
fn parse(
    bytes: &[u8],
    first: bool,
    default_scope: Option<&Scope>,
) -> Option<Result<Record, crate::interchange::Fault>> {
    let bytes = match first {
        true => bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes),
        false => bytes,
    };
    let blank = bytes.iter().all(|byte| matches!(byte, b' ' | b'\t'));
    (!blank).then(|| parse_line(bytes, default_scope))
}

/// About how many bytes a record takes in a batch.
fn weight(record: &Record) -> usize {
    let tags: usize = record.tags.iter().map(|tag| tag.len() + 2).sum();
    let named = record.vectors.iter().map(|one| one.vector.len());
    let vector = record
        .vector
        .iter()
        .map(Vec::len)
        .chain(named)
        .sum::<usize>()
        * 4;
    let summary = record.summary.as_ref().map_or(0, String::len);
    let impacts: usize = record
        .impacts
        .iter()
        .map(|(token, _)| token.len() + 4)
        .sum();
    record.text.len() + summary + record.attributes.len() + tags + vector + impacts + 256
}

fn report(args: &Ingest, outcome: &Outcome, seconds: f64) -> Result<(), Failure> {
    #[expect(clippy::cast_precision_loss, reason = "a rate for people")]
    let records_per_s = outcome.stored as f64 / seconds.max(1e-9);
    // The catalog keeps zeros ahead, and can be thrown away: it says nothing of the records.
    let catalog_bytes = files::bytes_below(&args.store.join(CATALOG_DIR));
    let bytes_on_disk = files::bytes_below(&args.store).saturating_sub(catalog_bytes);
    if args.json {
        return output::print_json(&json!({
            "stored": outcome.stored,
            "refused": outcome.refused,
            "seconds": seconds,
            "records_per_s": records_per_s,
            "bytes_on_disk": bytes_on_disk,
            "errors": outcome.errors,
            "errors_left_out": outcome.refused - outcome.errors.len() as u64,
        }));
    }
    if outcome.refused > ERRORS_SHOWN {
        anstream::eprintln!(
            "… and {} more refused lines",
            outcome.refused - ERRORS_SHOWN
        );
    }
    let mut out = output::for_people();
    writeln!(
        out,
        "{} stored, {} refused in {seconds:.2} s ({records_per_s:.0} records/s); {} on disk",
        outcome.stored,
        outcome.refused,
        output::bytes(bytes_on_disk)
    )?;
    Ok(out.flush()?)
}
