//! Where does a word start and end?
//!
//! BERT's uncased rules, in this order for each character: invisible ones are dropped,
//! blanks end a word, an ideograph is a word of its own; what is left is decomposed, loses
//! its accents and its capitals, and is either punctuation (a word of its own) or a letter.
//!
//! We decompose one character at a time and so never reorder marks across characters.
//! It matters only for the few marks that are no accents (category Mc) in the wrong order.
//! And characters without a meaning yet (category Cn) are letters, not invisible: otherwise
//! a vector would change with each edition of Unicode.

use unicode_normalization::char::decompose_canonical;

use crate::unicode::{IDEOGRAPHS, INVISIBLE, NONSPACING_MARKS, PUNCTUATION, contains};

/// A longer word is unknown as a whole, as in BERT.
pub(crate) const WORD_CHARS_MAX: usize = 100;

/// Calls `each` with every word of `text`, in order; `None` stands for a word of more than
/// [`WORD_CHARS_MAX`] characters. Holds one such word at most, however long the text.
pub(crate) fn for_each_word(text: &str, each: impl FnMut(Option<&str>)) {
    let mut splitter = Splitter {
        word: String::with_capacity(WORD_CHARS_MAX),
        chars: 0,
        each,
    };
    for c in text.chars() {
        if c.is_ascii() {
            splitter.ascii(c)
        } else {
            splitter.other(c)
        }
    }
    splitter.end_word();
}

struct Splitter<F> {
    /// The word so far; stops growing at `WORD_CHARS_MAX` characters.
    word: String,
    /// Characters of the word, those not kept included.
    chars: usize,
    each: F,
}

impl<F: FnMut(Option<&str>)> Splitter<F> {
    /// The common case: ASCII has no accents and no ideographs.
    fn ascii(&mut self, c: char) {
        match c {
            ' ' | '\t' | '\n' | '\r' => self.end_word(),
            _ if c.is_ascii_control() => {}
            _ => self.letter_or_punctuation(c.to_ascii_lowercase()),
        }
    }

    fn other(&mut self, c: char) {
        if c == char::REPLACEMENT_CHARACTER || contains(INVISIBLE, c) {
            return;
        }
        if c.is_whitespace() {
            self.end_word();
            return;
        }
        let alone = contains(IDEOGRAPHS, c);
        if alone {
            self.end_word();
        }
        decompose_canonical(c, |part| {
            if !contains(NONSPACING_MARKS, part) {
                part.to_lowercase()
                    .for_each(|lower| self.letter_or_punctuation(lower));
            }
        });
        if alone {
            self.end_word();
        }
    }

    fn letter_or_punctuation(&mut self, c: char) {
        let punctuation = if c.is_ascii() {
            c.is_ascii_punctuation()
        } else {
            contains(PUNCTUATION, c)
        };
        if punctuation {
            self.end_word();
            self.push(c);
            self.end_word();
        } else {
            self.push(c);
        }
    }

    fn push(&mut self, c: char) {
        if self.chars < WORD_CHARS_MAX {
            self.word.push(c);
        }
        self.chars = self.chars.saturating_add(1);
    }

    fn end_word(&mut self) {
        if self.chars > 0 {
            (self.each)((self.chars <= WORD_CHARS_MAX).then_some(self.word.as_str()));
            self.word.clear();
            self.chars = 0;
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use proptest::prelude::*;
    use unicode_normalization::UnicodeNormalization;

    use super::*;

    pub(crate) fn words(text: &str) -> Vec<Option<String>> {
        let mut words = Vec::new();
        for_each_word(text, |word| words.push(word.map(str::to_owned)));
        words
    }

    fn plain(text: &str) -> Vec<String> {
        words(text)
            .into_iter()
            .map(|word| word.expect("a word of bearable length"))
            .collect()
    }

    /// The rules one after another over whole strings, as the reference tokenizer has them.
    pub(crate) fn naive(text: &str) -> Vec<Option<String>> {
        let mut clean = String::new();
        for c in text.chars() {
            if "\t\n\r".contains(c) || (c.is_whitespace() && c != '\u{85}' && !c.is_control()) {
                clean.push(' ');
            } else if c == '\u{fffd}' || c.is_control() || contains(INVISIBLE, c) {
            } else if contains(IDEOGRAPHS, c) {
                clean.extend([' ', c, ' ']);
            } else {
                clean.push(c);
            }
        }
        let lower: String = clean
            .nfd()
            .filter(|&c| !contains(NONSPACING_MARKS, c))
            .flat_map(char::to_lowercase)
            .collect();
        let mut spaced = String::new();
        for c in lower.chars() {
            if c.is_ascii_punctuation() || contains(PUNCTUATION, c) {
                spaced.extend([' ', c, ' ']);
            } else {
                spaced.push(c);
            }
        }
        spaced
            .split_whitespace()
            .map(|word| (word.chars().count() <= WORD_CHARS_MAX).then(|| word.to_owned()))
            .collect()
    }

    #[test]
    fn punctuation_and_ideographs_stand_apart() {
        assert_eq!(
            plain("src/main.rs: E0308!"),
            ["src", "/", "main", ".", "rs", ":", "e0308", "!"]
        );
        assert_eq!(plain("in東京で"), ["in", "東", "京", "て"]);
        assert_eq!(plain("a—b"), ["a", "—", "b"]);
    }

    #[test]
    fn accents_capitals_and_invisible_characters_go() {
        assert_eq!(plain("Naïve CAFÉ İstanbul"), ["naive", "cafe", "istanbul"]);
        assert_eq!(
            plain("zero\u{200b}width \u{0}nul\u{7f} so\u{ad}ft"),
            ["zerowidth", "nul", "soft"]
        );
        assert!(plain(" \t\r\n\u{3000}\u{301}\u{fffd}").is_empty());
    }

    #[test]
    fn a_word_of_100_characters_is_kept_and_one_more_is_not() {
        let long = "é".repeat(WORD_CHARS_MAX);
        assert_eq!(words(&long), [Some("e".repeat(WORD_CHARS_MAX))]);
        assert_eq!(
            words(&format!("a {long}x b")),
            [Some("a".into()), None, Some("b".into())]
        );
    }

    proptest! {
        #[test]
        fn the_one_pass_splitter_agrees_with_the_rules_in_sequence(
            text in "([a-zA-Z0-9 .,/_#-]|[é-ůΑ-ωА-я]|[一-龥ぁ-ん가-힣]|\\PC){0,80}"
        ) {
            prop_assert_eq!(words(&text), naive(&text));
        }
    }
}
