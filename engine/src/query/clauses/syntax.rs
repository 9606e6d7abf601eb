//! Which clauses does a line of text mean?
//!
//! ```text
//! item    what it means
//! word    an ordinary word; may be there
//! +word   must be there            -word   must not be there
//! "a b"   one after the other      pre*    begins so
//! fuzz~   one change away          fuzz~2  up to two
//! word^2  counts twice; after +word, "a b", pre*, fuzz~ too
//! \x      the sign x itself
//! ```
//!
//! Items are parted by white space. A sign means something only at its place: `+`, `-` and `"`
//! where an item begins, `*`, `~` and `^` where it ends; everywhere else, and alone, it is
//! text. So `c++`, `a-b`, `~/notes` and `5"` are ordinary words.

use super::{Clause, DISTANCE_MAX, WEIGHT_MAX};

/// A text that is no query, and where.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {problem}")]
pub struct SyntaxError {
    /// Of the character at fault, from 1.
    pub column: usize,
    /// What is wrong there.
    pub problem: SyntaxProblem,
}

/// What is wrong with a query text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SyntaxProblem {
    /// A quote without its pair.
    #[error("the phrase that begins here has no end; close it with \" or write \\\" for the sign")]
    OpenPhrase,
    /// Nothing but white space between two quotes.
    #[error("the phrase is empty")]
    EmptyPhrase,
    /// A backslash at the end.
    #[error("a backslash stands before nothing; write \\\\ for the sign")]
    OpenEscape,
    /// `^` without a number in range.
    #[error(
        "a weight must be a number above 0 and at most {WEIGHT_MAX}; write \\^ for the sign itself"
    )]
    Weight,
    /// `~` with another number.
    #[error("a word may be 1 to {DISTANCE_MAX} changes away; write \\~ for the sign itself")]
    Distance,
    /// `+pre*` or `+fuzz~`.
    #[error("a prefix or a fuzzy word cannot be required; take the + away")]
    RequiredPattern,
    /// `-pre*` or `-fuzz~`.
    #[error("a prefix or a fuzzy word cannot be excluded; exclude whole words")]
    ExcludedPattern,
    /// `-"a b"`.
    #[error("a phrase cannot be excluded; exclude its words one by one")]
    ExcludedPhrase,
    /// `-word^2`.
    #[error("an excluded word has no weight")]
    ExcludedWeight,
    /// `"a b"~2`.
    #[error("a phrase cannot be fuzzy: its words stand next to each other or they do not")]
    FuzzyPhrase,
}

/// A query written as text, parsed.
///
/// ```
/// use chronolith::{Clause, SyntaxProblem, TextQuery};
///
/// let query = TextQuery::parse(r#"port +staging -old "proxy host" depl* kuberntes~ urgent^2.5"#)?;
/// assert_eq!(query.clauses().len(), 7);
/// assert_eq!(query.clauses()[2], Clause::Exclude { words: "old".into() });
///
/// let error = TextQuery::parse(r#"staging "proxy host"#).unwrap_err();
/// assert_eq!((error.column, error.problem), (9, SyntaxProblem::OpenPhrase));
/// # Ok::<(), chronolith::SyntaxError>(())
/// ```
///
/// | written | means |
/// | --- | --- |
/// | `word` | an ordinary word |
/// | `+word` | rows without it are out ([`Clause::Require`]) |
/// | `-word` | rows with it are out ([`Clause::Exclude`]) |
/// | `"two words"` | only rows with these words one after the other ([`Clause::Phrase`]) |
/// | `pre*` | any word that begins so ([`Clause::Prefix`]) |
/// | `fuzz~`, `fuzz~2` | words one or two changes away ([`Clause::Fuzzy`]) |
/// | `word^2.5` | counts two and a half times; also behind `+word`, a phrase, `pre*`, `fuzz~` |
/// | `\x` | the sign `x` itself |
#[derive(Debug, Clone, PartialEq, Default)]
pub struct TextQuery {
    clauses: Vec<Clause>,
}

impl TextQuery {
    /// Parses a line of text.
    ///
    /// # Errors
    /// [`SyntaxError`] with the column of the first character that cannot stand there.
    pub fn parse(text: &str) -> Result<Self, SyntaxError> {
        let mut parser = Parser {
            chars: text.chars().collect(),
            at: 0,
            plain: None,
            clauses: Vec::new(),
        };
        while parser.skip_space() {
            parser.item()?;
        }
        Ok(Self {
            clauses: parser.clauses,
        })
    }

    /// What it means, in the order of the text; plain words are one clause, at the place of the
    /// first.
    pub fn clauses(&self) -> &[Clause] {
        &self.clauses
    }

    /// As [`TextQuery::clauses`].
    pub fn into_clauses(self) -> Vec<Clause> {
        self.clauses
    }
}

/// A character of an item, and whether a backslash made it plain.
#[derive(Clone, Copy)]
struct Sign {
    char: char,
    is_plain: bool,
    column: usize,
}

impl Sign {
    fn is(self, char: char) -> bool {
        self.char == char && !self.is_plain
    }
}

struct Parser {
    chars: Vec<char>,
    at: usize,
    /// Index of the clause of ordinary words.
    plain: Option<usize>,
    clauses: Vec<Clause>,
}

/// What ends an item.
struct Tail {
    weight: Option<(f64, usize)>,
    pattern: Option<(Pattern, usize)>,
}

enum Pattern {
    Prefix,
    Fuzzy(u8),
}

fn fail<T>(column: usize, problem: SyntaxProblem) -> Result<T, SyntaxError> {
    Err(SyntaxError { column, problem })
}

impl Parser {
    /// False at the end of the text.
    fn skip_space(&mut self) -> bool {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.at < self.chars.len()
    }

    fn item(&mut self) -> Result<(), SyntaxError> {
        let column = self.at + 1;
        let first = self.chars[self.at];
        let next = self.chars.get(self.at + 1).copied();
        let is_signed =
            matches!(first, '+' | '-') && next.is_some_and(|next| !next.is_whitespace());
        let sign = is_signed.then_some(first);
        self.at += usize::from(is_signed);
        if self.chars[self.at] == '"' {
            return self.phrase(sign, column);
        }
        let mut signs = self.word()?;
        let tail = tail(&mut signs)?;
        let words: String = signs.iter().map(|sign| sign.char).collect();
        self.push_word(sign, words, tail)
    }

    /// Up to white space; escapes resolved.
    fn word(&mut self) -> Result<Vec<Sign>, SyntaxError> {
        let mut signs = Vec::new();
        while let Some(char) = self.chars.get(self.at).filter(|c| !c.is_whitespace()) {
            signs.push(match char {
                '\\' => self.escape()?,
                char => Sign {
                    char: *char,
                    is_plain: false,
                    column: self.at + 1,
                },
            });
            self.at += 1;
        }
        Ok(signs)
    }

    /// The sign behind the backslash that the parser stands at; leaves it standing there.
    fn escape(&mut self) -> Result<Sign, SyntaxError> {
        let column = self.at + 1;
        self.at += 1;
        match self.chars.get(self.at) {
            Some(char) => Ok(Sign {
                char: *char,
                is_plain: true,
                column,
            }),
            None => fail(column, SyntaxProblem::OpenEscape),
        }
    }

    fn phrase(&mut self, sign: Option<char>, column: usize) -> Result<(), SyntaxError> {
        if sign == Some('-') {
            return fail(column, SyntaxProblem::ExcludedPhrase);
        }
        let open = self.at + 1;
        self.at += 1;
        let mut words = String::new();
        loop {
            match self.chars.get(self.at) {
                None => return fail(open, SyntaxProblem::OpenPhrase),
                Some('"') => break,
                Some('\\') => words.push(self.escape()?.char),
                Some(char) => words.push(*char),
            }
            self.at += 1;
        }
        self.at += 1;
        if words.trim().is_empty() {
            return fail(open, SyntaxProblem::EmptyPhrase);
        }
        let weight = match self.chars.get(self.at) {
            Some('^') => {
                let mut signs = self.word()?;
                let tail = tail_weight(&mut signs)?;
                tail.filter(|_| signs.is_empty())
                    .map(|(weight, _)| weight)
                    .ok_or(SyntaxError {
                        column: self.at,
                        problem: SyntaxProblem::Weight,
                    })?
            }
            Some('~') => return fail(self.at + 1, SyntaxProblem::FuzzyPhrase),
            _ => 1.0,
        };
        self.clauses.push(Clause::Phrase { words, weight });
        Ok(())
    }

    fn push_word(
        &mut self,
        sign: Option<char>,
        words: String,
        tail: Tail,
    ) -> Result<(), SyntaxError> {
        let weight = tail.weight.map_or(1.0, |(weight, _)| weight);
        if let (Some(sign), Some((_, column))) = (sign, &tail.pattern) {
            let problem = match sign {
                '+' => SyntaxProblem::RequiredPattern,
                _ => SyntaxProblem::ExcludedPattern,
            };
            return fail(*column, problem);
        }
        let clause = match (sign, tail.pattern) {
            (_, Some((Pattern::Prefix, _))) => Clause::Prefix {
                start: words,
                weight,
            },
            (_, Some((Pattern::Fuzzy(distance), _))) => Clause::Fuzzy {
                word: words,
                distance,
                weight,
            },
            (Some('+'), None) => Clause::Require { words, weight },
            (Some(_), None) => match tail.weight {
                Some((_, column)) => return fail(column, SyntaxProblem::ExcludedWeight),
                None => Clause::Exclude { words },
            },
            (None, None) if tail.weight.is_some() => Clause::Words { words, weight },
            (None, None) => {
                self.push_plain(&words);
                return Ok(());
            }
        };
        self.clauses.push(clause);
        Ok(())
    }

    fn push_plain(&mut self, word: &str) {
        let place = *self.plain.get_or_insert_with(|| {
            self.clauses.push(Clause::Words {
                words: String::new(),
                weight: 1.0,
            });
            self.clauses.len() - 1
        });
        if let Clause::Words { words, .. } = &mut self.clauses[place] {
            if !words.is_empty() {
                words.push(' ');
            }
            words.push_str(word);
        }
    }
}

/// Takes what the end of a word means off it.
fn tail(signs: &mut Vec<Sign>) -> Result<Tail, SyntaxError> {
    let weight = match last(signs, '^') {
        Some(0) | None => None,
        Some(_) => tail_weight(signs)?,
    };
    let pattern = match signs.last() {
        Some(last) if last.is('*') && signs.len() > 1 => {
            let column = last.column;
            signs.pop();
            Some((Pattern::Prefix, column))
        }
        _ => tail_distance(signs)?,
    };
    Ok(Tail { weight, pattern })
}

/// The last place where `char` stands as a sign.
fn last(signs: &[Sign], char: char) -> Option<usize> {
    signs.iter().rposition(|sign| sign.is(char))
}

fn text_of(signs: &[Sign]) -> String {
    signs.iter().map(|sign| sign.char).collect()
}

/// `^NUMBER` at the end.
fn tail_weight(signs: &mut Vec<Sign>) -> Result<Option<(f64, usize)>, SyntaxError> {
    let Some(place) = last(signs, '^') else {
        return Ok(None);
    };
    let column = signs[place].column;
    let number = text_of(&signs[place + 1..]);
    let is_number = !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
    let weight = number.parse::<f64>().ok().filter(|_| is_number);
    match weight {
        Some(weight) if weight > 0.0 && weight <= WEIGHT_MAX => {
            signs.truncate(place);
            Ok(Some((weight, column)))
        }
        _ => fail(column, SyntaxProblem::Weight),
    }
}

/// `~` or `~NUMBER` behind a word.
fn tail_distance(signs: &mut Vec<Sign>) -> Result<Option<(Pattern, usize)>, SyntaxError> {
    let Some(place) = last(signs, '~').filter(|place| *place > 0) else {
        return Ok(None);
    };
    let column = signs[place].column;
    let number = text_of(&signs[place + 1..]);
    if !number.chars().all(|c| c.is_ascii_digit()) {
        return Ok(None);
    }
    let distance = match &*number {
        "" => 1,
        number => match number.parse::<u8>() {
            Ok(distance) if (1..=DISTANCE_MAX).contains(&distance) => distance,
            _ => return fail(column, SyntaxProblem::Distance),
        },
    };
    signs.truncate(place);
    Ok(Some((Pattern::Fuzzy(distance), column)))
}

#[cfg(test)]
mod tests;
