//! How does a person read an answer? Each hit as a small block: which, when, how much, why.

use std::io::Write;

use chronolith::{
    Carried, ContextRow, Decision, Exactness, Fusion, Hit, Mode, Plan, Response, Signals,
};
use owo_colors::OwoColorize;

use crate::failure::Failure;
use crate::output::{self, clean, wrap, wrap_marked};
use crate::times;

/// Most lines of a hit's text.
const TEXT_LINES: usize = 6;
/// Most terms that a reason names.
const TERMS_NAMED: usize = 5;

/// Prints a whole answer.
pub(crate) fn print(response: &Response, explain: bool) -> Result<(), Failure> {
    let mut out = output::for_people();
    if response.hits.is_empty() {
        writeln!(out, "no record of these scopes matches")?;
    }
    for (at, hit) in response.hits.iter().enumerate() {
        print_hit(&mut out, at + 1, hit, &response.plan, TEXT_LINES)?;
        writeln!(out)?;
    }
    let hits = response.hits.len();
    writeln!(
        out,
        "{}",
        format!(
            "{hits} hits, {}, {} tokens of text, {} of {} partitions searched, {:.2} ms",
            exactness(response.exactness),
            response.text_tokens,
            searched(&response.plan),
            response.plan.layout.partitions.len(),
            std::time::Duration::from_micros(response.took_us).as_secs_f64() * 1e3
        )
        .dimmed()
    )?;
    for missing in &response.missing {
        writeln!(out, "{} {}", "left out:".red(), clean(&missing.error))?;
    }
    if explain {
        writeln!(out, "\n{}", clean_lines(&response.plan.to_string()))?;
    }
    Ok(out.flush()?)
}

/// Partitions that were not skipped.
pub(crate) fn searched(plan: &Plan) -> usize {
    plan.layout
        .partitions
        .iter()
        .filter(|partition| partition.decision == Decision::Search)
        .count()
}

fn clean_lines(text: &str) -> String {
    text.lines().map(clean).collect::<Vec<_>>().join("\n")
}

fn exactness(exactness: Exactness) -> String {
    match exactness {
        Exactness::Exact => "exact".into(),
        Exactness::Approximate { bound } => format!("approximate (bound {bound})"),
        Exactness::BudgetCut {
            unvisited_upper_bound,
        } => {
            format!("cut by the budget (nothing above {unvisited_upper_bound:.3} was missed)")
        }
        Exactness::Partial { missing } => {
            format!("partial ({missing} damaged partitions left out)")
        }
    }
}

/// Prints one hit.
pub(crate) fn print_hit(
    out: &mut impl Write,
    rank: usize,
    hit: &Hit,
    plan: &Plan,
    text_lines: usize,
) -> Result<(), Failure> {
    writeln!(
        out,
        "{} {}  {}  {}",
        format!("{rank:>2}.").bold(),
        clean(&hit.id).bold().cyan(),
        times::show_minute(hit.event_time_us),
        clean(&hit.scope.path()).dimmed()
    )?;
    for row in &hit.before {
        context(out, row)?;
    }
    if let Some(snippet) = &hit.snippet {
        for line in wrap_marked(&snippet.text, &snippet.highlights, 4) {
            writeln!(out, "{line}")?;
        }
    } else if let Some(text) = &hit.text {
        for line in wrap(text, 4, text_lines) {
            writeln!(out, "{line}")?;
        }
    }
    if hit.carried == Carried::Summary {
        let note = "(its summary: the text does not fit the budget)";
        writeln!(out, "    {}", note.dimmed())?;
    }
    for row in &hit.after {
        context(out, row)?;
    }
    for line in wrap(&scores(hit, plan), 4, 3) {
        writeln!(out, "{}", line.dimmed())?;
    }
    for line in wrap(&format!("why: {}", why(hit, plan)), 4, 3) {
        writeln!(out, "{}", line.green())?;
    }
    Ok(())
}

fn context(out: &mut impl Write, row: &ContextRow) -> Result<(), Failure> {
    let line = format!("| {}  {}", times::show_minute(row.event_time_us), row.text);
    for line in wrap(&line, 6, 2) {
        writeln!(out, "{}", line.dimmed())?;
    }
    Ok(())
}

/// The score and what it was made of.
fn scores(hit: &Hit, plan: &Plan) -> String {
    let Signals {
        bm25,
        cosine,
        recency,
        ..
    } = hit.signals;
    let mut parts = vec![format!("score {:.3}", hit.score)];
    parts.extend(bm25.map(|value| format!("bm25 {value:.2}")));
    parts.extend(cosine.map(|value| format!("cosine {value:.3}")));
    parts.extend(dense_share(hit, plan).map(|share| format!("dense share {:.0}%", share * 100.0)));
    parts.extend(recency.map(|value| format!("recency x{value:.3}")));
    parts.extend(hit.source_class.map(|class| class.name().to_owned()));
    parts.join(" · ")
}

/// Which part of the fused score came from the vectors.
fn dense_share(hit: &Hit, plan: &Plan) -> Option<f64> {
    let (sparse, dense) = match plan.fusion? {
        Fusion::Convex { dense_weight } => (
            hit.signals.sparse.unwrap_or(0.0) * (1.0 - dense_weight),
            hit.signals.dense.unwrap_or(0.0) * dense_weight,
        ),
        Fusion::Rrf { .. } => (
            hit.signals.sparse.unwrap_or(0.0),
            hit.signals.dense.unwrap_or(0.0),
        ),
    };
    (sparse + dense > 0.0).then(|| dense / (sparse + dense))
}

/// Why this hit came back, in a sentence.
fn why(hit: &Hit, plan: &Plan) -> String {
    let mut reasons = Vec::new();
    if plan.mode.is_none() {
        reasons.push("among the latest records of the scope".to_owned());
    }
    match &hit.explanation {
        Some(explanation) if !explanation.terms.is_empty() => {
            let named: Vec<String> = explanation
                .terms
                .iter()
                .take(TERMS_NAMED)
                .map(|part| {
                    let term = match &part.stands_for {
                        Some(clause) => format!("{} for {}", part.term, clause),
                        None => part.term.clone(),
                    };
                    format!("{} {:.2}", clean(&term), part.score)
                })
                .collect();
            let more = explanation.terms.len().saturating_sub(TERMS_NAMED);
            let more = if more > 0 {
                format!(" and {more} more")
            } else {
                String::new()
            };
            reasons.push(format!("its words {}{more}", named.join(", ")));
        }
        _ => reasons.extend(
            hit.signals
                .bm25
                .map(|_| "its words match the question's".to_owned()),
        ),
    }
    if let Some(cosine) = hit.signals.cosine {
        let words = if hit.signals.bm25.is_some() || plan.mode == Some(Mode::Dense) {
            "its meaning"
        } else {
            "its meaning alone, no word in common"
        };
        reasons.push(format!("{words} (cosine {cosine:.2})"));
    }
    if let Some(recency) = hit.signals.recency {
        reasons.push(format!("its age (x{recency:.2})"));
    }
    reasons.join("; ")
}
