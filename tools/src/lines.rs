//! How is a file of unknown content read line by line in bounded memory?

use std::io::{self, BufRead};

/// Longest line that is kept; the rest of a longer one is passed over.
pub(crate) const LINE_BYTES_MAX: usize = 32 << 20;

/// One line without its end.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Line<'a> {
    /// Its bytes; a carriage return before the line feed is taken off.
    Whole(&'a [u8]),
    /// Longer than the limit.
    TooLong,
}

/// Reads lines into one buffer that is used again.
#[derive(Debug)]
pub(crate) struct Lines<R> {
    input: R,
    buffer: Vec<u8>,
    bytes_max: usize,
    /// Bytes taken from the input so far.
    pub(crate) bytes_read: u64,
}

impl<R: BufRead> Lines<R> {
    pub(crate) fn new(input: R) -> Self {
        Self::with_limit(input, LINE_BYTES_MAX)
    }

    fn with_limit(input: R, bytes_max: usize) -> Self {
        Self {
            input,
            buffer: Vec::new(),
            bytes_max,
            bytes_read: 0,
        }
    }

    /// The next line, or `None` at the end.
    pub(crate) fn next(&mut self) -> io::Result<Option<Line<'_>>> {
        self.buffer.clear();
        let (mut any, mut too_long) = (false, false);
        loop {
            let chunk = match self.input.fill_buf() {
                Ok(chunk) => chunk,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(error),
            };
            if chunk.is_empty() {
                break;
            }
            any = true;
            let end = chunk.iter().position(|byte| *byte == b'\n');
            let part = &chunk[..end.unwrap_or(chunk.len())];
            if self.buffer.len() + part.len() > self.bytes_max {
                too_long = true;
                self.buffer.clear();
            }
            if !too_long {
                self.buffer.extend_from_slice(part);
            }
            let used = end.map_or(chunk.len(), |end| end + 1);
            self.input.consume(used);
            self.bytes_read += used as u64;
            if end.is_some() {
                break;
            }
        }
        if !any {
            return Ok(None);
        }
        if too_long {
            return Ok(Some(Line::TooLong));
        }
        let line = self.buffer.strip_suffix(b"\r").unwrap_or(&self.buffer);
        Ok(Some(Line::Whole(line)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_end_at_line_feeds_and_long_ones_are_passed_over() {
        let input = io::BufReader::with_capacity(3, &b"one\r\n\n12345678\nlast"[..]);
        let mut lines = Lines::with_limit(input, 5);
        assert_eq!(lines.next().expect("io"), Some(Line::Whole(b"one")));
        assert_eq!(lines.next().expect("io"), Some(Line::Whole(b"")));
        assert_eq!(lines.next().expect("io"), Some(Line::TooLong));
        assert_eq!(lines.next().expect("io"), Some(Line::Whole(b"last")));
        assert_eq!(lines.next().expect("io"), None);
        assert_eq!(lines.bytes_read, 19);
    }
}
