use super::*;

fn parse(text: &str) -> Vec<Clause> {
    TextQuery::parse(text).expect("a query").into_clauses()
}

fn words(words: &str, weight: f64) -> Clause {
    Clause::Words {
        words: words.into(),
        weight,
    }
}

#[test]
fn every_form_means_its_clause() {
    let clauses = parse(r#"a +b -c "d e" f* g~ h~2 i^2.5 j +k^3 "l m"^0.5 n*^2 o~1^4"#);
    let require = |words: &str, weight| Clause::Require {
        words: words.into(),
        weight,
    };
    let phrase = |words: &str, weight| Clause::Phrase {
        words: words.into(),
        weight,
    };
    let prefix = |start: &str, weight| Clause::Prefix {
        start: start.into(),
        weight,
    };
    let fuzzy = |word: &str, distance, weight| Clause::Fuzzy {
        word: word.into(),
        distance,
        weight,
    };
    let expected = [
        words("a j", 1.0),
        require("b", 1.0),
        Clause::Exclude { words: "c".into() },
        phrase("d e", 1.0),
        prefix("f", 1.0),
        fuzzy("g", 1, 1.0),
        fuzzy("h", 2, 1.0),
        words("i", 2.5),
        require("k", 3.0),
        phrase("l m", 0.5),
        prefix("n", 2.0),
        fuzzy("o", 1, 4.0),
    ];
    assert_eq!(clauses, expected);
}

#[test]
fn a_sign_at_another_place_or_behind_a_backslash_is_text() {
    let texts = [
        "c++", "a-b", "~/notes", "5\"", "-", "+", "*", "^2", "2*3", "x*y*z", "~", "~5", "home~abc",
    ];
    for text in texts {
        assert_eq!(parse(text), [words(text, 1.0)], "{text}");
    }
    let escaped = [
        (r"\+b", "+b"),
        (r"\-b", "-b"),
        (r#"\"b"#, "\"b"),
        (r"b\*", "b*"),
        (r"b\~", "b~"),
        (r"b\^2", "b^2"),
        (r"a\\b", r"a\b"),
        (r"a\ b", "a b"),
    ];
    for (text, expected) in escaped {
        assert_eq!(parse(text), [words(expected, 1.0)], "{text}");
    }
    let phrase = Clause::Phrase {
        words: r#"say "x""#.into(),
        weight: 1.0,
    };
    assert_eq!(parse(r#""say \"x\"""#), [phrase]);
    assert_eq!(parse(" \t "), []);
}

#[test]
fn an_error_points_at_its_column() {
    use SyntaxProblem as P;
    let cases = [
        (r#"é "b c"#, 3, P::OpenPhrase),
        (r#"a "  ""#, 3, P::EmptyPhrase),
        (r"ab\", 3, P::OpenEscape),
        (r#""ab\"#, 4, P::OpenEscape),
        ("ab^", 3, P::Weight),
        ("ab^x", 3, P::Weight),
        ("ab^0", 3, P::Weight),
        ("ab^101", 3, P::Weight),
        ("ab^1e1", 3, P::Weight),
        ("ab^inf", 3, P::Weight),
        ("ab^1.2.3", 3, P::Weight),
        (r#""a b"^0"#, 6, P::Weight),
        ("東京~3", 3, P::Distance),
        ("a~0", 2, P::Distance),
        ("a~999", 2, P::Distance),
        ("+a*", 3, P::RequiredPattern),
        ("+a~2", 3, P::RequiredPattern),
        ("-a*", 3, P::ExcludedPattern),
        (r#"x -"a b""#, 3, P::ExcludedPhrase),
        ("-a^2", 3, P::ExcludedWeight),
        (r#""a b"~2"#, 6, P::FuzzyPhrase),
    ];
    for (text, column, problem) in cases {
        let error = TextQuery::parse(text).expect_err(text);
        assert_eq!((error.column, error.problem), (column, problem), "{text}");
        assert!(error.to_string().starts_with(&format!("column {column}: ")));
    }
}

#[test]
fn no_text_makes_the_parser_panic() {
    let signs = ['+', '-', '"', '*', '~', '^', '\\', ' ', 'a', '2', '.', 'é'];
    let mut state = 1u64;
    for _ in 0..20_000 {
        let mut text = String::new();
        for _ in 0..8 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let place = usize::try_from((state >> 33) % signs.len() as u64).expect("small");
            text.push(signs[place]);
        }
        if let Err(error) = TextQuery::parse(&text) {
            assert!((1..=9).contains(&error.column), "{text}: {error}");
        }
    }
}
