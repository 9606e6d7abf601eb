//! What does `plain-en` make of a text? The analyzer behind the published `bm25-stem` figures, nothing more.

use std::ops::Range;

use super::TERM_BYTES_MAX;
use super::fold::cut;
use super::stem::{Language, StemCache};
use super::terms::Sink;

/// Lower case by character, cut at what is neither alphanumeric nor `_`, Snowball English on every token.
pub(super) fn run(
    text: &str,
    word: &mut String,
    stem: &mut String,
    cache: &mut StemCache,
    sink: &mut impl Sink,
) {
    word.clear();
    let mut range = 0..0;
    for (at, c) in text.char_indices() {
        let end = at + c.len_utf8();
        for l in c.to_lowercase() {
            if l.is_alphanumeric() || l == '_' {
                if word.is_empty() {
                    range.start = at;
                }
                word.push(l);
                range.end = end;
            } else {
                flush(word, &range, stem, cache, sink);
            }
        }
    }
    flush(word, &range, stem, cache, sink);
}

fn flush(
    word: &mut String,
    range: &Range<usize>,
    stem: &mut String,
    cache: &mut StemCache,
    sink: &mut impl Sink,
) {
    if word.is_empty() {
        return;
    }
    stem.clear();
    cache.push_stem(Language::ENGLISH, cut(word, TERM_BYTES_MAX), stem);
    sink.counted(cut(stem, TERM_BYTES_MAX), range.clone(), false);
    word.clear();
}
