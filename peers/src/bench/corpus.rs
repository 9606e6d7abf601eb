//! What is written and asked? The records and queries that the shared generator made.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use chronolith_segments::analyze::{Analyzed, Analyzer};
use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::engine::Failure;

/// One day, µs.
pub const DAY_US: i64 = 86_400 * 1_000_000;

/// One record: all that any engine is given.
#[derive(Debug, Clone, Deserialize)]
pub struct Record {
    /// Decimal arrival number.
    pub id: String,
    /// Event time, µs.
    #[serde(rename = "ts")]
    pub time_us: i64,
    /// `u17/p0`.
    pub scope: String,
    /// Words between spaces.
    pub text: String,
}

/// A kind of query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    /// 2 to 5 terms of one record, everywhere.
    Fact,
    /// The same and four very frequent words.
    Nl,
    /// The terms in a window of time.
    Time,
    /// The terms in the record's scope.
    Scope,
    /// The terms everywhere, scores decaying with age; Chronolith alone can.
    Decay,
}

impl Kind {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fact => "fact",
            Self::Nl => "nl",
            Self::Time => "time",
            Self::Scope => "scope",
            Self::Decay => "decay",
        }
    }

    /// The file with its text: decay asks the facts.
    fn file(self) -> String {
        let name = if self == Self::Decay {
            Self::Fact
        } else {
            self
        }
        .name();
        format!("queries_{name}.jsonl")
    }
}

/// What a run changes in the queries of the corpus.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize, clap::Args)]
pub struct Changes {
    /// Length of every window of `time`, days [default: as in the queries: 1, 7, 30, 180]
    #[arg(long)]
    pub window_days: Option<i64>,
    /// Age constant of `decay`, days
    #[arg(long, default_value_t = 7)]
    pub tau_days: i64,
}

/// One query, ready for every engine.
#[derive(Debug, Clone)]
pub struct Query {
    /// Words.
    pub text: String,
    /// The same, analysed: distinct terms, how often each.
    pub terms: Vec<(String, u32)>,
    /// Where; `/` is everywhere.
    pub scope: String,
    /// Half-open window, µs.
    pub window_us: Option<(i64, i64)>,
    /// Age constant and instant, µs.
    pub decay_us: Option<(i64, i64)>,
}

#[derive(Deserialize)]
struct Line {
    text: String,
    scope: String,
    time_from: Option<i64>,
    time_to: Option<i64>,
}

#[derive(Deserialize)]
struct Meta {
    n: u64,
    seed: u64,
}

/// A folder made by the generator.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Corpus {
    /// Where.
    pub dir: PathBuf,
    /// Name of the folder.
    pub name: String,
    /// Records.
    pub records: u64,
    /// Seed.
    pub seed: u64,
}

impl Corpus {
    /// Opens a folder.
    pub fn open(dir: &Path) -> Result<Self, Failure> {
        let path = dir.join("meta.json");
        let text = fs::read_to_string(&path)
            .map_err(|error| format!("{}: {error}: make it with bench/gen.py", path.display()))?;
        let meta: Meta = serde_json::from_str(&text)?;
        let name = dir
            .file_name()
            .ok_or("a corpus needs a folder with a name")?;
        Ok(Self {
            dir: dir.to_owned(),
            name: name.to_string_lossy().into_owned(),
            records: meta.n,
            seed: meta.seed,
        })
    }

    /// Hands over all records in their order, `chunk` at a time.
    pub fn chunks(
        &self,
        chunk: usize,
        take: &mut dyn FnMut(&[Record]) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let file = File::open(self.dir.join("records.jsonl"))?;
        let mut records = Vec::with_capacity(chunk);
        for line in BufReader::with_capacity(1 << 20, file).lines() {
            records.push(serde_json::from_str(&line?)?);
            if records.len() == chunk {
                take(&records)?;
                records.clear();
            }
        }
        if records.is_empty() {
            Ok(())
        } else {
            take(&records)
        }
    }

    /// The queries of a kind, spread evenly whatever prefix is used.
    pub fn queries(&self, kind: Kind, changes: Changes) -> Result<Vec<Query>, Failure> {
        let analyzer = Analyzer::default();
        let now_us = self.newest_query_us()?;
        let lines = self.lines(kind)?;
        let query = |line: &Line| {
            let terms = analyzer.analyze_query(&line.text).into_iter();
            let window_us = line.time_from.zip(line.time_to).map(|(from_us, to_us)| {
                let days = changes.window_days;
                (days.map_or(from_us, |days| to_us - days * DAY_US), to_us)
            });
            Query {
                text: line.text.clone(),
                terms: terms
                    .map(|(term, count)| (String::from_utf8_lossy(&term).into_owned(), count))
                    .collect(),
                scope: line.scope.clone(),
                window_us,
                decay_us: (kind == Kind::Decay).then_some((changes.tau_days * DAY_US, now_us)),
            }
        };
        // Queries are sorted by their record's time; 619 is prime.
        let count = lines.len();
        let order = (0..count).map(|i| if count % 619 == 0 { i } else { i * 619 % count });
        Ok(order.map(|i| query(&lines[i])).collect())
    }

    /// The words of a kind's queries, in the order of the file.
    pub fn texts(&self, kind: Kind) -> Result<Vec<String>, Failure> {
        let lines = self.lines(kind)?.into_iter();
        Ok(lines.map(|line| line.text).collect())
    }

    fn lines(&self, kind: Kind) -> Result<Vec<Line>, Failure> {
        let text = fs::read_to_string(self.dir.join(kind.file()))?;
        text.lines()
            .map(|line| Ok(serde_json::from_str(line)?))
            .collect()
    }

    /// The end of the history, as the windows that reach to it have it.
    fn newest_query_us(&self) -> Result<i64, Failure> {
        let lines = self.lines(Kind::Time)?;
        Ok(lines
            .iter()
            .filter_map(|line| line.time_to)
            .max()
            .unwrap_or(0))
    }
}

/// Turns texts into the terms that Chronolith would index, one space between them: for engines
/// that are given a tokenizer which only splits there.
pub struct Terms {
    analyzer: Analyzer,
    analyzed: Analyzed,
}

impl Terms {
    /// The analyzer of a default store.
    pub fn new() -> Self {
        Self {
            analyzer: Analyzer::default(),
            analyzed: Analyzed::new(),
        }
    }

    /// Replaces `out` with the terms of `text`, each as often as it counts.
    pub fn join(&mut self, text: &str, out: &mut String) {
        out.clear();
        self.for_each(text, &mut |term, count| {
            for _ in 0..count {
                if !out.is_empty() {
                    out.push(' ');
                }
                out.push_str(term);
            }
        });
    }

    /// Distinct terms of `text` with their counts; returns the counted length.
    pub fn for_each(&mut self, text: &str, take: &mut dyn FnMut(&str, u32)) -> u32 {
        self.analyzer.analyze(text, &mut self.analyzed);
        for (term, count) in self.analyzed.terms() {
            take(&String::from_utf8_lossy(term), count);
        }
        self.analyzed.length()
    }
}
