//! The plan as a person reads it.

use std::fmt::{self, Display, Formatter};

use super::dense::DenseWay;
use super::prune::Decision;
use super::request::{Fusion, Mode, Recency};
use super::response::Plan;

impl Display for Plan {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let mode = match self.mode {
            Some(Mode::Sparse) => "sparse",
            Some(Mode::Dense) => "dense",
            Some(Mode::Hybrid) => "hybrid",
            Some(Mode::Auto) => "auto",
            None => "latest rows",
        };
        writeln!(f, "mode        {mode}: {}", self.reason)?;
        writeln!(
            f,
            "population  {} live rows in scope, {:.1} tokens each on average",
            self.statistics.rows,
            self.statistics.average_length()
        )?;
        self.fmt_terms(f)?;
        self.fmt_clauses(f)?;
        for group in &self.tags {
            writeln!(f, "tags        any of {}", group.join(", "))?;
        }
        self.fmt_ranking(f)?;
        self.fmt_partitions(f)
    }
}

impl Plan {
    fn fmt_terms(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.terms.is_empty() && self.term_count > 0 {
            return writeln!(f, "terms       {}", self.term_count);
        }
        for term in &self.terms {
            writeln!(
                f,
                "term        {:<24} in {} rows, idf {:.3}, weight {}",
                term.term, term.df, term.idf, term.weight
            )?;
        }
        Ok(())
    }

    fn fmt_clauses(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for clause in &self.clauses {
            write!(f, "clause      {:<8} {}", clause.kind, clause.text)?;
            if clause.weight > 0.0 {
                write!(f, ", weight {}", clause.weight)?;
            }
            if !clause.terms.is_empty() {
                write!(f, ", terms {}", clause.terms.join(" "))?;
            }
            writeln!(f)?;
            if matches!(clause.kind, "prefix" | "fuzzy") {
                writeln!(f, "  stands for {} terms", clause.expansions.len())?;
            }
            for term in &clause.expansions {
                writeln!(
                    f,
                    "  {:<32} in {} rows, idf {:.3}",
                    term.term, term.df, term.idf
                )?;
            }
        }
        Ok(())
    }

    fn fmt_ranking(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.fusion {
            Some(Fusion::Convex { dense_weight }) => {
                writeln!(f, "fusion      convex, dense weight {dense_weight}")?
            }
            Some(Fusion::Rrf {
                sparse_weight,
                dense_weight,
            }) => {
                writeln!(
                    f,
                    "fusion      rrf, weights {sparse_weight} sparse, {dense_weight} dense"
                )?;
            }
            None => {}
        }
        if let Some((sparse, dense)) = self.lists {
            writeln!(f, "lists       {sparse} sparse, {dense} dense")?;
        }
        if let Some(dense) = &self.dense {
            let way = match dense.way {
                DenseWay::Vectors => "every vector".to_owned(),
                DenseWay::Codes { candidates } => {
                    format!("codes, then vectors of the best {candidates} at most")
                }
                DenseWay::Runs { candidates } => {
                    format!("codes of the best runs, then the vectors of the best {candidates}")
                }
            };
            let space = self.space.as_deref().unwrap_or_default();
            writeln!(f, "dense       space {space}, {way}: {}", dense.reason)?;
        }
        let days = |tau_us: i64| {
            std::time::Duration::from_micros(tau_us.unsigned_abs()).as_secs_f64() / 86_400.0
        };
        match self.recency {
            Recency::Off => Ok(()),
            Recency::Decay { tau_us } => {
                writeln!(f, "recency     decay, tau {:.3} days", days(tau_us))
            }
            Recency::Boost { beta, tau_us } => {
                writeln!(f, "recency     boost {beta}, tau {:.3} days", days(tau_us))
            }
        }
    }

    fn fmt_partitions(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let layout = &self.layout;
        let searched = layout
            .partitions
            .iter()
            .filter(|p| p.decision == Decision::Search)
            .count();
        writeln!(
            f,
            "partitions  {searched} of {} searched",
            layout.partitions.len()
        )?;
        for partition in &layout.partitions {
            let verdict = match partition.decision {
                Decision::Search => "searched",
                Decision::NoScope => "skipped: no row in scope",
                Decision::NoTime => "skipped: outside the time range",
                Decision::NoTag => "skipped: no row carries the tags",
                Decision::NoSource => "skipped: weaker source classes only",
                Decision::NoTerm => "skipped: no row in scope holds a term",
                Decision::NoVector => "skipped: no vectors",
                Decision::Bound => "skipped: its best row could not score enough",
                Decision::Budget => "skipped: no time was left",
            };
            writeln!(
                f,
                "  {:<26} {:>9} rows  {verdict}",
                partition.name.to_string(),
                partition.rows
            )?;
        }
        writeln!(
            f,
            "work        {} postings, {} rows asked, {} scored, {} filtered, {} codes, {} vectors",
            layout.sparse.postings,
            layout.sparse.rows_asked,
            layout.sparse.rows_scored,
            layout.sparse.rows_filtered,
            layout.dense.codes,
            layout.dense.vectors
        )?;
        if layout.dense.runs > 0 {
            writeln!(
                f,
                "runs        {} of {} left out",
                layout.dense.runs_left_out, layout.dense.runs
            )?;
        }
        if layout.phrase_checks > 0 {
            writeln!(f, "phrases     {} texts read", layout.phrase_checks)?;
        }
        for (stage, us) in &layout.stages_us {
            writeln!(f, "  {stage:<26} {us:>9} us")?;
        }
        Ok(())
    }
}
