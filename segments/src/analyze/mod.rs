//! Which terms does a text have? The analyzers `default` and `plain-en`, version 2.
//!
//! # `default`
//!
//! 1. **Chunks.** The text is cut at white space and control characters; nothing crosses a cut.
//! 2. **Fold.** Default-ignorable characters (zero-width, soft hyphen, bidi controls, variation selectors, byte
//!    order mark) are dropped, so `pass<U+200B>word` is `password`. Then NFKC, full case folding, NFKC.
//!    `ß` = `ss`, `ς` = `σ`, `İ` = `i`; `ı` stays `ı`.
//! 3. **CJK.** A run of Han, Hiragana and Katakana becomes overlapping bigrams, which count; its characters are
//!    extra terms. A run of one character is that character, counted; so a query's one-character run finds it
//!    anywhere. Hangul is written with spaces and has words.
//! 4. **Words** by UAX #29, emoji and symbols dropped, then cut at apostrophes, connectors (`_`), `:`, `;`, and
//!    at `.` and `,` unless between digits. The `s` after an apostrophe after a letter or digit is dropped.
//!    Thai, Lao and Khmer have no word boundaries in UAX #29: one letter, one token.
//! 5. **Case changes** part a word: `camel|Case`, `HTTP|Server`, `phase2|Go`; not `APIs`, not a hash (seven or
//!    more hex digits), not a word over 64 bytes. A dotted version loses its `v`.
//! 6. **Marks** after Latin, Greek and Cyrillic letters are stripped. **Snowball** on tokens of letters and marks
//!    only. English stemmers see the stripped word; the others need their letters (`é`, `й`), so their stem is
//!    stripped instead.
//! 7. **Identifiers.** The whole form (folded, stripped, never stemmed) is an extra term when it is not its only
//!    part: compounds (`snake_case`, `CamelCase`), and runs of words joined by `/ \ @ .` or `::`, or by
//!    `- : + #` where a digit or `_` is inside. URLs reach to the first quote, bracket `<>{}`, `|` or space.
//!    Both ends are trimmed to a word character, so `./src/a.rs` and `src/a.rs` are one.
//! 8. **Parts.** What stands inside an identifier counts once a record, however often that identifier or another
//!    one repeats it: a path named ten times does not make a record ten times about `src`. `src/a.rs src/b.rs src` counts
//!    `src a rs b src`. (Version 1 counted
//!    every part: on a project's commit log that cost 0.095 of recall@5, see [`ANALYZER_VERSION`].)
//! 9. A term over 256 bytes is its longest prefix of at most 256 bytes.
//!
//! Counted tokens make the length; extra terms and repeated parts do not.
//!
//! | text | counted | extra |
//! |---|---|---|
//! | `The dog's running` | the dog run | |
//! | `don't o'clock` | don t o clock | |
//! | `Café NAÏVE Ёлка` | cafe naiv елка | |
//! | `STRASSE Straße` | strass strass | |
//! | `read_file` | read file | read_file |
//! | `parseHttpURL APIs` | pars http url api | parsehttpurl |
//! | `./src/main.rs` | src main rs | src/main.rs |
//! | `https://ex.test/a?b=1` | https ex test a b 1 | https://ex.test/a?b=1 |
//! | `E0502 ORA-00942` | e0502 ora 00942 | ora-00942 |
//! | `v1.2.3 1.2.3 3.14` | 1.2.3 1.2.3 3.14 | v1.2.3 |
//! | `state-of-the-art` | state of the art | |
//! | `std::vec 15:00` | std vec 15 00 | std::vec 15:00 |
//! | `熊猫吃竹` | 熊猫 猫吃 吃竹 | 熊 猫 吃 竹 |
//! | `熊` | 熊 | |
//! | `안녕 세계` | 안녕 세계 | |
//!
//! # `plain-en`
//!
//! Lower case, cut at what is neither alphanumeric nor `_`, Snowball English on every token; terms cut at 256
//! bytes. No identifiers, no CJK rule. For comparison with published figures.
//!
//! Cost: one pass, linear in the text; buffers and the stem cache live in [`Analyzed`] and are reused. No I/O, no
//! clock, no lock: an [`Analyzer`] is a small value, copy it freely.
#![allow(
    rustdoc::bare_urls,
    reason = "the table shows terms as they are, and a test reads it"
)]

mod chunk;
mod class;
mod date;
mod fold;
mod identifiers;
mod plain;
mod stem;
mod terms;
mod words;

#[cfg(test)]
mod naive;
#[cfg(test)]
mod tests;

use std::fmt;
use std::ops::Range;

use thiserror::Error;

use self::chunk::{Chunk, next_chunk};
use self::class::{LOWER, MARK, UPPER, bit, is};
pub use self::date::date_words;
use self::fold::{cut, push_stripped};
pub use self::stem::Language;
use self::stem::StemCache;
pub use self::terms::{Analyzed, Tokens};
use self::terms::{Sink, TermSet};
use self::words::Part;

/// Raised when the same text may give other terms, or counts of them, than before.
///
/// * 1: every part of an identifier counts every time.
/// * 2: a part counts once a record. Judged commit messages (37 queries): recall@5 0.459 -> 0.554, recall@10
///   0.554 -> 0.563, MRR@10 0.431 -> 0.426; text without identifiers is not touched.
pub const ANALYZER_VERSION: u32 = 2;

/// No term is longer.
pub const TERM_BYTES_MAX: usize = 256;

/// What an ordinary text needs; larger buffers are given back after use.
const SCRATCH_BYTES_MAX: usize = 64 << 10;

/// Why an analyzer cannot be made.
#[derive(Debug, Error, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AnalyzeError {
    /// Snowball has no such language.
    #[error("unknown stemmer language `{name}`: use a Snowball name such as `english` or `german`")]
    UnknownLanguage {
        /// As given.
        name: String,
    },
    /// `plain-en` is English by definition.
    #[error(
        "analyzer `plain-en` stems English only, not `{language}`: use `default` for other languages"
    )]
    PlainIsEnglish {
        /// The language asked for.
        language: &'static str,
    },
    /// An id that this build cannot reproduce.
    #[error(
        "unknown analyzer id `{id}`: this build knows `default-2/LANGUAGE` and `plain-en-2/english`, with \
         `+summary`, `+speaker`, `+date` in this order"
    )]
    UnknownId {
        /// As given.
        id: String,
    },
}

/// Which rules.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnalyzerKind {
    /// The full rules.
    #[default]
    Default,
    /// The rules of the published `bm25-stem` figures.
    PlainEn,
}

impl AnalyzerKind {
    fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::PlainEn => "plain-en",
        }
    }
}

/// Which fields are indexed besides the text. Part of the id: a store keeps them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AnalyzerOptions {
    /// Index the summary.
    pub summary: bool,
    /// Index the speaker's name.
    pub speaker: bool,
    /// Index the event date as words, e.g. `7 May 2023` (UTC).
    pub event_date: bool,
}

/// The fields of a record that an analyzer may index.
#[derive(Debug, Clone, Copy, Default)]
pub struct Fields<'a> {
    /// Always indexed.
    pub text: &'a str,
    /// Indexed with `summary`.
    pub summary: Option<&'a str>,
    /// Indexed with `speaker`.
    pub speaker: Option<&'a str>,
    /// Indexed as words with `event_date`.
    pub event_time_us: Option<i64>,
}

/// Turns text into terms. A small value without state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Analyzer {
    kind: AnalyzerKind,
    language: Language,
    options: AnalyzerOptions,
}

impl Analyzer {
    /// An analyzer by its settings.
    ///
    /// # Errors
    /// `PlainIsEnglish` for `plain-en` with another language.
    pub fn new(
        kind: AnalyzerKind,
        language: Language,
        options: AnalyzerOptions,
    ) -> Result<Self, AnalyzeError> {
        if kind == AnalyzerKind::PlainEn && language != Language::ENGLISH {
            return Err(AnalyzeError::PlainIsEnglish {
                language: language.name(),
            });
        }
        Ok(Self {
            kind,
            language,
            options,
        })
    }

    /// Name, version, language and options, e.g. `default-2/english+speaker+date`. Equal ids, equal terms.
    pub fn id(&self) -> String {
        self.to_string()
    }

    /// The analyzer of an id. Only what [`Analyzer::id`] writes is accepted.
    ///
    /// # Errors
    /// `UnknownId` for anything else: another version, name, language or order of options.
    pub fn parse_id(id: &str) -> Result<Self, AnalyzeError> {
        let unknown = || AnalyzeError::UnknownId {
            id: cut(id, 100).into(),
        };
        let mut options = id.split('+');
        let (name, language) = options
            .next()
            .and_then(|h| h.split_once('/'))
            .ok_or_else(unknown)?;
        let plain = name.starts_with(AnalyzerKind::PlainEn.name());
        let mut found = AnalyzerOptions::default();
        for option in options {
            match option {
                "summary" => found.summary = true,
                "speaker" => found.speaker = true,
                "date" => found.event_date = true,
                _ => return Err(unknown()),
            }
        }
        let kind = if plain {
            AnalyzerKind::PlainEn
        } else {
            AnalyzerKind::Default
        };
        let language = Language::parse(language).map_err(|_| unknown())?;
        let analyzer = Self::new(kind, language, found).map_err(|_| unknown())?;
        if analyzer.id() != id {
            return Err(unknown());
        }
        Ok(analyzer)
    }

    /// Which rules.
    pub fn kind(&self) -> AnalyzerKind {
        self.kind
    }

    /// The stemmer's language.
    pub fn language(&self) -> Language {
        self.language
    }

    /// Which fields are indexed.
    pub fn options(&self) -> AnalyzerOptions {
        self.options
    }

    /// Replaces `out` with the terms and the length of `text`.
    pub fn analyze(&self, text: &str, out: &mut Analyzed) {
        self.analyze_fields(
            &Fields {
                text,
                ..Fields::default()
            },
            out,
        );
    }

    /// Replaces `out` with the terms and the length of the fields that the options ask for: text, summary,
    /// speaker, date words, one after the other. No token crosses from one field into the next.
    pub fn analyze_fields(&self, fields: &Fields<'_>, out: &mut Analyzed) {
        let Analyzed { scratch, terms } = out;
        terms.clear();
        self.run(fields.text, scratch, terms);
        if let Some(summary) = fields.summary.filter(|_| self.options.summary) {
            self.run(summary, scratch, terms);
        }
        if let Some(speaker) = fields.speaker.filter(|_| self.options.speaker) {
            self.run(speaker, scratch, terms);
        }
        if let Some(time_us) = fields.event_time_us.filter(|_| self.options.event_date) {
            self.run(&date_words(time_us), scratch, terms);
        }
        terms.finish();
        scratch.shrink();
    }

    /// Distinct terms of a query with their weights (occurrences), in byte order. The single characters of a CJK
    /// run longer than one are left out: its bigrams stand for it.
    pub fn analyze_query(&self, text: &str) -> Vec<(Vec<u8>, u32)> {
        let mut terms = TermSet::default();
        terms.skips_singles = true;
        self.run(text, &mut Scratch::default(), &mut terms);
        terms.finish();
        terms
            .iter()
            .map(|(term, count)| (term.to_vec(), count))
            .collect()
    }

    /// The counted tokens of `text` in order, with the bytes each came from: for phrases and snippets.
    pub fn tokens(&self, text: &str) -> Tokens {
        let mut tokens = Tokens::default();
        self.run(text, &mut Scratch::default(), &mut tokens);
        tokens
    }

    /// `text` as terms spell it, without word rules and stemming: for prefixes and fuzzy terms.
    pub fn fold(&self, text: &str) -> String {
        if self.kind == AnalyzerKind::PlainEn {
            return text.chars().flat_map(char::to_lowercase).collect();
        }
        let mut folded = String::new();
        let mut stripped = String::new();
        fold::push_folded(text, &mut folded, &mut Vec::new());
        push_stripped(&folded, &mut stripped);
        stripped
    }

    fn run(&self, text: &str, scratch: &mut Scratch, sink: &mut impl Sink) {
        match self.kind {
            AnalyzerKind::Default => self.run_default(text, scratch, sink),
            AnalyzerKind::PlainEn => {
                let Scratch {
                    word, term, stems, ..
                } = scratch;
                plain::run(text, word, term, stems, sink);
            }
        }
    }

    fn run_default<S: Sink>(&self, text: &str, scratch: &mut Scratch, sink: &mut S) {
        let mut from = 0;
        while let Some((range, ascii)) = next_chunk(text, from) {
            from = range.end;
            let raw = &text[range.clone()];
            scratch.parts.clear();
            if ascii {
                scratch.chunk.fill_ascii(raw, range);
                words::push_ascii(&scratch.chunk, &mut scratch.parts);
            } else {
                scratch.chunk.fill(raw, range, S::RANGES);
                words::push_any(&scratch.chunk, &mut scratch.parts, |c| sink.single(c));
            }
            self.emit_chunk(scratch, sink);
        }
    }

    fn emit_chunk<S: Sink>(&self, scratch: &mut Scratch, sink: &mut S) {
        let Scratch {
            chunk,
            parts,
            word,
            term,
            stems,
            spans,
        } = scratch;
        spans.clear();
        if identifiers::possible(chunk, parts) {
            identifiers::find(chunk, parts, |span| {
                term.clear();
                push_stripped(&chunk.text[span.clone()], term);
                sink.whole(cut(term, TERM_BYTES_MAX));
                spans.push(span);
            });
        }
        spans.sort_unstable_by_key(|s| s.start);
        let mut spans = spans.iter().peekable();
        let mut covered_to = 0;
        for part in parts.iter() {
            while let Some(span) = spans.next_if(|s| s.start <= part.start) {
                covered_to = covered_to.max(span.end);
            }
            self.make_term(chunk, part, word, term, stems);
            let range = if S::RANGES {
                chunk.raw_range(part.start, part.end)
            } else {
                0..0
            };
            sink.counted(cut(term, TERM_BYTES_MAX), range, part.end <= covered_to);
        }
    }

    /// Writes the term of `part` to `term`. Tokens over the limit are stripped and cut before Snowball sees
    /// them: its work is not linear in a word's length.
    fn make_term(
        &self,
        chunk: &Chunk,
        part: &Part,
        word: &mut String,
        term: &mut String,
        stems: &mut StemCache,
    ) {
        let token = &chunk.text[part.start..part.end];
        let letters = bit(UPPER) | bit(LOWER) | bit(MARK) | bit(class::CONT);
        let stemmed = !part.cjk
            && chunk.classes[part.start..part.end]
                .iter()
                .all(|c| is(*c, letters));
        term.clear();
        if !stemmed {
            push_stripped(token, term);
        } else if token.is_ascii() {
            stems.push_stem(self.language, cut(token, TERM_BYTES_MAX), term);
        } else if self.language.strips_first() || token.len() > TERM_BYTES_MAX {
            word.clear();
            push_stripped(token, word);
            stems.push_stem(self.language, cut(word, TERM_BYTES_MAX), term);
        } else {
            word.clear();
            stems.push_stem(self.language, token, word);
            push_stripped(word, term);
        }
    }
}

impl fmt::Display for Analyzer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{}-{ANALYZER_VERSION}/{}",
            self.kind.name(),
            self.language.name()
        )?;
        let options = [
            (self.options.summary, "+summary"),
            (self.options.speaker, "+speaker"),
            (self.options.event_date, "+date"),
        ];
        options
            .iter()
            .filter(|(on, _)| *on)
            .try_for_each(|(_, name)| f.write_str(name))
    }
}

/// Buffers of one analysis at a time.
#[derive(Debug, Default)]
struct Scratch {
    chunk: Chunk,
    parts: Vec<Part>,
    word: String,
    term: String,
    stems: StemCache,
    /// Identifiers of the chunk, as bytes of its folded text.
    spans: Vec<Range<usize>>,
}

impl Scratch {
    fn shrink(&mut self) {
        self.chunk.shrink(SCRATCH_BYTES_MAX);
        self.parts.shrink_to(SCRATCH_BYTES_MAX / size_of::<Part>());
        self.word.shrink_to(SCRATCH_BYTES_MAX);
        self.term.shrink_to(SCRATCH_BYTES_MAX);
        self.spans
            .shrink_to(SCRATCH_BYTES_MAX / size_of::<Range<usize>>());
    }
}
