//! When are two spellings of a character the same? Normalisation, case fold, marks and scripts.
//!
//! Character facts only; nothing here knows words. All tables come from the standard library and
//! `unicode-normalization`; a newer Unicode adds characters, it does not move assigned ones.

use std::iter::once;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::{
    canonical_combining_class, decompose_canonical, decompose_compatible, is_combining_mark,
};
use unicode_normalization::{IsNormalized, is_nfkc_quick};

/// Characters that have no look of their own (`Default_Ignorable_Code_Point`): zero-width spaces and
/// joiners, soft hyphens, bidi controls, variation selectors, byte order marks, fillers, tags.
pub(super) fn is_ignorable(c: char) -> bool {
    matches!(c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
        | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}'
        | '\u{ffa0}' | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}' | '\u{e0000}'..='\u{e0fff}')
}

/// What ends a chunk: white space and control characters, which no word and no identifier contains.
pub(super) fn is_gap(c: char) -> bool {
    c.is_whitespace() || c.is_control()
}

/// Scripts written without spaces whose runs become bigrams: Han, Hiragana, Katakana (after NFKC).
/// Hangul is written with spaces: its words are words.
pub(super) fn is_cjk(c: char) -> bool {
    matches!(c,
        '\u{2e80}'..='\u{2fdf}' | '\u{3005}' | '\u{3007}' | '\u{3021}'..='\u{3029}'
        | '\u{3031}'..='\u{3035}' | '\u{3038}'..='\u{303c}' | '\u{3041}'..='\u{3096}'
        | '\u{309d}'..='\u{309f}' | '\u{30a1}'..='\u{30fa}' | '\u{30fc}'..='\u{30ff}'
        | '\u{31f0}'..='\u{31ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{f900}'..='\u{faff}' | '\u{1aff0}'..='\u{1b16f}' | '\u{20000}'..='\u{3fffd}')
}

/// Straight, curly and modifier apostrophes.
pub(super) fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2018}' | '\u{2019}' | '\u{2bc}' | '\u{ff07}')
}

/// `_` and its kin (general category Pc).
pub(super) fn is_connector(c: char) -> bool {
    matches!(
        c,
        '_' | '\u{203f}' | '\u{2040}' | '\u{2054}' | '\u{fe33}' | '\u{fe34}' | '\u{fe4d}'
            ..='\u{fe4f}' | '\u{ff3f}'
    )
}

/// Full case folding of one character, without context.
///
/// Lower case by character (so no final-sigma context), then `ß` and `ẞ` to `ss` and `ς` to `σ`. `İ` becomes
/// `i` and U+0307, which goes with the other marks; `ı` stays itself, as in Unicode's default folding.
pub(super) fn fold_char(c: char) -> impl Iterator<Item = char> {
    c.to_lowercase().flat_map(|l| {
        let (first, second) = match l {
            'ß' => ('s', Some('s')),
            'ς' => ('σ', None),
            other => (other, None),
        };
        once(first).chain(second)
    })
}

/// Whether no normalisation rule joins `c` to what stands before it, so that a text may be cut there and
/// normalised piece by piece.
pub(super) fn starts_segment(c: char) -> bool {
    if c.is_ascii() {
        return true;
    }
    let mut first = None;
    decompose_compatible(c, |d| first = first.or(Some(d)));
    first.is_none_or(|d| {
        canonical_combining_class(d) == 0 && is_nfkc_quick(once(d)) == IsNormalized::Yes
    })
}

/// Whether a letter is upper case, by its base: `ᾉ`, which Unicode calls title case, is.
fn is_upper(c: char) -> bool {
    let mut base = None;
    decompose_canonical(c, |d| base = base.or(Some(d)));
    base.is_some_and(char::is_uppercase)
}

/// Appends NFKC, case fold, NFKC of one segment, ignorables dropped; to `uppers`, for each character that is no
/// mark, whether it was upper case after the first NFKC.
///
/// The second NFKC keeps those characters one for one: folding touches no script that composes letters.
pub(super) fn push_folded(segment: &str, out: &mut String, uppers: &mut Vec<bool>) {
    let cased = segment.chars().filter(|c| !is_ignorable(*c)).nfkc();
    let folded = cased.flat_map(|c| {
        let upper = is_upper(c);
        fold_char(c).map(move |l| (l, upper))
    });
    let noted = folded.map(|(l, upper)| {
        if !is_combining_mark(l) {
            uppers.push(upper);
        }
        l
    });
    out.extend(noted.nfkc());
}

/// Whether combining marks on this base carry no meaning for search: Latin, Greek, Cyrillic letters.
pub(super) fn loses_marks(base: char) -> bool {
    base.is_alphabetic()
        && matches!(base,
            'A'..='Z' | 'a'..='z' | '\u{aa}'..='\u{2af}' | '\u{370}'..='\u{52f}'
            | '\u{1c80}'..='\u{1c8f}' | '\u{1d00}'..='\u{1dbf}' | '\u{1e00}'..='\u{1fff}'
            | '\u{2c60}'..='\u{2c7f}' | '\u{a640}'..='\u{a69f}' | '\u{a720}'..='\u{a7ff}'
            | '\u{ab30}'..='\u{ab6f}')
}

/// Appends `text` without the combining marks that follow Latin, Greek or Cyrillic bases, composed again.
pub(super) fn push_stripped(text: &str, out: &mut String) {
    if text.is_ascii() {
        out.push_str(text);
        return;
    }
    let mut drops = false;
    let kept = text.nfd().filter(|c| {
        if is_combining_mark(*c) {
            return !drops;
        }
        drops = loses_marks(*c);
        true
    });
    out.extend(kept.nfc());
}

/// The longest prefix of at most `bytes_max` bytes that ends at a character boundary.
pub(super) fn cut(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
