//! Which spans of a chunk are identifiers, whose whole form is worth a term of its own?
//!
//! Two levels, each at most one span a word: *compounds* (`snake_case`, `CamelCase`) and the longer *glued*
//! forms around them (paths, URLs, addresses, host and file names, `a::b`, and what joins a digit with `-`,
//! `:`, `+` or `#`: error codes, versions, dates, UUIDs). Spans start and end with a word character.

use std::ops::Range;

use super::chunk::Chunk;
use super::class::{
    ALNUM, APOS, AT, COLON, COMMA, CONNECT, CONT, DASH, DIGIT, DOT, GLUE, LOWER, PLUS, SLASH,
    UPPER, WORD, after, before, bit, is,
};
use super::words::Part;

/// Punctuation that a URL may hold besides word characters and glue.
const URL_EXTRA: &[u8] = b"?&=%~[]()!$*;";

/// Whether the chunk can hold an identifier at all.
pub(super) fn possible(chunk: &Chunk, parts: &[Part]) -> bool {
    chunk.present & (GLUE | bit(CONNECT)) != 0 || parts.iter().any(|p| p.camel)
}

/// Calls `emit` with each span of an identifier that differs from its only part.
pub(super) fn find(chunk: &Chunk, parts: &[Part], mut emit: impl FnMut(Range<usize>)) {
    let mut counter = PartCounter { parts, next: 0 };
    compounds(chunk, |span, connected| {
        let (count, camel) = counter.count(&span);
        if count > 0 && (camel || connected) && !(count == 1 && counter.is_last_part(&span)) {
            emit(span);
        }
    });
    let mut counter = PartCounter { parts, next: 0 };
    glued(chunk, |span| {
        let (count, _) = counter.count(&span);
        if count > 0 && !(count == 1 && counter.is_last_part(&span)) {
            emit(span);
        }
    });
}

/// Counts parts inside spans that come in ascending order.
struct PartCounter<'a> {
    parts: &'a [Part],
    next: usize,
}

impl PartCounter<'_> {
    fn count(&mut self, span: &Range<usize>) -> (usize, bool) {
        while self
            .parts
            .get(self.next)
            .is_some_and(|p| p.start < span.start)
        {
            self.next += 1;
        }
        let first = self.next;
        let mut camel = false;
        while let Some(part) = self.parts.get(self.next).filter(|p| p.end <= span.end) {
            camel |= part.camel;
            self.next += 1;
        }
        (self.next - first, camel)
    }

    fn is_last_part(&self, span: &Range<usize>) -> bool {
        let last = self.next.checked_sub(1).and_then(|i| self.parts.get(i));
        last.is_some_and(|p| p.start == span.start && p.end == span.end)
    }
}

/// Maximal runs of word characters, and whether a connector is in them.
fn compounds(chunk: &Chunk, mut emit: impl FnMut(Range<usize>, bool)) {
    let classes = &chunk.classes;
    let mut at = 0;
    while at < classes.len() {
        if !is(classes[at], WORD) {
            at += 1;
            continue;
        }
        let start = at;
        let mut connected = false;
        while at < classes.len() && is(classes[at], WORD | bit(CONT)) {
            connected |= classes[at] == CONNECT;
            at += 1;
        }
        emit(start..at, connected);
    }
}

/// Maximal runs of word characters and glue that qualify as identifiers, trimmed; URLs whole.
fn glued(chunk: &Chunk, mut emit: impl FnMut(Range<usize>)) {
    let classes = &chunk.classes;
    let mut start = 0;
    while start < classes.len() {
        if !is(classes[start], WORD | GLUE) {
            start += 1;
            continue;
        }
        let mut at = start;
        let mut scheme = None;
        while at < classes.len() {
            if classes[at] == COLON && chunk.text.as_bytes()[at..].starts_with(b"://") {
                scheme = scheme_start(chunk, start, at);
            }
            if scheme.is_some() || !goes_on(classes, start, at) {
                break;
            }
            at += 1;
        }
        let before_end = scheme.unwrap_or(at);
        if let Some(span) = trim(classes, start, before_end)
            && qualifies(&classes[span.clone()])
        {
            emit(span);
        }
        if let Some(scheme) = scheme {
            at = url_end(chunk, at + 3);
            if let Some(span) = trim(classes, scheme, at) {
                emit(span);
            }
        }
        start = at.max(start + 1);
    }
}

/// Whether the run that began at `start` takes in the byte at `at`.
fn goes_on(classes: &[u8], start: usize, at: usize) -> bool {
    let next = classes.get(at + 1);
    match classes[at] {
        // Two in a row are prose: `wait...what`, `so--well`.
        DOT | DASH => next != Some(&classes[at]) && (at == start || classes[at - 1] != classes[at]),
        COLON => {
            let last = before(classes, at).filter(|b| *b >= start);
            let last_class = last.map(|l| classes[l]);
            let drive = last == Some(start)
                && last_class.is_some_and(|c| is(c, bit(UPPER) | bit(LOWER)))
                && next == Some(&SLASH);
            let time = last_class == Some(DIGIT) && next == Some(&DIGIT);
            drive || time || next == Some(&COLON) || last_class == Some(COLON)
        }
        class => is(class, WORD | GLUE | bit(CONT)),
    }
}

/// Start of the scheme that ends before the `:` at `colon`.
fn scheme_start(chunk: &Chunk, start: usize, colon: usize) -> Option<usize> {
    let text = &chunk.text.as_bytes()[start..colon];
    let len = text
        .iter()
        .rev()
        .take_while(|b| b.is_ascii_alphanumeric() || b"+-.".contains(b))
        .count();
    let scheme = &text[text.len() - len..];
    let skipped = scheme.iter().position(u8::is_ascii_alphabetic)?;
    Some(colon - len + skipped)
}

fn url_end(chunk: &Chunk, from: usize) -> usize {
    let bytes = chunk.text.as_bytes();
    let mut at = from;
    while at < bytes.len() {
        let class = chunk.classes[at];
        let inside = is(
            class,
            WORD | bit(DASH) | bit(DOT) | bit(COLON) | bit(AT) | bit(PLUS) | bit(COMMA),
        );
        if !inside && bytes[at] != b'/' && !URL_EXTRA.contains(&bytes[at]) {
            return at;
        }
        debug_assert_ne!(class, APOS);
        at = after(&chunk.classes, at);
    }
    at
}

/// `start..end` without what is no word character at both ends.
fn trim(classes: &[u8], start: usize, end: usize) -> Option<Range<usize>> {
    let from = start + classes[start..end].iter().position(|c| is(*c, WORD))?;
    let last = from + classes[from..end].iter().rposition(|c| is(*c, WORD))?;
    Some(from..after(classes, last))
}

/// Whether a trimmed run is an identifier beyond a compound.
fn qualifies(classes: &[u8]) -> bool {
    let present = classes.iter().fold(0, |set, c| set | bit(*c));
    let strong = bit(SLASH) | bit(AT) | bit(DOT) | bit(COLON);
    let weak = bit(DASH) | bit(PLUS);
    let marked = bit(DIGIT) | bit(CONNECT);
    present & ALNUM != 0
        && (present & strong != 0 || (present & weak != 0 && present & marked != 0))
}
