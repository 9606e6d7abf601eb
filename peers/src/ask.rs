//! What does a store answer? Fixed questions, each with its own result, so that one error does
//! not hide a wrong answer beside it.

use serde::{Deserialize, Serialize};

use crate::engine::{Failure, Handle};
use crate::records::{QUESTIONS, Record};

/// One question and what came back: a value as JSON, or the text of a named error.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Answer {
    /// `get record-00017`, `list`, `count`, `search peanut`, `close`.
    pub question: String,
    /// The value, or the error.
    pub result: Result<String, String>,
}

/// Everything that one process learned about a store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reply {
    /// Why the store could not be opened.
    pub refused: Option<String>,
    /// What the open reported as lost, through the API.
    pub told: Option<String>,
    /// The answers, in the order of the questions.
    pub answers: Vec<Answer>,
}

impl Reply {
    /// A store that could not be opened.
    pub fn refused(error: &Failure) -> Self {
        Self {
            refused: Some(error.to_string()),
            told: None,
            answers: Vec::new(),
        }
    }

    /// The answer to `get` of record `index`.
    pub fn got(&self, index: usize) -> Option<&Result<String, String>> {
        self.answers.get(index).map(|answer| &answer.result)
    }

    /// The first named error, with its question.
    pub fn first_error(&self) -> Option<String> {
        if let Some(refused) = &self.refused {
            return Some(format!("open: {refused}"));
        }
        self.answers.iter().find_map(|answer| {
            let error = answer.result.as_ref().err()?;
            Some(format!("{}: {error}", answer.question))
        })
    }
}

/// What `get` must answer for this record.
pub fn expected_get(record: &Record) -> String {
    serde_json::to_string(&Some(record)).unwrap_or_default()
}

/// What `get` answers where there is no record.
pub const ABSENT: &str = "null";

/// Asks for every one of `records` by id, then the list, the count and, with `search`, the
/// words; then closes the store. `records[i]` is answer `i`.
pub fn ask(mut handle: Box<dyn Handle>, records: &[Record], search: bool) -> Reply {
    let told = handle.told();
    let mut answers = Vec::new();
    let mut note = |question: String, result: Result<String, Failure>| {
        answers.push(Answer {
            question,
            result: result.map_err(|error| error.to_string()),
        });
    };
    for record in records {
        let got = handle.get(&record.scope, &record.id);
        note(format!("get {}", record.id), as_json(got));
    }
    note("list".into(), as_json(handle.list()));
    note("count".into(), as_json(handle.count()));
    for word in QUESTIONS.iter().filter(|_| search) {
        note(format!("search {word}"), as_json(handle.search(word)));
    }
    note("close".into(), as_json(handle.close()));
    Reply {
        refused: None,
        told,
        answers,
    }
}

fn as_json<T: Serialize>(value: Result<T, Failure>) -> Result<String, Failure> {
    Ok(serde_json::to_string(&value?)?)
}
