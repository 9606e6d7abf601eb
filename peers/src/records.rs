//! What is written, and what is asked about it?
//!
//! Every engine gets the same records in the same commits, from a fixed seed: text of common
//! and rarer words, an event time, a scope. Nothing here knows an engine.

use serde::{Deserialize, Serialize};

use crate::seeded::Seeded;

/// One record: an id that is used once, a scope, an event time in µs, a text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Record {
    /// `record-00017`; sorts in the order of writing.
    pub id: String,
    /// `user/u0` to `user/u3`.
    pub scope: String,
    /// µs since 1970.
    pub time_us: i64,
    /// Words between spaces.
    pub text: String,
}

/// Records of the small store.
pub const RECORDS: usize = 200;
/// Records of one of its commits.
pub const PER_COMMIT: usize = 10;

const SCOPES: [&str; 4] = ["user/u0", "user/u1", "user/u2", "user/u3"];
const BEGIN_US: i64 = 1_740_000_000_000_000;
const HOUR_US: i64 = 3_600_000_000;
const WORDS: [&str; 40] = [
    "staging", "proxy", "port", "deploy", "pipeline", "owner", "audit", "moved", "listens",
    "breaks", "retry", "token", "budget", "window", "invoice", "garden", "meeting", "friday",
    "holiday", "ticket", "router", "backup", "restore", "latency", "query", "index", "vector",
    "cache", "memory", "agent", "prefers", "coffee", "train", "berlin", "lisbon", "flight",
    "allergy", "peanut", "birthday", "present",
];

/// The questions in words, asked of the engines that index words.
pub const QUESTIONS: [&str; 4] = ["staging", "peanut", "berlin", "memory"];

/// Record `index` of the sequence with this seed, its text at least `bytes_min` long.
pub fn record(seed: u64, index: usize, bytes_min: usize) -> Record {
    let mut seeded = Seeded::new(seed ^ (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut words = Vec::new();
    let mut bytes = 0;
    let count = 10 + seeded.below(16);
    while words.len() < count || bytes < bytes_min {
        let word = if seeded.below(8) == 0 || bytes_min > 0 {
            seeded.letters(9)
        } else {
            WORDS[seeded.below(WORDS.len())].to_owned()
        };
        bytes += word.len() + 1;
        words.push(word);
    }
    let hours = i64::try_from(index % 240).unwrap_or(0);
    Record {
        id: format!("record-{index:05}"),
        scope: SCOPES[seeded.below(SCOPES.len())].to_owned(),
        time_us: BEGIN_US + hours * HOUR_US,
        text: words.join(" "),
    }
}

/// The records of commit `commit`, `per_commit` of them.
pub fn commit(seed: u64, commit: usize, per_commit: usize, bytes_min: usize) -> Vec<Record> {
    (commit * per_commit..(commit + 1) * per_commit)
        .map(|index| record(seed, index, bytes_min))
        .collect()
}

/// A string that occurs in one record only and cannot be compressed: 24 letters.
pub fn marker(seed: u64, number: usize) -> String {
    Seeded::new(seed ^ 0x6d61_726b ^ ((number as u64) << 32)).letters(24)
}

/// The record that carries marker `number`.
pub fn marked(seed: u64, number: usize) -> Record {
    let mut record = record(seed, RECORDS + number, 0);
    record.text = format!("{} {}", record.text, marker(seed, number));
    record
}
