//! How does a command end when it cannot do what was asked? One line on stderr, one exit code.

use std::io::{self, Write};
use std::process::ExitCode;

use chronolith::ErrorKind;
use owo_colors::OwoColorize;

use crate::output::clean;

/// Why a command ends early.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The call is wrong: exit 2.
    Usage(String),
    /// It did not work: exit 1.
    Failed(String),
    /// Bytes on disk are damaged: exit 3.
    Damaged(String),
    /// Everything was said already; only the exit code is left.
    Reported(u8),
    /// Whoever read our output went away: nothing to say.
    PipeClosed,
}

impl Failure {
    /// Says what happened and gives the exit code.
    pub(crate) fn report(self) -> ExitCode {
        let (code, message) = match self {
            Self::Usage(message) => (2, message),
            Self::Failed(message) => (1, message),
            Self::Damaged(message) => (3, message),
            Self::Reported(code) => return ExitCode::from(code),
            Self::PipeClosed => return ExitCode::SUCCESS,
        };
        let _ = writeln!(
            anstream::stderr(),
            "{} {}",
            "error:".red().bold(),
            clean(&message)
        );
        ExitCode::from(code)
    }

    /// A failure of the system around a path.
    pub(crate) fn io(doing: &str, path: &std::path::Path, error: &io::Error) -> Self {
        Self::Failed(format!("cannot {doing} {}: {error}", path.display()))
    }
}

impl From<chronolith::Error> for Failure {
    fn from(error: chronolith::Error) -> Self {
        if let chronolith::Error::Io { source, .. } = &error
            && source.kind() == io::ErrorKind::BrokenPipe
        {
            return Self::PipeClosed;
        }
        if let chronolith::Error::Refused(refused) = error {
            return refused.into();
        }
        match error.kind() {
            ErrorKind::Damaged => Self::Damaged(error.to_string()),
            _ => Self::Failed(error.to_string()),
        }
    }
}

impl From<chronolith::Refused> for Failure {
    /// A value of the call is out of range; what is wrong with a line of a file says so itself.
    fn from(refused: chronolith::Refused) -> Self {
        Self::Usage(refused.to_string())
    }
}

impl From<io::Error> for Failure {
    /// Only output is written with `?`; everything else names its path.
    fn from(error: io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::BrokenPipe => Self::PipeClosed,
            _ => Self::Failed(format!("cannot write the output: {error}")),
        }
    }
}

impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::from(io::Error::from(error))
    }
}
