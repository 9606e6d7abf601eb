//! How does something reach the terminal? Colours only where they are wanted, no raw control
//! characters from stored text, lines that fit 80 columns.

use std::io::{self, BufWriter, Stdout, Write};
use std::ops::Range;

use comfy_table::{CellAlignment, Table, presets};
use owo_colors::OwoColorize;
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

/// As [`wrap`], all lines, with the bytes of `marks` (ascending, at character boundaries)
/// highlighted.
pub(crate) fn wrap_marked(text: &str, marks: &[Range<usize>], indent: usize) -> Vec<String> {
    let width = WIDTH - indent;
    let mut lines: Vec<Vec<(String, bool)>> = Vec::new();
    let mut line: Vec<(String, bool)> = Vec::new();
    for word in words_of(text, marks) {
        if !line.is_empty() && line.len() + 1 + word.len() > width {
            lines.push(std::mem::take(&mut line));
        }
        if !line.is_empty() {
            line.push((" ".into(), false));
        }
        for piece in word {
            if line.len() == width {
                lines.push(std::mem::take(&mut line));
            }
            line.push(piece);
        }
    }
    lines.push(line);
    let shown = lines.into_iter().map(|line| {
        let styled = line.chunk_by(|a, b| a.1 == b.1).map(|run| {
            let text: String = run.iter().map(|(piece, _)| piece.as_str()).collect();
            match run[0].1 {
                true => text.yellow().bold().to_string(),
                false => text,
            }
        });
        format!("{:indent$}{}", "", styled.collect::<String>())
    });
    shown.collect()
}

/// The words of a text, column by column, each with whether a mark holds it.
fn words_of(text: &str, marks: &[Range<usize>]) -> Vec<Vec<(String, bool)>> {
    let mut words: Vec<Vec<(String, bool)>> = vec![Vec::new()];
    for (at, char) in text.char_indices() {
        if char.is_whitespace() {
            words.push(Vec::new());
            continue;
        }
        let is_marked = marks.iter().any(|mark| mark.contains(&at));
        let shown = clean(char.encode_utf8(&mut [0; 4]));
        if let Some(word) = words.last_mut() {
            word.extend(shown.chars().map(|char| (char.to_string(), is_marked)));
        }
    }
    words.retain(|word| !word.is_empty());
    words
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
    fn marked_lines_fit_and_show_every_mark() {
        let text = "word ".repeat(30) + "mark\u{1b} " + &"x".repeat(100);
        let lines = wrap_marked(&text, std::slice::from_ref(&(150..154)), 3);
        assert!(lines.concat().contains("\u{1b}[1m"), "{lines:?}");
        let mut plain = lines.join("\n");
        for code in ["\u{1b}[33m", "\u{1b}[39m", "\u{1b}[1m", "\u{1b}[0m"] {
            plain = plain.replace(code, "");
        }
        assert!(plain.contains("mark\\u{1b}"), "{plain:?}");
        assert!(
            plain.lines().all(|line| line.chars().count() <= WIDTH),
            "{plain}"
        );
        assert_eq!(wrap_marked("", &[], 2), ["  "]);
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
