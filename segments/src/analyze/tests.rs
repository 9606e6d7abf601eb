//! What the analyzer promises: the table of its documentation, a naive twin, hostile text in linear time.

use std::path::PathBuf;

use super::*;

fn english() -> Analyzer {
    Analyzer::default()
}

fn plain() -> Analyzer {
    Analyzer::new(
        AnalyzerKind::PlainEn,
        Language::ENGLISH,
        AnalyzerOptions::default(),
    )
    .unwrap()
}

fn in_language(name: &str) -> Analyzer {
    let language = Language::parse(name).unwrap();
    Analyzer::new(AnalyzerKind::Default, language, AnalyzerOptions::default()).unwrap()
}

/// Every term as often as it occurs, in byte order, and the length.
fn terms_of(analyzer: Analyzer, text: &str) -> (Vec<String>, usize) {
    let mut out = Analyzed::new();
    analyzer.analyze(text, &mut out);
    let terms = out
        .terms()
        .flat_map(|(t, n)| vec![String::from_utf8(t.to_vec()).unwrap(); n as usize])
        .collect();
    (terms, out.length() as usize)
}

fn tokens_of(analyzer: Analyzer, text: &str) -> Vec<String> {
    analyzer
        .tokens(text)
        .iter()
        .map(|(t, _)| t.to_owned())
        .collect()
}

fn words(line: &str) -> Vec<String> {
    line.split_whitespace().map(str::to_owned).collect()
}

#[test]
fn the_documented_table_holds() {
    let rows: Vec<&str> = include_str!("mod.rs")
        .lines()
        .filter(|l| l.starts_with("//! | `"))
        .collect();
    assert!(rows.len() >= 15);
    for row in rows {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let text = cells[1].trim_matches('`');
        let counted = words(cells[2]);
        assert_eq!(tokens_of(english(), text), counted, "{text}");
        let mut all = counted.clone();
        all.extend(words(cells[3]));
        all.sort();
        assert_eq!(terms_of(english(), text), (all, counted.len()), "{text}");
    }
}
