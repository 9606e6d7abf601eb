//! What would the rules give, written down plainly? The oracle of `default`: whole chunks, characters and
//! strings, no ASCII path, no segments, no classes beside bytes.

use std::collections::BTreeSet;

use unicode_normalization::UnicodeNormalization;
use unicode_normalization::char::is_combining_mark;
use unicode_segmentation::UnicodeSegmentation;

use super::fold::{
    fold_char, is_apostrophe, is_cjk, is_connector, is_gap, is_ignorable, loses_marks,
};
use super::{Language, TERM_BYTES_MAX};

/// Tokens in order, those of them that count, and extra terms in any order (`singles` apart).
#[derive(Debug, Default)]
pub(super) struct Naive {
    pub(super) tokens: Vec<String>,
    pub(super) counted: Vec<String>,
    parts: BTreeSet<String>,
    pub(super) wholes: Vec<String>,
    pub(super) singles: Vec<String>,
}

#[derive(Clone, Copy, PartialEq)]
struct Letter {
    c: char,
    upper: bool,
}

type Span = (usize, usize, bool);

pub(super) fn analyze(text: &str, language: Language) -> Naive {
    let mut out = Naive::default();
    for chunk in text.split(is_gap).filter(|c| !c.is_empty()) {
        analyze_chunk(&letters_of(chunk), language, &mut out);
    }
    out
}

/// Folds the chunk as a whole; the case of a letter comes from folding each raw character by itself, in
/// step with the whole wherever a letter is concerned.
fn letters_of(chunk: &str) -> Vec<Letter> {
    let kept: String = chunk.chars().filter(|c| !is_ignorable(*c)).collect();
    let cased: String = kept.nfkc().collect();
    let folded: String = cased.chars().flat_map(fold_char).nfkc().collect();
    let mut upper = cased
        .nfd()
        .filter(|c| !is_combining_mark(*c))
        .flat_map(|c| {
            let upper = c.is_uppercase();
            fold_char(c)
                .nfd()
                .filter(|c| !is_combining_mark(*c))
                .map(move |_| upper)
                .collect::<Vec<_>>()
        });
    folded
        .chars()
        .map(|c| {
            let bases = once_nfd(c);
            let mut first = false;
            for i in 0..bases {
                let up = upper.next().unwrap_or(false);
                first |= i == 0 && up;
            }
            Letter { c, upper: first }
        })
        .collect()
}

fn once_nfd(c: char) -> usize {
    c.nfd().filter(|c| !is_combining_mark(*c)).count()
}

fn analyze_chunk(letters: &[Letter], language: Language, out: &mut Naive) {
    let mut spans: Vec<Span> = Vec::new();
    let mut at = 0;
    while at < letters.len() {
        let cjk = is_cjk(letters[at].c);
        let len = letters[at..]
            .iter()
            .take_while(|l| is_cjk(l.c) == cjk)
            .count();
        if cjk {
            cjk_run(letters, at, at + len, &mut spans, out);
        } else {
            word_run(letters, at, at + len, &mut spans);
        }
        at += len;
    }
    let identifiers = identifiers(letters, &spans);
    for (a, b, _) in &spans {
        let term = term(&text(letters, *a, *b), language);
        out.tokens.push(term.clone());
        let is_part = identifiers.iter().any(|(x, y)| x <= a && b <= y);
        if !is_part || out.parts.insert(term.clone()) {
            out.counted.push(term);
        }
    }
    for (a, b) in identifiers {
        let mut whole = strip(&text(letters, a, b));
        truncate(&mut whole);
        out.wholes.push(whole);
    }
}

fn text(letters: &[Letter], a: usize, b: usize) -> String {
    letters[a..b].iter().map(|l| l.c).collect()
}

fn cjk_run(letters: &[Letter], a: usize, b: usize, spans: &mut Vec<Span>, out: &mut Naive) {
    if b - a == 1 {
        spans.push((a, b, false));
        return;
    }
    spans.extend((a..b - 1).map(|i| (i, i + 2, false)));
    out.singles.extend((a..b).map(|i| text(letters, i, i + 1)));
}

fn word_run(letters: &[Letter], a: usize, b: usize, spans: &mut Vec<Span>) {
    let run = text(letters, a, b);
    let mut at = a;
    for bound in run.split_word_bounds() {
        let len = bound.chars().count();
        if bound.chars().any(char::is_alphanumeric) {
            let mut piece = at;
            for i in at..=at + len {
                if i == at + len || cuts(letters, i) {
                    word(letters, piece, i, spans);
                    piece = i + 1;
                }
            }
        }
        at += len;
    }
}

fn is_digit(l: Option<&Letter>) -> bool {
    l.is_some_and(|l| l.c.is_numeric() && !is_cjk(l.c))
}

fn is_letter(l: &Letter) -> bool {
    l.c.is_alphabetic()
        && !is_cjk(l.c)
        && !l.c.is_numeric()
        && !is_combining_mark(l.c)
        && !is_apostrophe(l.c)
}

fn is_alnum(l: &Letter) -> bool {
    is_letter(l) || is_digit(Some(l))
}

fn is_word(l: &Letter) -> bool {
    is_alnum(l) || is_combining_mark(l.c) && !is_cjk(l.c) || is_connector(l.c)
}

fn cuts(letters: &[Letter], i: usize) -> bool {
    let c = letters[i].c;
    let between = i > 0 && is_digit(letters.get(i - 1)) && is_digit(letters.get(i + 1));
    is_apostrophe(c)
        || is_connector(c)
        || c == ':'
        || c == ';'
        || (c == '.' || c == ',') && !between
}

fn word(letters: &[Letter], mut a: usize, b: usize, spans: &mut Vec<Span>) {
    while a < b && is_combining_mark(letters[a].c) {
        a += 1;
    }
    if a >= b {
        return;
    }
    let whole = text(letters, a, b);
    let possessive = whole == "s"
        && a >= 2
        && is_apostrophe(letters[a - 1].c)
        && (is_alnum(&letters[a - 2])
            || is_combining_mark(letters[a - 2].c) && !is_cjk(letters[a - 2].c))
        && !letters.get(b).is_some_and(is_word);
    if possessive {
        return;
    }
    if whole.starts_with('v') && is_digit(letters.get(a + 1)) && whole.contains('.') {
        a += 1;
    }
    let whole = text(letters, a, b);
    let hex = whole.len() >= 7
        && whole.chars().all(|c| c.is_ascii_hexdigit())
        && whole.chars().any(|c| c.is_ascii_digit());
    let mut bounds = vec![a];
    if !hex && whole.len() <= 64 {
        bounds.extend((a + 1..b).filter(|i| case_change(letters, a, *i, b)));
    }
    bounds.push(b);
    let camel = bounds.len() > 2;
    spans.extend(bounds.windows(2).map(|w| (w[0], w[1], camel)));
}

fn case_change(letters: &[Letter], a: usize, i: usize, b: usize) -> bool {
    let bare: Vec<Letter> = letters[i..b]
        .iter()
        .copied()
        .filter(|l| !is_combining_mark(l.c))
        .collect();
    let Some(last) = letters[a..i].iter().rfind(|l| !is_combining_mark(l.c)) else {
        return false;
    };
    if !letters[i].upper || !is_letter(&letters[i]) {
        return false;
    }
    let lower = |l: Option<&Letter>| l.is_some_and(|l| is_letter(l) && !l.upper);
    if is_digit(Some(last)) {
        return lower(bare.get(1));
    }
    if !last.upper {
        return is_letter(last);
    }
    lower(bare.get(1)) && (bare[1].c != 's' || lower(bare.get(2)))
}

fn term(token: &str, language: Language) -> String {
    let alphabetic = token.chars().all(|c| {
        let l = Letter { c, upper: false };
        is_letter(&l) || is_combining_mark(c)
    }) && !token.chars().any(is_cjk);
    let mut term = if !alphabetic {
        strip(token)
    } else if language.strips_first() || token.len() > TERM_BYTES_MAX {
        let mut cut = strip(token);
        truncate(&mut cut);
        language.stemmer().stem(&cut).into_owned()
    } else {
        strip(&language.stemmer().stem(token))
    };
    truncate(&mut term);
    term
}

fn truncate(term: &mut String) {
    while term.len() > TERM_BYTES_MAX {
        term.pop();
    }
}

fn strip(text: &str) -> String {
    let mut base = None;
    let mut out = String::new();
    for c in text.nfd() {
        if !is_combining_mark(c) {
            base = Some(c);
            out.push(c);
        } else if !base.is_some_and(loses_marks) {
            out.push(c);
        }
    }
    out.nfc().collect()
}

/// Spans of whole forms: compounds, then glued ones.
fn identifiers(letters: &[Letter], spans: &[Span]) -> Vec<(usize, usize)> {
    let inside = |a: usize, b: usize| -> Vec<Span> {
        spans
            .iter()
            .copied()
            .filter(|(x, y, _)| *x >= a && *y <= b)
            .collect()
    };
    let differs = |a: usize, b: usize| {
        let parts = inside(a, b);
        !(parts.is_empty() || parts.len() == 1 && (parts[0].0, parts[0].1) == (a, b))
    };
    let mut found = Vec::new();
    let mut a = 0;
    while a < letters.len() {
        let b = a + letters[a..].iter().take_while(|l| is_word(l)).count();
        let connected = letters[a..b].iter().any(|l| is_connector(l.c));
        if b > a && differs(a, b) && (connected || inside(a, b).iter().any(|s| s.2)) {
            found.push((a, b));
        }
        a = b.max(a + 1);
    }
    for (a, b, url) in runs(letters) {
        let Some(first) = (a..b).find(|i| is_word(&letters[*i])) else {
            continue;
        };
        let end = 1 + (a..b).rfind(|i| is_word(&letters[*i])).unwrap();
        if (url || qualifies(&letters[first..end])) && differs(first, end) {
            found.push((first, end));
        }
    }
    found
}

fn qualifies(run: &[Letter]) -> bool {
    let has = |set: &str| run.iter().any(|l| set.contains(l.c));
    let marked = run.iter().any(|l| is_digit(Some(l)) || is_connector(l.c));
    run.iter().any(is_alnum) && (has("/\\@.:") || has("-+#") && marked)
}

/// Candidate runs, and whether each is a URL.
fn runs(letters: &[Letter]) -> Vec<(usize, usize, bool)> {
    let chars: Vec<char> = letters.iter().map(|l| l.c).collect();
    let mut found = Vec::new();
    let mut a = 0;
    while a < chars.len() {
        let mut b = a;
        let mut scheme = None;
        while b < chars.len() && scheme.is_none() {
            if chars[b..].starts_with(&[':', '/', '/']) {
                let name = |c: &&char| c.is_ascii_alphanumeric() || "+-.".contains(**c);
                let from = b - chars[a..b].iter().rev().take_while(name).count();
                scheme = (from..b).find(|i| chars[*i].is_ascii_alphabetic());
            }
            if scheme.is_some() || !goes_on(letters, &chars, a, b) {
                break;
            }
            b += 1;
        }
        found.push((a, scheme.unwrap_or(b), false));
        if let Some(scheme) = scheme {
            let url = |l: &&Letter| is_word(l) || "-./:@+#,?&=%~[]()!$*;".contains(l.c);
            b += 3;
            b += letters[b..].iter().take_while(url).count();
            found.push((scheme, b, true));
        }
        a = b.max(a + 1);
    }
    found
}

fn goes_on(letters: &[Letter], chars: &[char], a: usize, b: usize) -> bool {
    let next = chars.get(b + 1);
    let last = (b > a).then(|| chars[b - 1]);
    match chars[b] {
        c @ ('.' | '-') => next != Some(&c) && last != Some(c),
        ':' => {
            let drive =
                b == a + 1 && is_letter(&letters[a]) && next.is_some_and(|n| "/\\".contains(*n));
            let time = b > a && is_digit(letters.get(b - 1)) && is_digit(letters.get(b + 1));
            drive || time || next == Some(&':') || last == Some(':')
        }
        c => is_word(&letters[b]) || "/\\@+#".contains(c),
    }
}
