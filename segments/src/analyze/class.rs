//! What can a character of a folded chunk do? One class byte beside every text byte.
//!
//! Case is lost by folding, so the class remembers it: the identifier rules look at classes, the terms are
//! made of the folded text.

use unicode_normalization::char::is_combining_mark;

use super::fold::{is_apostrophe, is_cjk, is_connector};

/// A byte inside a character; the class is on the character's first byte.
pub(super) const CONT: u8 = 0;
/// Punctuation and symbols without a role.
pub(super) const OTHER: u8 = 1;
/// A letter that was upper case before folding.
pub(super) const UPPER: u8 = 2;
/// Any other letter, also of a script without case.
pub(super) const LOWER: u8 = 3;
/// A character with a numeric value.
pub(super) const DIGIT: u8 = 4;
/// A combining mark.
pub(super) const MARK: u8 = 5;
/// `_` and its kin.
pub(super) const CONNECT: u8 = 6;
/// `-`
pub(super) const DASH: u8 = 7;
/// `.`
pub(super) const DOT: u8 = 8;
/// `/` and `\`
pub(super) const SLASH: u8 = 9;
/// `:`
pub(super) const COLON: u8 = 10;
/// `@`
pub(super) const AT: u8 = 11;
/// `+` and `#`
pub(super) const PLUS: u8 = 12;
/// `,`
pub(super) const COMMA: u8 = 13;
/// Apostrophes.
pub(super) const APOS: u8 = 14;
/// Han, Hiragana, Katakana.
pub(super) const CJK: u8 = 15;

/// A set of classes as bits.
pub(super) const fn bit(class: u8) -> u16 {
    1 << class
}

/// Letters and digits.
pub(super) const ALNUM: u16 = bit(UPPER) | bit(LOWER) | bit(DIGIT);
/// What a compound such as `snake_case` is made of.
pub(super) const WORD: u16 = ALNUM | bit(MARK) | bit(CONNECT);
/// What may join words inside one identifier.
pub(super) const GLUE: u16 = bit(DASH) | bit(DOT) | bit(SLASH) | bit(COLON) | bit(AT) | bit(PLUS);

/// Whether `class` is in `set`.
pub(super) const fn is(class: u8, set: u16) -> bool {
    bit(class) & set != 0
}

/// Classes of ASCII, as of the unfolded byte.
pub(super) const ASCII: [u8; 128] = ascii_table();

const fn ascii_table() -> [u8; 128] {
    let mut table = [OTHER; 128];
    let mut b = 0u8;
    while b < 128 {
        table[b as usize] = match b {
            b'A'..=b'Z' => UPPER,
            b'a'..=b'z' => LOWER,
            b'0'..=b'9' => DIGIT,
            b'_' => CONNECT,
            b'-' => DASH,
            b'.' => DOT,
            b'/' | b'\\' => SLASH,
            b':' => COLON,
            b'@' => AT,
            b'+' | b'#' => PLUS,
            b',' => COMMA,
            b'\'' => APOS,
            _ => OTHER,
        };
        b += 1;
    }
    table
}

/// Class of a folded character; letters come out as `LOWER`.
pub(super) fn of_folded(c: char) -> u8 {
    if let Some(class) = u8::try_from(c).ok().and_then(|b| ASCII.get(usize::from(b))) {
        return *class;
    }
    match c {
        c if is_cjk(c) => CJK,
        c if is_apostrophe(c) => APOS,
        c if is_connector(c) => CONNECT,
        c if is_combining_mark(c) => MARK,
        c if c.is_numeric() => DIGIT,
        c if c.is_alphabetic() => LOWER,
        _ => OTHER,
    }
}

/// Start of the character that holds byte `at`.
pub(super) fn lead(classes: &[u8], mut at: usize) -> usize {
    while at > 0 && classes[at] == CONT {
        at -= 1;
    }
    at
}

/// Start of the character before the one that starts at `at`.
pub(super) fn before(classes: &[u8], at: usize) -> Option<usize> {
    at.checked_sub(1).map(|last| lead(classes, last))
}

/// End of the character that starts at `at`.
pub(super) fn after(classes: &[u8], at: usize) -> usize {
    let mut end = at + 1;
    while end < classes.len() && classes[end] == CONT {
        end += 1;
    }
    end
}
