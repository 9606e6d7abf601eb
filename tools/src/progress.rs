//! How does long work show that it goes on? A bar on stderr, on a terminal only.

use std::time::Duration;

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
