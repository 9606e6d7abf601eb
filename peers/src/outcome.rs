//! What did a damaged or cut store do? One outcome for each trial, the worst that was seen.

use crate::ask::{ABSENT, Reply, expected_get};
use crate::records::Record;
use crate::runner::{Ended, Run};

/// The end of one trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Outcome {
    /// Every answer as from the undamaged store.
    Equal,
    /// At least one named error; every other answer as from the undamaged store.
    NamedError,
    /// The answers as before the last commit, and the open said through its API that
    /// acknowledged writes may be missing.
    Reported,
    /// An answer that is not the undamaged one, without an error.
    SilentlyWrong,
    /// Acknowledged commits are missing, and nothing says so (after a power cut).
    Lost,
    /// A part of a commit, or a record that nobody wrote (after a power cut).
    Torn,
    /// A thread of the engine panicked.
    Panic,
    /// The process ended by a signal or for no reason it gave.
    Abort,
    /// Over its time.
    Hang,
    /// It asked for more memory than the cap.
    OverCap,
}

impl Outcome {
    /// The row of the table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Equal => "equal",
            Self::NamedError => "named error",
            Self::Reported => "loss reported by the open",
            Self::SilentlyWrong => "SILENTLY WRONG",
            Self::Lost => "ACKNOWLEDGED LOST",
            Self::Torn => "PART OF A COMMIT",
            Self::Panic => "panic",
            Self::Abort => "abort or signal",
            Self::Hang => "hang",
            Self::OverCap => "allocation over the cap",
        }
    }

    /// Whether Chronolith promises that this never happens.
    pub fn is_violation(self) -> bool {
        self > Self::Reported
    }
}

/// An outcome and, where it is not `Equal`, what was seen.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// The outcome.
    pub outcome: Outcome,
    /// One line.
    pub seen: String,
}

impl Verdict {
    /// A verdict.
    pub fn new(outcome: Outcome, seen: impl Into<String>) -> Self {
        Self {
            outcome,
            seen: seen.into(),
        }
    }
}

fn wants_memory(text: &str) -> bool {
    [
        "memory allocation of",
        "out of memory",
        "Cannot allocate memory",
    ]
    .iter()
    .any(|sign| text.contains(sign))
}

/// The reply of a process that did its work; otherwise how it failed.
pub fn reply_of(run: &Run) -> Result<Reply, Verdict> {
    let first = |text: &str| text.lines().next().unwrap_or("").to_owned();
    if wants_memory(&run.stderr) {
        return Err(Verdict::new(Outcome::OverCap, first(&run.stderr)));
    }
    if run.ended == Ended::Hung {
        return Err(Verdict::new(Outcome::Hang, "over its time"));
    }
    if run.ended == Ended::Exit(101) || run.stderr.contains("panicked at") {
        let seen = run.stderr.lines().take(2).collect::<Vec<_>>().join(" ");
        return Err(Verdict::new(Outcome::Panic, seen));
    }
    let reply = (run.ended == Ended::Exit(0))
        .then(|| serde_json::from_str::<Reply>(&run.stdout).ok())
        .flatten();
    let reply = reply.ok_or_else(|| Verdict::new(Outcome::Abort, run.describe()))?;
    match reply.first_error() {
        Some(error) if wants_memory(&error) => Err(Verdict::new(Outcome::OverCap, error)),
        _ => Ok(reply),
    }
}

/// Judges the answers of a damaged store beside those of the undamaged one.
pub fn judge_damage(run: &Run, whole: &Reply, records: &[Record], per_commit: usize) -> Verdict {
    let reply = match reply_of(run) {
        Ok(reply) => reply,
        Err(verdict) => return verdict,
    };
    if let Some(refused) = &reply.refused {
        return Verdict::new(Outcome::NamedError, format!("open: {refused}"));
    }
    let wrong = reply
        .answers
        .iter()
        .zip(&whole.answers)
        .find(|(seen, right)| seen.result.is_ok() && seen.result != right.result);
    match (wrong, reply.first_error()) {
        (None, None) => Verdict::new(Outcome::Equal, ""),
        (None, Some(error)) => Verdict::new(Outcome::NamedError, error),
        (Some((seen, _)), _) => match &reply.told {
            Some(told) if lost_the_last(&reply, records, per_commit) => {
                Verdict::new(Outcome::Reported, told)
            }
            _ => Verdict::new(Outcome::SilentlyWrong, seen.question.clone()),
        },
    }
}

/// Whether all commits but the last are there whole, and nothing else is: what an engine may
/// report instead of an error, because nothing that came later vouches for the last one.
fn lost_the_last(reply: &Reply, records: &[Record], per_commit: usize) -> bool {
    let present = present_prefix(reply, records, per_commit);
    present.is_some_and(|present| (present + 1) * per_commit == records.len())
}

/// How many commits are there whole, where they are a prefix of all and nothing else is there.
fn present_prefix(reply: &Reply, records: &[Record], per_commit: usize) -> Option<usize> {
    let there: Vec<bool> = (0..records.len())
        .map(|index| match reply.got(index)? {
            Ok(value) if value == ABSENT => Some(false),
            Ok(value) if *value == expected_get(&records[index]) => Some(true),
            _ => None,
        })
        .collect::<Option<_>>()?;
    let present = there.iter().take_while(|there| **there).count();
    let clean = there[present..].iter().all(|there| !there) && present % per_commit == 0;
    (clean && counts_agree(reply, records, &there)).then_some(present / per_commit)
}

/// Whether list and count say what the single records say.
fn counts_agree(reply: &Reply, records: &[Record], there: &[bool]) -> bool {
    let ids: Vec<&str> = records
        .iter()
        .zip(there)
        .filter(|(_, there)| **there)
        .map(|(record, _)| record.id.as_str())
        .collect();
    let right = [
        ("list", serde_json::to_string(&ids).unwrap_or_default()),
        ("count", ids.len().to_string()),
    ];
    right.iter().all(|(question, value)| {
        reply
            .answers
            .iter()
            .any(|answer| answer.question == *question && answer.result.as_ref() == Ok(value))
    })
}

/// Judges a store after a power cut or a full disk: commits for which `acknowledged` holds must
/// be there whole, any other may be there whole or not at all.
pub fn judge_kept(
    run: &Run,
    records: &[Record],
    per_commit: usize,
    acknowledged: &dyn Fn(usize) -> bool,
) -> Verdict {
    let reply = match reply_of(run) {
        Ok(reply) => reply,
        Err(verdict) => return verdict,
    };
    if let Some(error) = reply.first_error() {
        return Verdict::new(Outcome::NamedError, error);
    }
    let mut there = Vec::new();
    for (number, commit) in records.chunks(per_commit).enumerate() {
        let mut present = 0;
        for (at, record) in commit.iter().enumerate() {
            match reply.got(number * per_commit + at) {
                Some(Ok(value)) if *value == expected_get(record) => {
                    present += 1;
                    there.push(true);
                }
                Some(Ok(value)) if value == ABSENT => there.push(false),
                _ => return Verdict::new(Outcome::Torn, format!("{} is another", record.id)),
            }
        }
        if present < commit.len() && acknowledged(number) {
            return Verdict::new(Outcome::Lost, format!("commit {number}"));
        }
        if present != 0 && present != commit.len() {
            return Verdict::new(
                Outcome::Torn,
                format!("{present} records of commit {number}"),
            );
        }
    }
    if counts_agree(&reply, records, &there) {
        Verdict::new(Outcome::Equal, "")
    } else {
        Verdict::new(Outcome::Torn, "list or count differ from the records")
    }
}
