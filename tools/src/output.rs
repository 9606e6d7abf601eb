//! How does something reach the terminal? Colours only where they are wanted, no raw control
//! characters from stored text, lines that fit 80 columns.

use std::io::{self, BufWriter, Stdout, Write};

use comfy_table::{CellAlignment, Table, presets};
use serde::Serialize;

use crate::failure::Failure;

/// Columns that output for people keeps to.
pub(crate) const WIDTH: usize = 80;

/// Output for a person: colours are stripped where stdout is no terminal.
pub(crate) fn for_people() -> BufWriter<anstream::AutoStream<Stdout>> {
    BufWriter::new(anstream::stdout())
}

/// Output for a program: bytes as they are.
pub(crate) fn for_programs() -> BufWriter<Stdout> {
    BufWriter::new(io::stdout())
}

/// Prints one JSON document.
pub(crate) fn print_json(value: &impl Serialize) -> Result<(), Failure> {
    let mut out = for_programs();
    serde_json::to_writer_pretty(&mut out, value)?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// A table without borders: a line of heads, then rows; the first column to the left, the
/// others to the right.
pub(crate) fn table(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(head.to_vec());
    for (i, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        if i > 0 {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    table
}

/// Text that a terminal may show: control characters become visible, marks that turn the
/// direction of a line are taken out.
pub(crate) fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' | '\r' | '\t' => out.push(' '),
            '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_control() => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// Wraps words at `WIDTH` columns behind `indent` spaces; at most `lines_max` lines, the last
/// one marked where text was left out.
pub(crate) fn wrap(text: &str, indent: usize, lines_max: usize) -> Vec<String> {
    let width = WIDTH - indent;
    let mut lines: Vec<String> = vec![String::new()];
    for word in clean(text).split_whitespace() {
        for piece in pieces(word, width) {
            let line = lines.last_mut().expect("there is always a last line");
            let used = line.chars().count();
            if used == 0 {
                line.push_str(&piece);
            } else if used + 1 + piece.chars().count() <= width {
                line.push(' ');
                line.push_str(&piece);
            } else {
                lines.push(piece);
            }
        }
        if lines.len() > lines_max {
            lines.truncate(lines_max);
            if let Some(last) = lines.last_mut() {
                let keep: String = last.chars().take(width - 2).collect();
                *last = format!("{keep} …");
            }
            break;
        }
    }
    lines
        .into_iter()
        .map(|line| format!("{:indent$}{line}", ""))
        .collect()
}

/// A word cut into parts that fit a line.
fn pieces(word: &str, width: usize) -> Vec<String> {
    let chars: Vec<char> = word.chars().collect();
    chars
        .chunks(width)
        .map(|part| part.iter().collect())
        .collect()
}

/// A size for a person.
#[expect(clippy::cast_precision_loss, reason = "shown with one digit")]
pub(crate) fn bytes(count: u64) -> String {
    match count {
        0..1024 => format!("{count} B"),
        1024..1_048_576 => format!("{:.1} KiB", count as f64 / 1024.0),
        1_048_576..1_073_741_824 => format!("{:.1} MiB", count as f64 / 1_048_576.0),
        _ => format!("{:.1} GiB", count as f64 / 1_073_741_824.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stored_escapes_do_not_reach_the_terminal() {
        assert_eq!(
            clean("\u{1b}[31mred\u{7}\n\u{202e}x"),
            "\\u{1b}[31mred\\u{7} x"
        );
    }

    #[test]
    fn wrapped_lines_fit_and_say_what_is_left_out() {
        let long = "word ".repeat(100) + &"x".repeat(300);
        let lines = wrap(&long, 3, 4);
        assert_eq!(lines.len(), 4);
        assert!(lines.iter().all(|line| line.chars().count() <= WIDTH));
        assert!(lines[3].ends_with('…'));
        assert_eq!(wrap("", 2, 3), ["  "]);
    }
}
