//! Is a term within a few changes of a word, and which terms need no look?
//!
//! The table of the Levenshtein distance (Wagner and Fischer 1974), a row a character of the
//! term: rows of a common beginning are kept for the next term, and a row without any number
//! up to the distance ends every term that begins so. Then the next beginning that could go
//! on is computed, so that a sorted list of terms is walked by leaps. No first character is
//! fixed: a slip at the beginning is as likely as any.

use super::expand::Judged;

/// A word with the rows of the term that was judged last.
pub(super) struct Fuzzy {
    word: Vec<char>,
    distance: u8,
    /// Characters of the last term, as far as they have a row.
    seen: Vec<char>,
    /// One row of `word.len() + 1` numbers for the empty beginning and one for each of `seen`.
    rows: Vec<u8>,
}

impl Fuzzy {
    /// Terms within `distance` of `word`.
    pub(super) fn new(word: &str, distance: u8) -> Self {
        let word: Vec<char> = word.chars().collect();
        // Numbers above the distance are all alike.
        let above = distance + 1;
        let first = (0..=word.len()).map(|n| u8::try_from(n).map_or(above, |n| n.min(above)));
        Self {
            rows: first.collect(),
            word,
            distance,
            seen: Vec::new(),
        }
    }

    /// Judges the next term; terms come ascending.
    pub(super) fn judge(&mut self, term: &[u8]) -> Judged {
        let Ok(term) = std::str::from_utf8(term) else {
            return Judged::Miss;
        };
        self.keep_common(term);
        let known: usize = self.seen.iter().map(|c| c.len_utf8()).sum();
        for (at, c) in term[known..].char_indices() {
            if !self.push(c) {
                return Judged::SkipTo(self.next_beginning(&term[..known + at], c));
            }
        }
        match self.last_row().last() {
            Some(changes) if *changes <= self.distance => Judged::Match,
            _ => Judged::Miss,
        }
    }

    fn width(&self) -> usize {
        self.word.len() + 1
    }

    fn last_row(&self) -> &[u8] {
        &self.rows[self.rows.len() - self.width()..]
    }

    /// Keeps the rows of what `term` has in common with the last one.
    fn keep_common(&mut self, term: &str) {
        let same = self.seen.iter().zip(term.chars());
        let common = same.take_while(|(a, b)| *a == b).count();
        self.seen.truncate(common);
        let width = self.width();
        self.rows.truncate((common + 1) * width);
    }

    /// Adds the row of one more character; false, and nothing added, where no term that goes
    /// on so can match.
    fn push(&mut self, c: char) -> bool {
        let above = self.distance + 1;
        let width = self.width();
        let from = self.rows.len() - width;
        let mut left = self.rows[from].saturating_add(1).min(above);
        let mut least = left;
        self.rows.push(left);
        for (place, letter) in self.word.iter().enumerate() {
            let (diagonal, up) = (self.rows[from + place], self.rows[from + place + 1]);
            let exchanged = diagonal + u8::from(*letter != c);
            left = exchanged.min(up + 1).min(left + 1).min(above);
            least = least.min(left);
            self.rows.push(left);
        }
        if least > self.distance {
            self.rows.truncate(from + width);
            return false;
        }
        self.seen.push(c);
        true
    }

    /// After `beginning` cannot go on with `c`: where the next term begins that could match.
    /// A number below the distance would have let any character pass, so all of the row are
    /// at it or above, and only letters of the word at such a place go on.
    fn next_beginning(&self, beginning: &str, c: char) -> Vec<u8> {
        let row = self.last_row().iter().zip(&self.word);
        let letters = row.filter(|(changes, letter)| **changes <= self.distance && **letter > c);
        let mut next = beginning.as_bytes().to_vec();
        if let Some((_, letter)) = letters.min_by_key(|(_, letter)| **letter) {
            next.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        } else if let Some(last) = next.last_mut() {
            // The last byte of a character is below 0xC0: no carry.
            *last += 1;
        } else {
            // Nothing at all goes on: past every character.
            next.push(u8::MAX);
        }
        next
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// By the definition.
    fn distance(a: &str, b: &str) -> usize {
        let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
        let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
        for i in 0..=a.len() {
            for j in 0..=b.len() {
                table[i][j] = match (i, j) {
                    (i, 0) => i,
                    (0, j) => j,
                    (i, j) => (table[i - 1][j] + 1)
                        .min(table[i][j - 1] + 1)
                        .min(table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1])),
                };
            }
        }
        table[a.len()][b.len()]
    }

    /// What a walk by leaps finds, and how many terms it looks at.
    fn walk(terms: &BTreeSet<String>, word: &str, changes: u8) -> (Vec<String>, usize) {
        let mut fuzzy = Fuzzy::new(word, changes);
        let (mut found, mut looked, mut from) = (Vec::new(), 0, Vec::new());
        for term in terms {
            if term.as_bytes() < from.as_slice() {
                continue;
            }
            looked += 1;
            match fuzzy.judge(term.as_bytes()) {
                Judged::Match => found.push(term.clone()),
                Judged::SkipTo(next) => {
                    assert!(next.as_slice() > term.as_bytes(), "{term}: goes on");
                    from = next;
                }
                Judged::Miss => {}
                Judged::End => break,
            }
        }
        (found, looked)
    }

    #[test]
    fn a_walk_by_leaps_finds_what_the_definition_says() {
        // Few letters, so that words lie near each other; of one to four bytes.
        let letters = ['a', 'b', 'c', 'z', 'é', '東', '😀'];
        let mut state = 7u64;
        let mut below = |end: usize| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            usize::try_from((state >> 33) % end as u64).expect("small")
        };
        let mut word = |length: usize| -> String {
            let length = below(length);
            (0..length).map(|_| letters[below(letters.len())]).collect()
        };
        let terms: BTreeSet<String> = (0..3000).map(|_| word(8)).collect();
        let mut leapt = 0;
        for round in 0..300 {
            let word = word(9);
            let changes = 1 + u8::from(round % 2 == 0);
            let near = |term: &&String| distance(term, &word) <= usize::from(changes);
            let expected: Vec<String> = terms.iter().filter(near).cloned().collect();
            let (found, looked) = walk(&terms, &word, changes);
            assert_eq!(found, expected, "{word:?} {changes}");
            leapt += terms.len() - looked;
        }
        assert!(leapt > 0, "no term was passed over");
    }

    #[test]
    fn bytes_that_are_no_text_are_no_match() {
        assert_eq!(Fuzzy::new("ab", 2).judge(&[0xff]), Judged::Miss);
    }
}
