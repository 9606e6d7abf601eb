//! `export`: how does a store leave as files that `ingest` takes back?

use std::io::Write;
use std::path::Path;

use chronolith::{Error, ScopeSelector, StoredRecord};
use serde_json::Value;

use super::open_to_read;
use crate::cli::Export;
use crate::failure::Failure;
use crate::files::FileWriter;
use crate::npy::MatrixWriter;
use crate::{files, interchange, output, progress};

pub(crate) fn run(args: &Export) -> Result<(), Failure> {
    let settings = files::settings(&args.store)?;
    let scopes = match args.scope.is_empty() {
        true => vec![ScopeSelector::Root],
        false => args
            .scope
            .iter()
            .map(|text| {
                ScopeSelector::parse(text)
                    .map_err(|refused| Failure::Usage(format!("--scope {text:?}: {refused}")))
            })
            .collect::<Result<_, _>>()?,
    };
    let matrix = match (&args.vectors, settings.default_space()) {
        (None, _) => None,
        (Some(path), Some(space)) => Some(MatrixWriter::create(path, space.dim as usize)?),
        (Some(_), None) => {
            return Err(Failure::Failed(
                "the store keeps no vectors; leave --vectors out".into(),
            ));
        }
    };
    let in_line = matrix.is_none() && !files::has_builtin(&settings);
    let mut sink = Sink {
        matrix,
        in_line,
        records: 0,
    };
    let store = open_to_read(&args.store)?;
    let spinner = progress::spinner("exporting");
    let records = match &args.output {
        Some(path) => {
            let mut out = FileWriter::create(path)?;
            visit(&store, &scopes, &mut sink, &mut out, path)?;
            out.finish(None)?;
            sink.records
        }
        None => {
            let mut out = output::for_programs();
            visit(&store, &scopes, &mut sink, &mut out, Path::new("stdout"))?;
            out.flush()?;
            sink.records
        }
    };
    if let Some(matrix) = sink.matrix {
        matrix.finish()?;
    }
    spinner.finish_and_clear();
    if args.output.is_some() {
        let mut out = output::for_people();
        writeln!(out, "{records} records exported")?;
        out.flush()?;
    }
    Ok(())
}

/// Where records go.
struct Sink {
    matrix: Option<MatrixWriter>,
    in_line: bool,
    records: u64,
}

impl Sink {
    fn put(&mut self, stored: &StoredRecord, out: &mut impl Write) -> Result<(), Stop> {
        let record = &stored.record;
        if let Some(matrix) = &mut self.matrix {
            let vector = record.vector.as_ref().ok_or_else(|| {
                Stop::Because(Failure::Failed(format!(
                    "record {} of {} has no vector, and a NumPy file has no way to say so; leave --vectors out",
                    record.id, record.scope
                )))
            })?;
            matrix.push(vector).map_err(Stop::Io)?;
        }
        let line = Value::Object(interchange::to_json(record, self.in_line));
        writeln!(out, "{line}").map_err(Stop::Io)?;
        self.records += 1;
        Ok(())
    }
}

/// Why an export ends early.
enum Stop {
    Io(std::io::Error),
    Because(Failure),
}

fn visit(
    store: &chronolith::ReadOnlyStore,
    scopes: &[ScopeSelector],
    sink: &mut Sink,
    out: &mut impl Write,
    path: &Path,
) -> Result<(), Failure> {
    let mut because = None;
    let visited = store.snapshot().for_each_record(scopes, &mut |stored| {
        sink.put(&stored, out).map_err(|stop| {
            let source = match stop {
                Stop::Io(source) => source,
                Stop::Because(failure) => {
                    because = Some(failure);
                    std::io::ErrorKind::InvalidData.into()
                }
            };
            Error::Io {
                operation: "write",
                path: path.to_owned(),
                source,
            }
        })
    });
    match because {
        Some(failure) => Err(failure),
        None => Ok(visited?),
    }
}
