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

#[test]
fn a_part_of_an_identifier_counts_once_a_record_and_a_plain_word_each_time() {
    let (terms, length) = terms_of(english(), "src/a.rs src src/b.rs readA src readB");
    let wholes = "reada readb src/a.rs src/b.rs";
    let mut expected = words("src a rs src b read src");
    assert_eq!(length, expected.len());
    expected.extend(words(wholes));
    expected.sort();
    assert_eq!(terms, expected);
    assert_eq!(
        tokens_of(english(), "src/a.rs src/b.rs"),
        words("src a rs src b rs"),
        "positions keep every token"
    );
}

/// The fast analyzer equals its naive twin: terms, length, tokens, query weights.
fn assert_as_naive(text: &str, language: Language) {
    let analyzer =
        Analyzer::new(AnalyzerKind::Default, language, AnalyzerOptions::default()).unwrap();
    let naive = naive::analyze(text, language);
    assert_eq!(
        tokens_of(analyzer, text),
        naive.tokens,
        "tokens of {text:?}"
    );
    let mut query: Vec<String> = naive.counted.iter().chain(&naive.wholes).cloned().collect();
    query.sort();
    let found: Vec<String> = analyzer
        .analyze_query(text)
        .into_iter()
        .flat_map(|(t, n)| vec![String::from_utf8(t).unwrap(); n as usize])
        .collect();
    assert_eq!(found, query, "query {text:?}");
    let mut all = query;
    all.extend(naive.singles);
    all.sort();
    assert_eq!(
        terms_of(analyzer, text),
        (all, naive.counted.len()),
        "terms of {text:?}"
    );
}

/// Ranges ascend, lie on character boundaries and analyse to the token they stand for.
fn assert_ranges(analyzer: Analyzer, text: &str) {
    let mut last = 0;
    for (term, range) in analyzer.tokens(text).iter() {
        assert!(
            range.start >= last && range.start < range.end,
            "{term} {range:?} in {text:?}"
        );
        assert!(
            text.get(range.clone()).is_some(),
            "{term} {range:?} in {text:?}"
        );
        last = range.start;
    }
}

/// Pieces that meet the rules at their edges.
const PIECES: &[&str] = &[
    "a",
    "B",
    "s",
    "v",
    "x1",
    "7",
    "42",
    "Foo",
    "BAR",
    "running",
    "é",
    "e\u{301}",
    "\u{301}",
    "İ",
    "ß",
    "Σ",
    "ς",
    "ж",
    "Й",
    "ё",
    "的",
    "熊猫",
    "タ",
    "ﾊ\u{ff9e}",
    "안",
    "\u{1102}\u{1167}",
    "न\u{94d}",
    "ب",
    "ש",
    "״",
    "·",
    "'",
    "’",
    "'s",
    "_",
    "__",
    ".",
    "..",
    ",",
    ";",
    ":",
    "::",
    "://",
    "/",
    "\\",
    "-",
    "--",
    "@",
    "+",
    "#",
    "?",
    "=",
    "&",
    "%",
    "(",
    ")",
    "<",
    "\"",
    " ",
    "\n",
    "\u{200b}",
    "\u{ad}",
    "\u{200d}",
    "\u{fe0f}",
    "😀",
    "①",
    "ﬁ",
    "Ａ",
    "½",
    "٣",
    "\u{3000}",
    "deadbeef1",
    "APIs",
    "ǅ",
    "Ⅳ",
    "™",
    "ก",
    "℀",
    "\u{345}",
    "ᾳ",
    "http",
];

fn text_of_pieces() -> impl proptest::strategy::Strategy<Value = String> {
    use proptest::prelude::*;
    prop::collection::vec(prop::sample::select(PIECES), 0..14).prop_map(|p| p.concat())
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(4096))]

    #[test]
    fn default_equals_its_naive_twin(text in text_of_pieces()) {
        assert_as_naive(&text, Language::ENGLISH);
        assert_ranges(english(), &text);
    }

    #[test]
    fn ascii_equals_its_naive_twin(text in "[ -~]{0,40}") {
        assert_as_naive(&text, Language::ENGLISH);
    }

    #[test]
    fn any_text_equals_its_naive_twin(text in "\\PC{0,24}") {
        assert_as_naive(&text, Language::ENGLISH);
        assert_ranges(english(), &text);
        assert_ranges(plain(), &text);
    }

    #[test]
    fn other_languages_equal_their_naive_twin(text in text_of_pieces(), pick in 0usize..1000) {
        let languages: Vec<Language> = Language::all().collect();
        assert_as_naive(&text, languages[pick % languages.len()]);
    }

    #[test]
    fn folding_is_stable(text in "\\PC{0,12}", pieces in text_of_pieces()) {
        for text in [text, pieces] {
            let once = english().fold(&text);
            assert_eq!(english().fold(&once), once);
        }
    }
}

#[test]
fn every_character_folds_to_what_folds_to_itself() {
    for c in '\0'..=char::MAX {
        if c.is_ascii() || ('\u{ac00}'..='\u{d7a3}').contains(&c) {
            continue;
        }
        let once = english().fold(&format!("x{c}y"));
        assert_eq!(english().fold(&once), once, "{c:?}");
    }
}

#[test]
fn spellings_that_look_alike_meet() {
    let same = [
        (
            "café naïve Ångström",
            "cafe\u{301} nai\u{308}ve A\u{30a}ngstro\u{308}m",
        ),
        ("ＡＢＣ ﬁne", "abc fine"),
        ("STRASSE STRAẞE", "strasse Straße"),
        ("ΟΔΥΣΣΕΥΣ", "ὀδυσσεύς"),
        (
            "password unbroken soft",
            "pass\u{200b}word un\u{200c}broken so\u{ad}ft",
        ),
        ("evil txt", "\u{202e}evil\u{202c} \u{2066}txt\u{2069}"),
        ("text", "\u{feff}text"),
        ("안녕", "\u{110b}\u{1161}\u{11ab}\u{1102}\u{1167}\u{11bc}"),
        ("カタカナ ハ\u{3099}", "ｶﾀｶﾅ バ"),
        ("Istanbul", "İstanbul"),
        ("it is dog", "it's is dog’s"),
        ("a b", "a\u{3000}b"),
    ];
    for (left, right) in same {
        assert_eq!(
            terms_of(english(), left),
            terms_of(english(), right),
            "{left} {right}"
        );
    }
    assert_ne!(
        terms_of(english(), "diyarbakır"),
        terms_of(english(), "DİYARBAKIR")
    );
}

#[test]
fn marks_that_carry_meaning_stay() {
    for text in ["नमस्ते", "שָׁלוֹם", "مرحباً", "ハ\u{3099}イ"] {
        let folded: String = english().fold(text);
        let nfkc: String = unicode_normalization::UnicodeNormalization::nfkc(text).collect();
        assert_eq!(folded, nfkc);
    }
}

#[test]
fn languages_stem_before_marks_go() {
    assert_eq!(tokens_of(in_language("french"), "aimées"), ["aim"]);
    assert_eq!(
        tokens_of(in_language("russian"), "красивый красивые"),
        ["красив", "красив"]
    );
    assert_eq!(tokens_of(in_language("german"), "Häuser"), ["haus"]);
}

#[test]
fn identifiers_are_found_whole() {
    let cases = [
        ("see (../../etc/passwd).", "etc/passwd"),
        (r"C:\Windows\system32", r"c:\windows\system32"),
        ("[x](https://a.test/b_c)", "https://a.test/b_c"),
        ("见https://a.test/b这里", "https://a.test/b"),
        ("<a.b+c@ex.test>", "a.b+c@ex.test"),
        ("CVE-2021-44228,", "cve-2021-44228"),
        ("v1.2.3-rc.4+build5", "v1.2.3-rc.4+build5"),
        (
            "550e8400-e29b-41d4-a716-446655440000",
            "550e8400-e29b-41d4-a716-446655440000",
        ),
        ("on 2023-02-29.", "2023-02-29"),
        ("src/lib.rs:42", "src/lib.rs"),
        ("__init__", "__init__"),
        ("Schlüssel_Größe", "schlussel_grosse"),
        ("getURLsFor", "geturlsfor"),
        ("error:E_FAIL", "e_fail"),
    ];
    for (text, whole) in cases {
        let query = english().analyze_query(text);
        assert!(
            query.iter().any(|(t, _)| t == whole.as_bytes()),
            "{text}: {query:?}"
        );
    }
    for text in [
        "end. Start",
        "wait...what",
        "so--well",
        "state-of-the-art",
        "field:value",
        "3.14",
        "APIs",
        "e0502",
        "DeadBeef01",
        "C++",
    ] {
        assert!(
            naive::analyze(text, Language::ENGLISH).wholes.is_empty(),
            "{text}"
        );
        let (terms, length) = terms_of(english(), text);
        assert_eq!(terms.len(), length, "{text}");
    }
}

#[test]
fn one_cjk_character_asks_for_itself_and_more_for_bigrams() {
    let query = |text: &str| -> Vec<String> {
        english()
            .analyze_query(text)
            .into_iter()
            .map(|(t, _)| String::from_utf8(t).unwrap())
            .collect()
    };
    assert_eq!(query("熊"), ["熊"]);
    assert_eq!(query("熊猫"), ["熊猫"]);
    assert_eq!(query("第3章"), ["3", "章", "第"]);
    assert!(terms_of(english(), "一只熊猫").0.contains(&"熊".to_owned()));
}

#[test]
fn query_weights_are_occurrences() {
    let query = english().analyze_query("fox Fox dog foxes");
    assert_eq!(query, [(b"dog".to_vec(), 1), (b"fox".to_vec(), 3)]);
    assert!(english().analyze_query(" ((( 😀 ").is_empty());
}

#[test]
fn ranges_point_into_the_raw_text() {
    let text = "The Cafe\u{301}'s ﬁne\u{200b}st 熊猫!";
    let found: Vec<(String, &str)> = english()
        .tokens(text)
        .iter()
        .map(|(t, r)| (t.to_owned(), &text[r]))
        .collect();
    let expected = [
        ("the", "The"),
        ("cafe", "Cafe\u{301}"),
        ("finest", "ﬁne\u{200b}st"),
        ("熊猫", "熊猫"),
    ];
    assert_eq!(found, expected.map(|(t, r)| (t.to_owned(), r)));
}

#[test]
fn fields_are_indexed_as_the_options_say() {
    let fields = Fields {
        text: "hello",
        summary: Some("greeting"),
        speaker: Some("Ana"),
        event_time_us: Some(1_683_417_600_000_000),
    };
    let terms = |options| {
        let analyzer = Analyzer::new(AnalyzerKind::Default, Language::ENGLISH, options).unwrap();
        let mut out = Analyzed::new();
        analyzer.analyze_fields(&fields, &mut out);
        let terms: Vec<String> = out
            .terms()
            .map(|(t, _)| String::from_utf8(t.to_vec()).unwrap())
            .collect();
        (terms.join(" "), out.length())
    };
    assert_eq!(terms(AnalyzerOptions::default()), ("hello".into(), 1));
    let all = AnalyzerOptions {
        summary: true,
        speaker: true,
        event_date: true,
    };
    assert_eq!(terms(all), ("2023 7 ana greet hello may".into(), 6));
}

#[test]
fn ids_name_everything_that_changes_terms() {
    let kinds = [AnalyzerKind::Default, AnalyzerKind::PlainEn];
    let mut seen = Vec::new();
    for language in Language::all() {
        for (kind, bits) in kinds.into_iter().flat_map(|k| (0..8).map(move |b| (k, b))) {
            let options = AnalyzerOptions {
                summary: bits & 1 != 0,
                speaker: bits & 2 != 0,
                event_date: bits & 4 != 0,
            };
            let Ok(analyzer) = Analyzer::new(kind, language, options) else {
                assert!(kind == AnalyzerKind::PlainEn && language != Language::ENGLISH);
                continue;
            };
            assert_eq!(Analyzer::parse_id(&analyzer.id()), Ok(analyzer));
            assert!(!seen.contains(&analyzer.id()));
            seen.push(analyzer.id());
        }
    }
    assert_eq!(english().id(), "default-2/english");
    for id in [
        "",
        "default",
        "default-1/english",
        "default-2/en",
        "default-2/klingon",
        "default-2/english+date+speaker",
        "plain-en-2/german",
        "plainer-1/english",
    ] {
        assert_eq!(
            Analyzer::parse_id(id),
            Err(AnalyzeError::UnknownId { id: id.into() })
        );
    }
}

#[test]
fn plain_is_lower_case_word_characters_and_snowball() {
    assert_eq!(
        tokens_of(plain(), "Don't read_file v1.2 Running-CAFÉS!"),
        ["don", "t", "read_fil", "v1", "2", "run", "café"]
    );
}

#[test]
fn buffers_of_another_analyzer_change_nothing() {
    let mut shared = Analyzed::new();
    for text in ["running häuser", "", "running häuser"] {
        for analyzer in [english(), in_language("german"), plain()] {
            analyzer.analyze(text, &mut shared);
            let mut fresh = Analyzed::new();
            analyzer.analyze(text, &mut fresh);
            assert!(shared.terms().eq(fresh.terms()), "{text}");
            assert_eq!(shared.length(), fresh.length());
        }
    }
}

#[test]
fn the_stem_cache_changes_nothing() {
    let mut out = Analyzed::new();
    for i in 0..20_000u32 {
        let word: String = (0..7)
            .map(|j| char::from(b"aeingstdrly"[((i >> (j * 2)) % 11) as usize]))
            .collect();
        english().analyze(&word, &mut out);
        let stem = Language::ENGLISH.stemmer().stem(&word).into_owned();
        assert!(out.terms().eq([(stem.as_bytes(), 1)]), "{word}");
    }
}

/// Analyses in every way; the caller measures that it ends. Long texts leave the quadratic twin out.
fn survive(text: &str) {
    for analyzer in [
        english(),
        plain(),
        in_language("turkish"),
        in_language("greek"),
    ] {
        let (terms, length) = terms_of(analyzer, text);
        assert!(
            terms
                .iter()
                .all(|t| !t.is_empty() && t.len() <= TERM_BYTES_MAX)
        );
        assert!(analyzer.tokens(text).len() >= length);
        assert!(analyzer.analyze_query(text).len() <= terms.len());
        assert_ranges(analyzer, text);
    }
    if text.len() < 2_000 {
        assert_as_naive(text, Language::ENGLISH);
    }
}

#[test]
fn hostile_texts_end_in_linear_time() {
    let texts = [
        "a".repeat(64 << 10),
        "y".repeat(64 << 10),
        format!("a{}", "\u{301}".repeat(5_000)),
        "\u{301}".repeat(20_000),
        "\u{200d}".repeat(20_000),
        "spam ".repeat(20_000),
        "漢".repeat(20_000),
        "aB".repeat(30_000),
        "a_".repeat(30_000),
        "a.".repeat(30_000),
        "a:".repeat(30_000),
        "://".repeat(20_000),
        "a://".repeat(20_000),
        "+://".repeat(20_000),
        "1.".repeat(30_000),
        "x's".repeat(20_000),
        "é/A".repeat(20_000),
        "🇹🇷".repeat(20_000),
        "👨\u{200d}👩".repeat(20_000),
        "In the third week of the project the team kept notes. ".repeat(20_000),
    ];
    for text in texts {
        survive(&text);
    }
    let (terms, length) = terms_of(english(), &"spam ".repeat(20_000));
    assert_eq!((terms.len(), length), (20_000, 20_000));
    assert_eq!(
        tokens_of(english(), &"a".repeat(64 << 10)),
        ["a".repeat(256)]
    );
    assert_eq!(
        tokens_of(english(), &format!("a{}", "\u{301}".repeat(5_000))),
        ["a"]
    );
}

/// The workspace's data folder: `CHRONOLITH_DATA`, else `shared/data` beside the workspace root.
fn data_dir() -> PathBuf {
    let beside = concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data");
    std::env::var_os("CHRONOLITH_DATA").map_or_else(|| beside.into(), PathBuf::from)
}

#[test]
fn nasty_texts_are_survived() {
    let path = data_dir().join("nasty.jsonl");
    #[expect(clippy::disallowed_methods, reason = "test data outside the store")]
    let read = std::fs::read(&path);
    let Ok(bytes) = read else {
        println!("SKIPPED: no {}; set CHRONOLITH_DATA", path.display());
        return;
    };
    let mut survived = 0;
    for line in String::from_utf8_lossy(&bytes).lines() {
        for field in ["\"text\": \"", "\"query\": \""] {
            for (at, _) in line.match_indices(field) {
                survive(&json_string(&line[at + field.len()..]));
                survived += 1;
            }
        }
    }
    assert!(survived >= 100, "{survived}");
}

/// The JSON string that begins after its opening quote; lone surrogates become U+FFFD.
fn json_string(rest: &str) -> String {
    let mut units: Vec<u16> = Vec::new();
    let mut chars = rest.chars();
    while let Some(c) = chars.next().filter(|c| *c != '"') {
        let c = match c {
            '\\' => match chars.next() {
                Some('u') => {
                    let hex: String = chars.by_ref().take(4).collect();
                    units.push(u16::from_str_radix(&hex, 16).unwrap());
                    continue;
                }
                Some('n') => '\n',
                Some('t') => '\t',
                Some('r') => '\r',
                Some('b') => '\u{8}',
                Some('f') => '\u{c}',
                other => other.unwrap(),
            },
            other => other,
        };
        units.extend_from_slice(c.encode_utf16(&mut [0; 2]));
    }
    String::from_utf16_lossy(&units)
}
