//! How does long work show that it goes on? A bar on stderr, on a terminal only.

use std::time::Duration;

use chronolith::{BackupProgress, BackupStage};
use indicatif::{ProgressBar, ProgressStyle};

/// A bar that counts to `length`; invisible where stderr is no terminal.
pub(crate) fn bar(length: u64, doing: &'static str) -> ProgressBar {
    let bar = ProgressBar::new(length);
    if let Ok(style) = ProgressStyle::with_template("{msg:<10} {bar:32} {percent:>3}% {eta}") {
        bar.set_style(style);
    }
    bar.set_message(doing);
    bar
}

/// A spinner for work of unknown length.
pub(crate) fn spinner(doing: &'static str) -> ProgressBar {
    let spinner = ProgressBar::new_spinner();
    spinner.set_message(doing);
    spinner.enable_steady_tick(Duration::from_millis(120));
    spinner
}

/// A bar for work in stages; [`show`] moves it.
pub(crate) fn stages() -> ProgressBar {
    bar(0, "copying")
}

/// Moves the bar to where a backup or restore is.
pub(crate) fn show(bar: &ProgressBar, step: &BackupProgress) {
    bar.set_message(match step.stage {
        BackupStage::Check => "verifying",
        _ => "copying",
    });
    bar.set_length(step.bytes_total);
    bar.set_position(step.bytes_done.min(step.bytes_total));
}
