//! Texts made to break a reader: each is read or refused, in bounded time and on a small stack.

use super::{documents, from_str};
use crate::random::Random;
use expect_test::expect;

/// Every text is read or refused.
#[test]
fn no_text_panics() {
    const PARTS: [&str; 44] = [
        "!",
        "!a",
        "!!str",
        "!<",
        ",",
        "[",
        "]",
        "{",
        "}",
        ":",
        "? ",
        "- ",
        " ",
        "\n",
        "\n  ",
        "&a",
        "*a",
        "\"",
        "'",
        "\\",
        "|",
        ">",
        "%",
        "%TAG ! a",
        "---",
        "...",
        "#",
        "a",
        "1",
        "\t",
        "\r",
        "\u{85}",
        "\u{2028}",
        "\u{feff}",
        "é",
        "<<",
        "@",
        "%C3",
        "\\x",
        "\\u",
        "2",
        "-",
        "%YAML 1.1\n",
        "\u{10ffff}",
    ];
    let mut random = Random(88_172_645_463_325_252);
    for _ in 0..30_000 {
        let count = random.below(14) + 1;
        let text: String = (0..count).map(|_| random.of(&PARTS)).collect();
        let _ = (documents(&text), from_str(&text));
    }
}

/// A stack that overflows cannot be caught, so depth is bounded; also the depth that aliases add up to.
#[test]
fn deep_texts_are_refused_before_the_stack_ends() {
    let nested = |open: &str, close: &str, depth: usize| {
        from_str(&format!("{}{}", open.repeat(depth), close.repeat(depth)))
    };
    let mut chain = String::from("a0: &a0 [x]\n");
    for i in 1..40 {
        chain.push_str(&format!("a{i}: &a{i} {}*a{}{}\n", "[".repeat(90), i - 1, "]".repeat(90)));
    }
    let read = move || {
        for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
            assert!(nested(open, close, 250).is_ok(), "{open}");
            for depth in [251, 9_000, 50_000] {
                let message = nested(open, close, depth).unwrap_err().message;
                expect!["yaml: lists and maps are more than 250 levels deep"].assert_eq(&message);
            }
        }
        assert!(nested("? ", "", 50_000).is_err());
        let error = from_str(&chain).unwrap_err();
        expect!["yaml: lists and maps are more than 250 levels deep"].assert_eq(&error.message);
        assert_eq!(error.line, 4);
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap();
}

/// Each line: a text, and what go-yaml reads or says, as random texts found it out.
#[test]
fn reads_what_go_yaml_reads() {
    let lines = include_str!("../../../tests/golden/yaml/read.jsonl").lines();
    let mut count = 0;
    for line in lines {
        let case: serde_json::Value = serde_json::from_str(line).unwrap();
        let text = case[0].as_str().unwrap();
        match from_str(text) {
            Ok(value) => assert_eq!(exact(&value), exact(&case[1]["json"]), "{text:?}"),
            Err(error) => {
                let said = error.to_string();
                let said = said.strip_prefix("error converting YAML to JSON: ").unwrap();
                assert_eq!(case[1]["error"], said, "{text:?}");
            }
        }
        count += 1;
    }
    assert!(count > 300, "{count} cases");
}

/// The value with numbers as text: 1e21 and its digits written out are one.
fn exact(value: &serde_json::Value) -> serde_json::Value {
    use serde_json::Value;
    match value {
        Value::Number(number) if number.is_f64() => format!("{:e}", number.as_f64().unwrap()).into(),
        Value::Number(number) if number.as_i64().is_none_or(|n| n.unsigned_abs() > 1 << 53) => {
            format!("{:e}", number.as_f64().unwrap()).into()
        }
        Value::Array(items) => items.iter().map(exact).collect(),
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| (key.clone(), exact(value)))
            .collect::<serde_json::Map<_, _>>()
            .into(),
        other => other.clone(),
    }
}
