//! Which counted tokens does a folded chunk have?
//!
//! Words by UAX #29, then cut at apostrophes, connectors and middle punctuation (kept between digits), then at
//! case changes. For ASCII all of this is one scan over class bytes.

use unicode_segmentation::UnicodeSegmentation;

use super::chunk::Chunk;
use super::class::{
    ALNUM, APOS, CJK, COLON, COMMA, CONNECT, DIGIT, DOT, LOWER, MARK, UPPER, WORD, after, before,
    bit, is,
};

/// A counted token: a span of the folded chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Part {
    pub(super) start: usize,
    pub(super) end: usize,
    /// Came from a word with a case change inside.
    pub(super) camel: bool,
    /// A CJK bigram or a lone CJK character: never stemmed.
    pub(super) cjk: bool,
}

/// A longer word is no `CamelCase` but a blob; cutting it would only inflate the length.
const CAMEL_BYTES_MAX: usize = 64;
/// From here on a word of hex digits is a hash, whatever its case.
const HASH_BYTES_MIN: usize = 7;

/// Appends the tokens of an ASCII chunk.
pub(super) fn push_ascii(chunk: &Chunk, parts: &mut Vec<Part>) {
    let classes = &chunk.classes;
    let mut at = 0;
    while at < classes.len() {
        if !is(classes[at], ALNUM) {
            at += 1;
            continue;
        }
        let start = at;
        at += 1;
        while at < classes.len() && (is(classes[at], ALNUM) || joins_digits(classes, at)) {
            at += 1;
        }
        push_word(chunk, start, at, parts);
    }
}

/// Appends the tokens of any chunk; `singles` gets the characters of CJK runs longer than one.
pub(super) fn push_any(chunk: &Chunk, parts: &mut Vec<Part>, mut single: impl FnMut(&str)) {
    let classes = &chunk.classes;
    let mut at = 0;
    while at < classes.len() {
        let start = at;
        let cjk = classes[at] == CJK;
        while at < classes.len() && (classes[at] == CJK) == cjk {
            at = after(classes, at);
        }
        if cjk {
            push_bigrams(chunk, start, at, parts, &mut single);
        } else {
            push_words(chunk, start, at, parts);
        }
    }
}

fn push_bigrams(
    chunk: &Chunk,
    start: usize,
    end: usize,
    parts: &mut Vec<Part>,
    single: &mut impl FnMut(&str),
) {
    let classes = &chunk.classes;
    let part = |start, end| Part {
        start,
        end,
        camel: false,
        cjk: true,
    };
    let mut first = start;
    let mut second = after(classes, start);
    if second == end {
        parts.push(part(start, end));
        return;
    }
    while second < end {
        let next = after(classes, second);
        single(&chunk.text[first..second]);
        parts.push(part(first, next));
        (first, second) = (second, next);
    }
    single(&chunk.text[first..end]);
}

fn push_words(chunk: &Chunk, start: usize, end: usize, parts: &mut Vec<Part>) {
    let classes = &chunk.classes;
    for (offset, word) in chunk.text[start..end].unicode_word_indices() {
        let mut piece = start + offset;
        let word_end = piece + word.len();
        let mut at = piece;
        while at < word_end {
            let next = after(classes, at);
            if cuts(chunk, at) {
                push_word(chunk, piece, at, parts);
                piece = next;
            }
            at = next;
        }
        push_word(chunk, piece, word_end, parts);
    }
}

/// Whether the character at `at`, inside a UAX #29 word, parts it.
fn cuts(chunk: &Chunk, at: usize) -> bool {
    match chunk.classes[at] {
        APOS | CONNECT | COLON => true,
        DOT | COMMA => !joins_digits(&chunk.classes, at),
        _ => chunk.text.as_bytes()[at] == b';',
    }
}

/// `3.14`, `1,000`, `1.2.3`: a dot or comma between digits belongs to the number.
fn joins_digits(classes: &[u8], at: usize) -> bool {
    is(classes[at], bit(DOT) | bit(COMMA))
        && classes.get(at + 1) == Some(&DIGIT)
        && before(classes, at).is_some_and(|b| classes[b] == DIGIT)
}

fn push_word(chunk: &Chunk, mut start: usize, end: usize, parts: &mut Vec<Part>) {
    let classes = &chunk.classes;
    while start < end && classes[start] == MARK {
        start = after(classes, start); // its base was cut away
    }
    if start == end || is_possessive(chunk, start, end) {
        return;
    }
    if is_dotted_version(chunk, start, end) {
        start += 1;
    }
    let first = parts.len();
    let mut from = start;
    if may_be_camel(chunk, start, end) {
        let mut at = after(classes, start);
        while at < end {
            if is_case_change(chunk, at, end) {
                parts.push(Part {
                    start: from,
                    end: at,
                    camel: true,
                    cjk: false,
                });
                from = at;
            }
            at = after(classes, at);
        }
    }
    let camel = parts.len() > first;
    parts.push(Part {
        start: from,
        end,
        camel,
        cjk: false,
    });
}

/// The `s` of `dog's`: dropped.
fn is_possessive(chunk: &Chunk, start: usize, end: usize) -> bool {
    let classes = &chunk.classes;
    let is_at = |at: Option<usize>, set| at.is_some_and(|at| is(classes[at], set));
    let apostrophe = before(classes, start);
    &chunk.text[start..end] == "s"
        && is_at(apostrophe, bit(APOS))
        && is_at(
            apostrophe.and_then(|a| before(classes, a)),
            ALNUM | bit(MARK),
        )
        && classes.get(end).is_none_or(|c| !is(*c, WORD))
}

/// `v1.2.3`: its part is `1.2.3`.
fn is_dotted_version(chunk: &Chunk, start: usize, end: usize) -> bool {
    let text = &chunk.text.as_bytes()[start..end];
    text[0] == b'v' && chunk.classes.get(start + 1) == Some(&DIGIT) && text.contains(&b'.')
}

fn may_be_camel(chunk: &Chunk, start: usize, end: usize) -> bool {
    let text = &chunk.text.as_bytes()[start..end];
    chunk.present & bit(UPPER) != 0
        && text.len() <= CAMEL_BYTES_MAX
        && !(text.len() >= HASH_BYTES_MIN
            && text.iter().all(u8::is_ascii_hexdigit)
            && text.iter().any(u8::is_ascii_digit))
}

/// Whether a new part starts at `at`: `camel|Case`, `HTTP|Server`, `phase2|Go`, but not `API|s`.
fn is_case_change(chunk: &Chunk, at: usize, end: usize) -> bool {
    let classes = &chunk.classes;
    if classes[at] != UPPER {
        return false;
    }
    let Some(last) = before_marks(classes, at) else {
        return false;
    };
    let next = after_marks(classes, at);
    let next_lower = next < end && classes[next] == LOWER;
    match classes[last] {
        LOWER => true,
        DIGIT => next_lower,
        UPPER => {
            let past = after_marks(classes, next);
            let plural = next_lower
                && chunk.text.as_bytes()[next] == b's'
                && (past >= end || classes[past] != LOWER);
            next_lower && !plural
        }
        _ => false,
    }
}

fn before_marks(classes: &[u8], at: usize) -> Option<usize> {
    let mut last = before(classes, at);
    while let Some(mark) = last.filter(|l| classes[*l] == MARK) {
        last = before(classes, mark);
    }
    last
}

fn after_marks(classes: &[u8], at: usize) -> usize {
    if at >= classes.len() {
        return at;
    }
    let mut next = after(classes, at);
    while classes.get(next) == Some(&MARK) {
        next = after(classes, next);
    }
    next
}
