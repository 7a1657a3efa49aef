//! The quick reader beside the parser: what it takes it reads alike, and it takes what it is made for.

use super::block::{parse, skim};
use super::compose::first;
use super::{Kind, check};
use crate::random::Random;

/// Returns true if the quick reader took the text; what it read is what the parser reads.
fn taken(text: &str) -> bool {
    let head = skim(text, &["a", "kind"]);
    let Some(quick) = parse(text) else {
        assert!(head.is_none(), "{text:?}");
        return false;
    };
    let whole = first(text);
    if let Some(head) = head {
        assert!(check(&quick).is_ok(), "{text:?}");
        for key in ["a", "kind"] {
            assert_eq!(format!("{:?}", head.entry(key)), format!("{:?}", quick.entry(key)), "{text:?}");
        }
        let Kind::Mapping(pairs) = &quick.kind else { panic!("{text:?}") };
        let Kind::Mapping(skimmed) = &head.kind else { panic!("{text:?}") };
        assert_eq!(skimmed.len(), pairs.len(), "{text:?}");
    }
    assert_eq!(format!("{:?}", Ok::<_, ()>(quick)), format!("{:?}", whole.map_err(drop)), "{text:?}");
    true
}

#[test]
fn takes_what_charts_and_objects_are_made_of() {
    for text in [
        "a: 1\nb:\n  c: yes\n  d: \"x\\n\"\nlist:\n- a\n- b: 1\n  c:\n  - 2\n-\n  x: 'it''s'\nnothing:\nlast: ~\n",
        "---\n# c\na:   # d\n\n  b: http://x/y#z # e\n  c: long text\n    that goes on\n\n    and on\n  d: {}\n  e: []\n",
        "- - 1\n  - 2\n- a: |\n    x\n\n      y\n    # z\n  b: |-\n    z\n\n- \"k\": v",
        "a: |\n  x",
        "a: |\n  x\n ",
        "a: -1\nb: -x\nc: 0o17\n-d: 1\nn: 1\n",
        "a: naïve “text”\nb: x\n",
        "a: 'x  \n  y: ''z''\n\n\n    # no comment  '\nb: \"x\\n\n  \\\"y\n\n  z\" # c\n",
        "- 'a\n  b'\n- \"\n  c\"\n",
        "a: [b, 'c', \"d e\", 1, yes, 1.5] # f\nb: {c: d, \"e\": [f, {}], g: h i}\nh: [b c:d]\n",
        "a: [\n  b,\n\n  c,\n]\nd: {e: http://f:1/g,\nh: -i}\n",
        "- [a]\n- {b: .inf}\n",
        "a:\n  b c\n  d\nb:\n  'x'\nc:\n  [d]\n",
    ] {
        assert!(taken(text), "{text}");
    }
}

#[test]
fn leaves_the_rest_alone() {
    for text in [
        "",
        "a",
        "a: b: c\n",
        "a: *x\n",
        "a: &x 1\n",
        "<<: 1\n",
        "a:\tb\n",
        "a: 1\n b: 2\n",
        "a: 1\n---\nb: 2\n",
        "a: 'x\ny'\n",
        "a: 'x\n\ty'\n",
        "a: \"x\\\n  y\"\n",
        "a: 'x\n\n",
        "? a\n: b\n",
        "[a]: 1\n",
        "a: [b\n---\n]\n",
        "a: [b: c]\n",
        "a: [,]\n",
        "a: {b}\n",
        "a: {yes: b}\n",
        "a: {b:c}\n",
        "a: [é]\n",
        "a: [b] c\n",
        "a: [*b]\n",
        "a: ['b\n c']\n",
        "a:\n  |\n  b\n",
        "a: >\n  x\n",
        "a: |2\n   x\n",
        "a: |+\n  x\n",
        "a: x\n  # c\n  y\n",
        "a: |\n\tx\n",
        "a: \"x\" y\n",
        "%YAML 1.1\n",
        "a: \u{2028}\n",
        "é: 1\n",
    ] {
        assert!(!taken(text), "{text}");
    }
}

#[test]
fn reads_as_the_parser_does() {
    const PARTS: [&str; 68] = [
        "a:",
        "b: ",
        "c: 1",
        "- ",
        "-",
        "- x",
        "\n",
        "\n",
        "\n",
        "\n  ",
        "\n  ",
        "\n    ",
        "\n- ",
        "\n  - ",
        " ",
        "  ",
        "# c",
        " # d",
        "|",
        "|-",
        ">",
        "\"q\"",
        "'s'",
        "'",
        "\"",
        "\\n",
        "{}",
        "[]",
        "x y",
        "x",
        ":",
        ": ",
        "1.5",
        "yes",
        "~",
        "\t",
        "é",
        "-x",
        "--- ",
        "\n---\n",
        "...",
        "a.b/c: d",
        "\"k\": v",
        "- a: 1",
        "\n\n",
        "#",
        "\n  y'",
        "\n   z\"",
        "a: 'x",
        "b: \"x ",
        "[",
        "]",
        "{",
        "}",
        ",",
        ", ",
        "[a, b]",
        "{a: b}",
        "{\"a\": 1, b: [c]}",
        "a: [",
        "a: {",
        "kind: x\n",
        "k: .inf\n",
        "yes: 1\n",
        "1: 2\n",
        "~: 1\n",
        "\n]\n",
        ", 'x'",
    ];
    let mut random = Random(88_172_645_463_325_252);
    let mut count = 0;
    for _ in 0..60_000 {
        let length = random.below(14) + 1;
        let text: String = (0..length).map(|_| random.of(&PARTS)).collect();
        count += usize::from(taken(&text));
    }
    assert!(count > 1000, "{count} texts were taken");
}
