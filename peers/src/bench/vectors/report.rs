//! How is a run shown? One table; the same shape as JSON, which other programs may write too.

use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::rows::Rows;
use crate::bench::summary::{Ratio, median, ratio};
use crate::bench::table::{aligned, short, spread, table};
use crate::engine::Failure;

/// What ratios compare.
const OURS: &str = "chronolith";

/// One kind of query at one value of the knob.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Point {
    /// Which rows may answer.
    pub kind: String,
    /// Value of the recall knob.
    pub knob: String,
    /// Queries asked.
    pub asked: usize,
    /// Share of the exact answers' rows; nothing where there is no exact answer.
    pub recall: Option<f64>,
    /// Hits of the shortest answer.
    pub hits_min: usize,
    /// By pass: half of the queries took less, µs of processor time.
    pub p50_us: Vec<f64>,
    /// By pass: 95 of 100 took less.
    pub p95_us: Vec<f64>,
}

/// One engine.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Engine {
    /// Its name.
    pub name: String,
    /// How it is used.
    pub about: String,
    /// Processor time of the build, µs a row.
    pub build_us: f64,
    /// Bytes on disk, a row.
    pub bytes: f64,
    /// In the order asked.
    pub points: Vec<Point>,
}

/// A run.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Report {
    /// Name of the folder.
    pub corpus: String,
    /// Rows.
    pub rows: usize,
    /// Seed of the generator.
    pub seed: u64,
    /// Load of the machine when it began.
    pub load: f64,
    /// In the order of the table.
    pub engines: Vec<Engine>,
}

impl Engine {
    /// The cheapest value of the knob that reaches the recall, else the last.
    pub fn chosen(&self, kind: &str, target: f64) -> Option<&Point> {
        let mut mine = self.points.iter().filter(|point| point.kind == kind);
        mine.clone()
            .find(|point| point.reaches(target))
            .or_else(|| mine.next_back())
    }
}

impl Point {
    /// Whether the recall is reached.
    pub fn reaches(&self, target: f64) -> bool {
        self.recall.is_none_or(|recall| recall >= target)
    }
}

/// The other's p50 under ours, pass by pass.
pub fn quotient(ours: &Point, other: &Point) -> Ratio {
    let pairs = ours.p50_us.iter().zip(&other.p50_us);
    ratio(pairs.map(|(ours, other)| ours / other.max(1e-9)))
}

impl Report {
    /// An empty one.
    pub fn of(rows: &Rows) -> Self {
        let load = fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split_whitespace().next();
        Self {
            corpus: rows.corpus.name.clone(),
            rows: rows.count,
            seed: rows.corpus.seed,
            load: load.and_then(|load| load.parse().ok()).unwrap_or(0.0),
            engines: Vec::new(),
        }
    }

    /// Adds the engines of a report of the same rows.
    pub fn add(&mut self, path: &Path) -> Result<(), Failure> {
        let wrong = |what: String| -> Failure { format!("{}: {what}", path.display()).into() };
        let text = fs::read_to_string(path).map_err(|error| wrong(error.to_string()))?;
        let other: Self = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
        let same = |report: &Self| (report.corpus.clone(), report.rows, report.seed);
        if same(&other) != same(self) {
            let (has, wants) = (same(&other), same(self));
            return Err(wrong(format!(
                "measured on {has:?}, this run on {wants:?}: folder, rows, seed"
            )));
        }
        self.engines.extend(other.engines);
        Ok(())
    }

    /// Kinds in the order asked.
    pub fn kinds(&self) -> Vec<&str> {
        let mut kinds: Vec<&str> = Vec::new();
        for point in self.engines.iter().flat_map(|engine| &engine.points) {
            if !kinds.contains(&point.kind.as_str()) {
                kinds.push(&point.kind);
            }
        }
        kinds
    }

    /// Our point of a kind, where it was asked.
    pub fn ours(&self, kind: &str, target: f64) -> Option<&Point> {
        let ours = self.engines.iter().find(|engine| engine.name == OURS)?;
        ours.chosen(kind, target)
    }

    /// The tables and what they mean.
    pub fn print(&self, target: f64) {
        let Self {
            corpus, rows, seed, ..
        } = self;
        println!(
            "## {corpus}: {rows} rows, seed {seed}, load {}\n",
            short(self.load)
        );
        println!("{}\n", self.times(target));
        println!("{}\n", self.stores());
        for engine in &self.engines {
            println!("{:<15} {}", engine.name, engine.about);
        }
        println!(
            "\nTimes are processor time of the asking process, warm, median over passes of each pass's \
             percentiles. *: the cheapest value of the\nknob with recall@10 of {target}; {OURS} / it: \
             the p50 of {OURS}'s such line over this one's, pass by pass (low-high). Where an\nengine \
             has no * its last value is compared: it did not reach the recall. least hits: of the \
             shortest answer."
        );
    }

    fn times(&self, target: f64) -> comfy_table::Table {
        let over = format!("{OURS} / it");
        let mut table = table(&[
            "rows",
            "engine",
            "knob",
            "recall",
            "least hits",
            "asked",
            "p50 us",
            "p95 us",
            &over,
        ]);
        for kind in self.kinds() {
            for engine in &self.engines {
                for point in engine.points.iter().filter(|point| point.kind == kind) {
                    let chosen = engine.chosen(kind, target);
                    let is_chosen = chosen.is_some_and(|chosen| chosen.knob == point.knob);
                    table.add_row(self.line(engine, point, is_chosen, target));
                }
            }
        }
        aligned(table, 2)
    }

    fn line(&self, engine: &Engine, point: &Point, is_chosen: bool, target: f64) -> [String; 9] {
        let ours = self.ours(&point.kind, target);
        let ours = ours.filter(|_| is_chosen && engine.name != OURS);
        let star = if is_chosen && point.reaches(target) {
            "*"
        } else {
            ""
        };
        let recall = point.recall.map(|recall| format!("{recall:.4}"));
        [
            point.kind.clone(),
            engine.name.clone(),
            format!("{}{star}", point.knob),
            recall.unwrap_or_default(),
            point.hits_min.to_string(),
            point.asked.to_string(),
            short(median(point.p50_us.iter().copied())),
            short(median(point.p95_us.iter().copied())),
            spread(ours.map(|ours| quotient(ours, point))),
        ]
    }

    fn stores(&self) -> comfy_table::Table {
        let mut table = table(&["store", "build CPU us/row", "bytes/row"]);
        for engine in &self.engines {
            let figures = [short(engine.build_us), short(engine.bytes)];
            table.add_row([engine.name.clone()].into_iter().chain(figures));
        }
        aligned(table, 1)
    }
}
