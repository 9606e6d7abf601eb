//! Which stretch of a text shows best why it was found?
//!
//! The one with most of the question in it: what different terms are worth counts first, how
//! often they stand there second, an earlier place third. The stretch is then widened to whole
//! words as far as there is room. Only texts of hits that are returned come here.

use std::collections::BTreeMap;
use std::ops::Range;

use chronolith_segments::analyze::Analyzer;
use serde::Serialize;
use unicode_segmentation::{GraphemeCursor, UnicodeSegmentation};

use super::analyse::QueryTerms;

/// Most tokens of an identifier that is looked for as a whole.
const WHOLE_TOKENS_MAX: usize = 16;

/// A stretch of a hit's text.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Snippet {
    /// The stretch as it stands in the text: no ellipsis, no markup.
    pub text: String,
    /// Its first byte in the hit's whole text.
    pub start: usize,
    /// Its end there, exclusive.
    pub end: usize,
    /// What matches, as bytes of `text`: ascending, apart from each other, at boundaries of
    /// what a reader sees as characters.
    pub highlights: Vec<Range<usize>>,
}

/// What a question's terms are worth in a snippet.
pub(crate) struct Snippets<'q> {
    analyzer: &'q Analyzer,
    terms: BTreeMap<&'q [u8], i64>,
    chars_max: usize,
}

/// A place in the text where a term stands.
struct Mark<'t> {
    range: Range<usize>,
    term: &'t [u8],
    worth: i64,
}

impl<'q> Snippets<'q> {
    /// For snippets of at most `chars_max` characters, at least 1.
    pub(crate) fn new(analyzer: &'q Analyzer, query: &'q QueryTerms, chars_max: usize) -> Self {
        let members = query.groups.iter().flat_map(|group| &group.members);
        let terms = query.terms.iter().chain(members);
        let terms = terms.map(|term| (&*term.term, term.scorer.ceiling()));
        Self::of(analyzer, terms, chars_max)
    }

    fn of(
        analyzer: &'q Analyzer,
        terms: impl Iterator<Item = (&'q [u8], i64)>,
        chars_max: usize,
    ) -> Self {
        Self {
            analyzer,
            terms: terms.collect(),
            chars_max,
        }
    }

    /// The best stretch of `text`; its beginning where no term stands in it.
    pub(crate) fn cut(&self, text: &str) -> Snippet {
        let marks = self.marks(text);
        let best = densest(text, &marks, self.chars_max);
        // Nothing, or only what is longer than a snippet: from where the first begins.
        let first = marks.first().map_or(0, |mark| mark.range.start);
        let range = widen(text, best.unwrap_or(first..first), self.chars_max);
        let inside = marks.iter().map(|mark| {
            let (from, to) = (
                mark.range.start.max(range.start),
                mark.range.end.min(range.end),
            );
            from..to
        });
        let mut highlights: Vec<Range<usize>> = Vec::new();
        for mark in inside.filter(|mark| mark.start < mark.end) {
            let (from, to) = (mark.start - range.start, mark.end - range.start);
            match highlights.last_mut() {
                Some(last) if from <= last.end => last.end = last.end.max(to),
                _ => highlights.push(from..to),
            }
        }
        Snippet {
            text: text[range.clone()].to_owned(),
            start: range.start,
            end: range.end,
            highlights,
        }
    }

    /// Every place of a term, ascending.
    fn marks(&self, text: &str) -> Vec<Mark<'_>> {
        if self.terms.is_empty() {
            return Vec::new();
        }
        let tokens = self.analyzer.tokens(text);
        let tokens: Vec<(&str, Range<usize>)> = tokens.iter().collect();
        let mut marks = Vec::new();
        for (token, range) in &tokens {
            if let Some((term, worth)) = self.terms.get_key_value(token.as_bytes()) {
                marks.push(mark(text, range.clone(), term, *worth));
            }
            self.mark_single(text, token, range, &mut marks);
        }
        self.mark_wholes(text, &tokens, &mut marks);
        marks.sort_by_key(|mark| (mark.range.start, mark.range.end));
        marks
    }

    /// One character of a Chinese or Japanese pair: a term of its own, but no token.
    fn mark_single<'s>(
        &'s self,
        text: &str,
        token: &str,
        range: &Range<usize>,
        marks: &mut Vec<Mark<'s>>,
    ) {
        let is_pair = token.chars().count() == 2 && token.chars().all(is_cjk);
        if !is_pair {
            return;
        }
        for (at, char) in text[range.clone()].char_indices() {
            let folded = self.analyzer.fold(char.encode_utf8(&mut [0; 4]));
            if let Some((term, worth)) = self.terms.get_key_value(folded.as_bytes()) {
                let from = range.start + at;
                marks.push(mark(text, from..from + char.len_utf8(), term, *worth));
            }
        }
    }

    /// Identifiers as wholes, which are terms but no tokens: any tokens without white space
    /// between them.
    fn mark_wholes<'s>(
        &'s self,
        text: &str,
        tokens: &[(&str, Range<usize>)],
        marks: &mut Vec<Mark<'s>>,
    ) {
        for (first, (_, from)) in tokens.iter().enumerate() {
            let mut end = from.end;
            for (_, next) in tokens.iter().skip(first + 1).take(WHOLE_TOKENS_MAX - 1) {
                let between = text.get(end..next.start).unwrap_or_default();
                if between.chars().any(char::is_whitespace) {
                    break;
                }
                end = end.max(next.end);
                let folded = self.analyzer.fold(&text[from.start..end]);
                if let Some((term, worth)) = self.terms.get_key_value(folded.as_bytes()) {
                    marks.push(mark(text, from.start..end, term, *worth));
                }
            }
        }
    }
}

/// Scripts whose runs are indexed as pairs of characters.
fn is_cjk(char: char) -> bool {
    matches!(char, '\u{2e80}'..='\u{312f}' | '\u{3190}'..='\u{9fff}' | '\u{f900}'..='\u{faff}' | '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3fffd}')
}

/// A mark whose ends do not part what is seen as one character.
fn mark<'t>(text: &str, range: Range<usize>, term: &'t [u8], worth: i64) -> Mark<'t> {
    let (mut start, mut end) = (range.start, range.end);
    while !is_boundary(text, start) {
        start -= 1;
    }
    while !is_boundary(text, end) {
        end += 1;
    }
    Mark {
        range: start..end,
        term,
        worth,
    }
}

/// True between two visible characters; both ends of the text are.
fn is_boundary(text: &str, at: usize) -> bool {
    let mut cursor = GraphemeCursor::new(at, text.len(), true);
    text.is_char_boundary(at) && cursor.is_boundary(text, 0).unwrap_or(true)
}

/// From the first to the last mark of the best that fit `chars_max` characters; `None` where
/// none fits.
fn densest(text: &str, marks: &[Mark<'_>], chars_max: usize) -> Option<Range<usize>> {
    let mut held: BTreeMap<&[u8], usize> = BTreeMap::new();
    let mut best: Option<((i64, usize), Range<usize>)> = None;
    let (mut worth, mut left) = (0, 0);
    // Characters from the left mark's start to the end of what was seen.
    let (mut chars, mut end) = (0, marks.first()?.range.start);
    for (right, mark) in marks.iter().enumerate() {
        if mark.range.end > end {
            chars += text[end..mark.range.end].chars().count();
            end = mark.range.end;
        }
        let count = held.entry(mark.term).or_default();
        worth += if *count == 0 { mark.worth } else { 0 };
        *count += 1;
        while chars > chars_max && left <= right {
            let gone = &marks[left];
            if let Some(count) = held.get_mut(gone.term) {
                *count -= 1;
                worth -= if *count == 0 { gone.worth } else { 0 };
            }
            left += 1;
            let next = marks.get(left).map_or(end, |next| next.range.start);
            chars = match next < end {
                true => chars - text[gone.range.start..next].chars().count(),
                false => {
                    end = next;
                    0
                }
            };
        }
        let score = (worth, right + 1 - left);
        if left <= right && best.as_ref().is_none_or(|(least, _)| score > *least) {
            best = Some((score, marks[left].range.start..end));
        }
    }
    best.map(|(_, range)| range)
}

/// Adds whole words on both sides while there is room; white space at the ends goes.
fn widen(text: &str, stretch: Range<usize>, chars_max: usize) -> Range<usize> {
    let mut left = chars_max.saturating_sub(text[stretch.clone()].chars().count());
    let (mut start, mut end) = (stretch.start, stretch.end);
    // Half of the room before, the rest behind, and what is not used there before again.
    let half = left / 2;
    let taken = words_before(&text[..start], half);
    (start, left) = (start - taken.0, left - taken.1);
    let taken = words_behind(&text[end..], left);
    (end, left) = (end + taken.0, left - taken.1);
    let taken = words_before(&text[..start], left);
    start -= taken.0;
    if start == end {
        end += characters(&text[end..], chars_max);
    }
    let found = &text[start..end];
    let blank = found.len() - found.trim_start().len();
    let start = match stretch.is_empty() {
        true => start + blank,
        false => start + blank.min(stretch.start - start),
    };
    let found = &text[stretch.end.max(start)..end.max(stretch.end)];
    let end = stretch.end.max(start) + found.trim_end().len();
    start..end
}

/// Bytes and characters of the last words that fit.
fn words_before(text: &str, chars_max: usize) -> (usize, usize) {
    fitting(text.split_word_bounds().rev(), chars_max)
}

/// Bytes and characters of the first words that fit.
fn words_behind(text: &str, chars_max: usize) -> (usize, usize) {
    fitting(text.split_word_bounds(), chars_max)
}

fn fitting<'t>(pieces: impl Iterator<Item = &'t str>, chars_max: usize) -> (usize, usize) {
    let (mut bytes, mut chars) = (0, 0);
    for piece in pieces {
        let count = piece.chars().count();
        if chars + count > chars_max {
            break;
        }
        bytes += piece.len();
        chars += count;
    }
    (bytes, chars)
}

/// Bytes of the beginning where not even one word fits: whole visible characters, or parts of
/// one that is longer than all there may be.
fn characters(text: &str, chars_max: usize) -> usize {
    match fitting(text.graphemes(true), chars_max) {
        (0, _) => text.chars().take(chars_max).map(char::len_utf8).sum(),
        (bytes, _) => bytes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn snippet(text: &str, words: &str, chars_max: usize) -> Snippet {
        let analyzer = Analyzer::default();
        let terms = analyzer.analyze_query(words);
        let terms = terms.iter().map(|(term, _)| (&**term, 10));
        Snippets::of(&analyzer, terms, chars_max).cut(text)
    }

    /// The snippet with its highlights in brackets.
    fn shown(text: &str, words: &str, chars_max: usize) -> String {
        let snippet = snippet(text, words, chars_max);
        let mut shown = snippet.text.clone();
        for highlight in snippet.highlights.iter().rev() {
            shown.insert(highlight.end, ']');
            shown.insert(highlight.start, '[');
        }
        shown
    }

    #[test]
    fn the_stretch_with_most_of_the_question_is_chosen() {
        let text = "The port is open. Nobody knows why. Later the staging proxy moved to another \
                    port, and the port was closed.";
        let found = shown(text, "staging proxy port", 50);
        assert_eq!(
            found,
            "[staging] [proxy] moved to another [port], and the [port]"
        );
        assert_eq!(
            shown("port port port staging port", "staging port", 12),
            "[port] [staging]"
        );
        assert_eq!(shown("a b a", "b", 100), "a [b] a", "all of a short text");
    }

    #[test]
    fn a_text_without_a_match_shows_its_beginning() {
        let found = snippet("nothing of the kind stands here", "staging", 12);
        assert_eq!((&*found.text, found.start), ("nothing of", 0));
        assert!(found.highlights.is_empty());
        assert_eq!(snippet("", "staging", 12).text, "");
        assert_eq!(snippet(" \n ", "staging", 12).text, "");
    }

    #[test]
    fn every_script_is_cut_where_a_reader_would() {
        let cases = [
            ("大熊猫吃竹子在四川", "熊猫", 4, "大[熊猫]吃"),
            ("大熊猫吃竹子", "猫", 6, "大熊[猫]吃竹子"),
            ("大熊猫吃竹子", "熊猫吃竹", 6, "大[熊猫吃竹]子"),
            ("le Cafe\u{301} noir", "café", 20, "le [Cafe\u{301}] noir"),
            ("ok 👩‍👩‍👧‍👦 fine", "ok", 20, "[ok] 👩‍👩‍👧‍👦 fine"),
            ("ok 👩‍👩‍👧‍👦 fine", "ok", 5, "[ok]"),
            (
                "see src/main.rs now",
                "src/main.rs",
                30,
                "see [src/main.rs] now",
            ),
            (
                "call parseHttpURL()",
                "parsehttpurl",
                30,
                "call [parseHttpURL]()",
            ),
            ("the read_file call", "read", 30, "the [read]_file call"),
            (
                "Running in Straße",
                "run strasse",
                30,
                "[Running] in [Straße]",
            ),
        ];
        for (text, words, chars_max, expected) in cases {
            assert_eq!(
                shown(text, words, chars_max),
                expected,
                "{text:?} {words:?}"
            );
        }
    }

    #[test]
    fn what_is_longer_than_a_snippet_is_cut_to_it() {
        assert_eq!(shown("abcdefghij", "abcdefghij", 4), "[abcd]");
        let marks = format!("e{}", "\u{301}".repeat(50));
        assert_eq!(snippet(&marks, "x", 7).text.chars().count(), 7);
    }

    #[test]
    fn any_cut_of_any_text_is_valid() {
        let letters = [
            "a",
            "port",
            " ",
            "\n",
            "é",
            "e\u{301}",
            "東",
            "京",
            "👩‍👩‍👧‍👦",
            "_",
            "/",
            ".",
            "ß",
            "\u{200b}",
            "안",
            "🇩🇪",
            "\u{301}",
        ];
        let mut state = 3u64;
        let mut below = |end: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from((state >> 33) % end as u64).expect("small")
        };
        for _ in 0..5000 {
            let text: String = (0..below(30))
                .map(|_| letters[below(letters.len())])
                .collect();
            let chars_max = 1 + below(20);
            let found = snippet(&text, "a port 東 é 東京 a/port strass 안", chars_max);
            assert_eq!(found.text, text[found.start..found.end], "{text:?}");
            assert!(
                found.text.chars().count() <= chars_max,
                "{text:?} {chars_max}"
            );
            let mut from = 0;
            for highlight in &found.highlights {
                assert!(from <= highlight.start && highlight.start < highlight.end);
                assert!(found.text.get(highlight.clone()).is_some(), "{text:?}");
                from = highlight.end + 1;
            }
        }
    }
}
