//! How is a run shown? One table for people, the same as JSON for programs.

use std::collections::BTreeMap;

use comfy_table::{CellAlignment, ContentArrangement, Table, presets};
use serde::Serialize;

use crate::outcome::{Outcome, Verdict};

/// What one engine did in one trial.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// Counts by row.
    Counts(BTreeMap<&'static str, u64>),
    /// Why it did not run.
    Skipped(String),
}

impl Cell {
    /// A trial that could not run, and why.
    pub fn skipped(why: impl Into<String>) -> Self {
        Self::Skipped(why.into())
    }
}

/// One trial over all engines.
#[derive(Debug, Serialize)]
pub struct Section {
    /// `one-bit flips, closed store`.
    pub title: String,
    /// The rows, in order.
    pub rows: Vec<&'static str>,
    /// By engine.
    pub cells: BTreeMap<&'static str, Cell>,
}

/// Something that was seen and is worth a look: a few of each kind.
#[derive(Debug, Clone, Serialize)]
pub struct Finding {
    /// The trial.
    pub trial: &'static str,
    /// Whose.
    pub engine: &'static str,
    /// Label of the outcome.
    pub outcome: &'static str,
    /// What exactly.
    pub what: String,
}

/// A whole run.
#[derive(Debug, Serialize)]
pub struct Report {
    /// Seed of everything.
    pub seed: u64,
    /// `--trials`.
    pub trials: usize,
    /// Seconds on the wall.
    pub seconds: u64,
    /// What each engine is, in the order of the columns.
    pub engines: Vec<(&'static str, &'static str)>,
    /// The trials.
    pub sections: Vec<Section>,
    /// Examples.
    pub findings: Vec<Finding>,
    /// Remarks: what a trial could not see.
    pub remarks: Vec<String>,
    /// How often Chronolith did what it promises never to do.
    pub violations: u64,
}

/// Findings kept of each (trial, engine, outcome).
const EXAMPLES: usize = 3;

impl Report {
    /// Keeps an example, unless there are enough of its kind.
    pub fn find(&mut self, finding: Finding) {
        let same = |other: &&Finding| {
            (other.trial, other.engine, other.outcome)
                == (finding.trial, finding.engine, finding.outcome)
        };
        if self.findings.iter().filter(same).count() < EXAMPLES {
            self.findings.push(finding);
        }
    }

    /// Counts verdicts into a cell, with `trials` as its first row, and keeps examples.
    pub fn tally(
        &mut self,
        trial: &'static str,
        engine: &'static str,
        verdicts: &[Verdict],
    ) -> Cell {
        let mut counts = BTreeMap::from([(TRIALS, verdicts.len() as u64)]);
        for verdict in verdicts {
            let outcome = verdict.outcome;
            *counts.entry(outcome.label()).or_default() += 1;
            if outcome != Outcome::Equal {
                self.find(Finding {
                    trial,
                    engine,
                    outcome: outcome.label(),
                    what: verdict.seen.clone(),
                });
            }
            if engine == "chronolith" && outcome.is_violation() {
                self.violations += 1;
            }
        }
        Cell::Counts(counts)
    }

    /// The table, the legend, the remarks; with `examples` also what was seen.
    pub fn print(&self, examples: bool) {
        println!("{}", self.table());
        for (name, about) in &self.engines {
            println!("{name:<11} {about}");
        }
        println!();
        for section in &self.sections {
            for (engine, cell) in &section.cells {
                if let Cell::Skipped(why) = cell {
                    println!("skipped: {}, {engine}: {why}", section.title);
                }
            }
        }
        for remark in &self.remarks {
            println!("{remark}");
        }
        for finding in self.findings.iter().filter(|_| examples) {
            println!(
                "{} / {} / {}: {}",
                finding.trial, finding.engine, finding.outcome, finding.what
            );
        }
        println!(
            "seed {}, --trials {}, {} s; chronolith broke its promises {} times",
            self.seed, self.trials, self.seconds, self.violations
        );
    }

    fn table(&self) -> Table {
        let mut table = Table::new();
        table.load_style(presets::ASCII_MARKDOWN);
        table.set_content_arrangement(ContentArrangement::Disabled);
        let names = self.engines.iter().map(|(name, _)| (*name).to_owned());
        table.set_header(std::iter::once(String::new()).chain(names));
        for section in &self.sections {
            table.add_row([section.title.to_uppercase()]);
            for row in &section.rows {
                let cells = self
                    .engines
                    .iter()
                    .map(|(name, _)| match section.cells.get(name) {
                        Some(Cell::Counts(counts)) => match counts.get(row) {
                            Some(0) | None => "0".to_owned(),
                            Some(count) => count.to_string(),
                        },
                        Some(Cell::Skipped(_)) => "skipped".to_owned(),
                        None => String::new(),
                    });
                let used = |name: &str| matches!(section.cells.get(name), Some(Cell::Counts(counts)) if counts.get(row) > Some(&0));
                // Rows that nobody filled are left out, the alarming ones excepted.
                if self.engines.iter().any(|(name, _)| used(name)) || ALWAYS.contains(row) {
                    table.add_row(std::iter::once((*row).to_owned()).chain(cells));
                }
            }
        }
        for column in table.column_iter_mut().skip(1) {
            column.set_cell_alignment(CellAlignment::Right);
        }
        table
    }
}

/// The first row of most trials.
pub const TRIALS: &str = "trials";

const ALWAYS: [&str; 3] = [TRIALS, "SILENTLY WRONG", "ACKNOWLEDGED LOST"];
