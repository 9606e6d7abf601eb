//! How many records a second does the built-in embedder do on one core?
//!
//! `cargo run --release -p chronolith-embed --example speed`
//!
//! Embeds the texts of the bundled quickstart log over and over, in five rounds, and prints
//! each round so that the spread is seen.

use std::time::Instant;

use chronolith_embed::{DIM, Embedder, ID};

const LOG: &str = include_str!("../../data/quickstart.jsonl");
const ROUNDS: usize = 5;
const RECORDS_A_ROUND: usize = 100_000;

fn main() {
    let texts: Vec<String> = LOG
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter_map(|record| record["text"].as_str().map(str::to_owned))
        .collect();
    assert!(!texts.is_empty(), "the quickstart log has no texts");
    let embedder = Embedder::builtin();
    let pieces: usize = texts
        .iter()
        .map(|text| embedder.piece_ids(text).len())
        .sum();
    println!(
        "{ID}: {} texts, {:.1} pieces a text",
        texts.len(),
        average(pieces, texts.len())
    );
    let mut out = [0.0; DIM];
    for round in 1..=ROUNDS {
        let started = now();
        let embedded = texts
            .iter()
            .cycle()
            .take(RECORDS_A_ROUND)
            .filter(|text| embedder.embed(text, &mut out))
            .count();
        let seconds = started.elapsed().as_secs_f64();
        let per_record_us = seconds * 1e6 / average(embedded, 1);
        println!(
            "round {round}: {:.0} records/s, {per_record_us:.2} us a record",
            1e6 / per_record_us
        );
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "a stopwatch of an example, no input of any result"
)]
fn now() -> Instant {
    Instant::now()
}

#[expect(clippy::cast_precision_loss, reason = "small counts, for printing")]
fn average(sum: usize, count: usize) -> f64 {
    sum as f64 / count as f64
}
