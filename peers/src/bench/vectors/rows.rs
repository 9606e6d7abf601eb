//! What is stored and asked? The first rows of a generator's folder, its query vectors, and
//! which rows pass a filter.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::npy::Matrix;
use crate::bench::corpus::{Corpus, Kind as Words};
use crate::engine::Failure;

/// A line of the table: which rows may answer.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize, Deserialize,
)]
pub enum Kind {
    /// All rows.
    #[value(name = "all")]
    #[serde(rename = "all")]
    All,
    /// One in a thousand, by chance.
    #[value(name = "f0.1")]
    #[serde(rename = "f0.1")]
    Tag1,
    /// One in a hundred, by chance.
    #[value(name = "f1")]
    #[serde(rename = "f1")]
    Tag10,
    /// One in ten, by chance.
    #[value(name = "f10")]
    #[serde(rename = "f10")]
    Tag100,
    /// The newest thousandth.
    #[value(name = "t0.1")]
    #[serde(rename = "t0.1")]
    Time1,
    /// The newest hundredth.
    #[value(name = "t1")]
    #[serde(rename = "t1")]
    Time10,
    /// The newest tenth.
    #[value(name = "t10")]
    #[serde(rename = "t10")]
    Time100,
    /// One of the scopes.
    #[value(name = "scope")]
    #[serde(rename = "scope")]
    Scope,
    /// All rows, by words too.
    #[value(name = "hybrid")]
    #[serde(rename = "hybrid")]
    Hybrid,
}

/// What a filter asks of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Filter {
    /// Nothing.
    None,
    /// A bucket below this, of a thousand.
    Bucket(u16),
    /// As new as this or newer, µs.
    Since(i64),
    /// This scope.
    Scope(usize),
}

impl Kind {
    /// As on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Tag1 => "f0.1",
            Self::Tag10 => "f1",
            Self::Tag100 => "f10",
            Self::Time1 => "t0.1",
            Self::Time10 => "t1",
            Self::Time100 => "t10",
            Self::Scope => "scope",
            Self::Hybrid => "hybrid",
        }
    }
}

/// The rows of a run.
#[derive(Debug, Clone)]
pub struct Rows {
    /// The folder.
    pub corpus: Corpus,
    /// How many of its rows.
    pub count: usize,
    /// Numbers of a vector.
    pub dim: usize,
    /// Row `i` lies in scope `i % scopes`.
    pub scopes: usize,
}

/// One row.
pub struct Row {
    /// Arrival number.
    pub number: usize,
    /// Event time, µs.
    pub time_us: i64,
    /// By chance, below 1,000.
    pub bucket: u16,
    /// Scope.
    pub scope: usize,
    /// Words.
    pub text: String,
    /// Of length 1.
    pub vector: Vec<f32>,
}

/// What filters look at, by row.
pub struct Columns {
    times_us: Vec<i64>,
    buckets: Vec<u16>,
    scopes: usize,
}

/// One query.
pub struct Ask {
    /// Of length 1.
    pub vector: Vec<f32>,
    /// Words that belong to it.
    pub words: String,
    /// The scope of [`Kind::Scope`].
    pub scope: usize,
}

#[derive(Deserialize)]
struct Line {
    id: String,
    ts: i64,
    text: String,
    attributes: Attributes,
}

#[derive(Deserialize)]
struct Attributes {
    bucket: u16,
}

impl Rows {
    /// The first `count` rows, or all, spread over `scopes`.
    pub fn open(corpus: Corpus, count: Option<usize>, scopes: usize) -> Result<Self, Failure> {
        let matrix = Matrix::open(&corpus.dir.join("vectors.npy"), "<f4")?;
        let count = count.unwrap_or(matrix.rows);
        if count == 0 || count > matrix.rows {
            let (name, has) = (&corpus.name, matrix.rows);
            return Err(format!("--rows {count}: {name} has 1 to {has} rows with vectors").into());
        }
        if scopes == 0 || scopes > count {
            return Err(format!("--scopes {scopes}: 1 to {count}, one row each at least").into());
        }
        Ok(Self {
            count,
            dim: matrix.columns,
            scopes,
            corpus,
        })
    }

    fn lines(&self) -> Result<impl Iterator<Item = Result<Line, Failure>>, Failure> {
        let file = File::open(self.path("records.jsonl"))?;
        let lines = BufReader::with_capacity(1 << 20, file).lines();
        Ok(lines.take(self.count).enumerate().map(|(number, line)| {
            let line: Line = serde_json::from_str(&line?)?;
            if line.id != number.to_string() {
                return Err(format!("record {} is not number {number}", line.id).into());
            }
            Ok(line)
        }))
    }

    fn path(&self, name: &str) -> PathBuf {
        self.corpus.dir.join(name)
    }

    /// Hands over every row in its order.
    pub fn for_each(
        &self,
        take: &mut dyn FnMut(Row) -> Result<(), Failure>,
    ) -> Result<(), Failure> {
        let mut vectors = Matrix::open(&self.path("vectors.npy"), "<f4")?;
        let mut handed = 0;
        for (number, line) in self.lines()?.enumerate() {
            let line = line?;
            take(Row {
                number,
                time_us: line.ts,
                bucket: line.attributes.bucket,
                scope: number % self.scopes,
                text: line.text,
                vector: vectors.next_f32()?,
            })?;
            handed += 1;
        }
        if handed == self.count {
            return Ok(());
        }
        Err(format!("records.jsonl ends after {handed} of {} rows", self.count).into())
    }

    /// What filters look at.
    pub fn columns(&self) -> Result<Columns, Failure> {
        let mut columns = Columns {
            times_us: Vec::with_capacity(self.count),
            buckets: Vec::with_capacity(self.count),
            scopes: self.scopes,
        };
        for line in self.lines()? {
            let line = line?;
            columns.times_us.push(line.ts);
            columns.buckets.push(line.attributes.bucket);
        }
        Ok(columns)
    }

    /// Up to `most` queries, evenly over all that there are; with each its place in the files.
    pub fn asks(&self, most: usize) -> Result<(Vec<usize>, Vec<Ask>), Failure> {
        let mut vectors = Matrix::open(&self.path("qvec.npy"), "<f4")?;
        if vectors.columns != self.dim {
            let (has, wants) = (vectors.columns, self.dim);
            return Err(format!("qvec.npy has {has} numbers a row, vectors.npy {wants}").into());
        }
        let words = self.corpus.texts(Words::Fact)?;
        let (count, mut places, mut asks) = (vectors.rows, Vec::new(), Vec::new());
        let most = most.clamp(1, count.max(1));
        for place in 0..count {
            let vector = vectors.next_f32()?;
            if place != asks.len() * count / most {
                continue;
            }
            places.push(place);
            asks.push(Ask {
                vector,
                words: words.get(place).cloned().unwrap_or_default(),
                scope: place * 37 % self.scopes,
            });
        }
        Ok((places, asks))
    }

    /// The generator's exact answers, where they are for these rows.
    pub fn given_answers(&self, kind: Kind) -> Result<Option<Vec<Vec<usize>>>, Failure> {
        let all = u64::try_from(self.count)? == self.corpus.records;
        if !all || matches!(kind, Kind::Scope | Kind::Hybrid) {
            return Ok(None);
        }
        let mut matrix = Matrix::open(&self.path(&format!("gt_{}.npy", kind.name())), "<i8")?;
        let mut answers = Vec::with_capacity(matrix.rows.min(self.count));
        for _ in 0..matrix.rows {
            let rows = matrix.next_i64()?.into_iter();
            // -1: fewer rows pass than are asked for.
            answers.push(rows.filter_map(|row| usize::try_from(row).ok()).collect());
        }
        Ok(Some(answers))
    }
}

impl Columns {
    /// Rows that there are.
    pub fn len(&self) -> usize {
        self.times_us.len()
    }

    /// Scopes that there are.
    pub fn scopes(&self) -> usize {
        self.scopes
    }

    /// What `kind` asks of a row, for a query in `scope`.
    pub fn filter(&self, kind: Kind, scope: usize) -> Filter {
        let newest = |per_mille: usize| {
            let first = self.len() * (1000 - per_mille) / 1000;
            Filter::Since(self.times_us.get(first).copied().unwrap_or(i64::MAX))
        };
        match kind {
            Kind::All | Kind::Hybrid => Filter::None,
            Kind::Tag1 => Filter::Bucket(1),
            Kind::Tag10 => Filter::Bucket(10),
            Kind::Tag100 => Filter::Bucket(100),
            Kind::Time1 => newest(1),
            Kind::Time10 => newest(10),
            Kind::Time100 => newest(100),
            Kind::Scope => Filter::Scope(scope),
        }
    }

    /// Whether a row passes.
    pub fn passes(&self, filter: Filter, row: usize) -> bool {
        match filter {
            Filter::None => true,
            Filter::Bucket(below) => self.buckets.get(row).is_some_and(|bucket| *bucket < below),
            Filter::Since(time_us) => self.times_us.get(row).is_some_and(|at| *at >= time_us),
            Filter::Scope(scope) => row % self.scopes == scope,
        }
    }

    /// All rows that pass, ascending.
    pub fn passing(&self, filter: Filter) -> Vec<usize> {
        (0..self.len())
            .filter(|row| self.passes(filter, *row))
            .collect()
    }
}
