//! The `chronolith` command: everything a person does to a store.
//!
//! ```text
//! argv -> cli (clap) -> commands::* -> chronolith (the engine) -> output -> stdout, exit code
//! ```
//!
//! * `cli`: the flags and the help · `commands`: one module a verb · `failure`: exit codes
//! * `interchange`: JSON lines to records and back · `lines`: bounded reading of lines
//! * `npy`: vectors in files · `metrics`: what `eval` computes · `times`: instants and durations
//! * `hits`: an answer for a person · `output`, `progress`: the terminal · `files`: paths
//!
//! Exit codes: 0 ok, 1 error, 2 usage, 3 damage found.

mod cli;
mod commands;
mod failure;
mod files;
mod hits;
mod interchange;
mod lines;
mod metrics;
mod npy;
mod output;
mod progress;
mod times;

use std::process::ExitCode;

use clap::Parser;

fn main() -> ExitCode {
    let cli = match cli::Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version come here too; a closed pipe is no failure of ours.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { 2 } else { 0 });
        }
    };
    match commands::run(cli.command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(),
    }
}
