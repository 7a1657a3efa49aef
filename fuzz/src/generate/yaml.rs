//! Random YAML texts: scalars of every style, anchors, merge keys, tags, comments, flow, block scalars, tabs,
//! directives.

use crate::random::Random;

const SCALARS: &[&str] = &[
    "a",
    "abc",
    "hello world",
    "1",
    "-7",
    "+1",
    "0",
    "007",
    "08",
    "0o17",
    "0x1F",
    "0b11",
    "1_000",
    "1.5",
    ".5",
    "5.",
    "1e3",
    "1e400",
    "-0.0",
    "12e03",
    "0x",
    "1e",
    "1__0",
    "0b2",
    "-0x1f",
    "+0b1",
    ".inf",
    "-.INF",
    ".NaN",
    "true",
    "True",
    "TRUE",
    "tRue",
    "yes",
    "Yes",
    "no",
    "on",
    "OFF",
    "y",
    "N",
    "null",
    "~",
    "Null",
    "",
    "1:30",
    "12:30:45",
    "2020-01-01",
    "2001-12-14t21:59:43.10-05:00",
    "9223372036854775807",
    "9223372036854775808",
    "18446744073709551615",
    "18446744073709551616",
    "-9223372036854775808",
    "-9223372036854775809",
    "1.7976931348623157e308",
    "0.1",
    "1e21",
    "123456789012345678901234567890",
    "a#b",
    "a #c",
    "a:b",
    "a: b",
    "x:",
    ":x",
    "-x",
    "- x",
    "?x",
    "? x",
    "!x",
    "@x",
    "`x",
    "%x",
    "&x",
    "*x",
    "|x",
    ">x",
    "=",
    "<<",
    "---",
    "...",
    "--- a",
    "é",
    "\u{a0}",
    "\u{85}",
    "\u{2028}",
    "\u{feff}",
    "\u{1F600}",
    "a\tb",
    "\t",
    "[",
    "]",
    "{",
    "}",
    ",",
    "a,b",
    "[a]",
    "{a}",
    "a\\b",
    "'",
    "\"",
    "it's",
];
const QUOTED: &[&str] = &[
    "''",
    "'a'",
    "'it''s'",
    "'a\n  b'",
    "'a\n\n  b'",
    "' x '",
    "'\\n'",
    "'a: b'",
    "'\ta'",
    "\"\"",
    "\"a\"",
    "\"a\\nb\"",
    "\"\\x41\\u00e9\\U0001F600\"",
    "\"\\t\\0\\a\\e\\N\\_\\L\\P\"",
    "\"a\\\n  b\"",
    "\"a\n  b\"",
    "\"a \n\n  b\"",
    "\"\\/\"",
    "\"\\q\"",
    "\"\\xZZ\"",
    "\"\\ud800\"",
    "\"\\\"\"",
    "\" x \"",
    "\"a",
    "'a",
    "\"a\tb\"",
    "\"#\"",
    "'#'",
    "\"\\u12\"",
    "\"\\ \"",
    "\"\\\t\"",
    "\"\\U00110000\"",
    "'a\n--- b'",
];
const TAGS: &[&str] = &[
    "!!str ",
    "!!int ",
    "!!float ",
    "!!bool ",
    "!!null ",
    "!!binary ",
    "!!map ",
    "!!seq ",
    "!!timestamp ",
    "!x ",
    "! ",
    "!!set ",
    "!!merge ",
    "!<tag:yaml.org,2002:str> ",
    "!e!x ",
    "!!omap ",
    "!!foo ",
    "!<> ",
    "!!",
    "!",
    "!%C3%A9 ",
    "!<!x> ",
];

/// The text with that seed.
pub fn text(seed: u64) -> String {
    let mut writer = Writer { random: Random::new(seed), anchors: 0 };
    let mut text = String::new();
    if writer.random.chance(4) {
        text.push_str(writer.random.pick(&[
            "%YAML 1.1\n---\n",
            "%TAG !e! tag:x,2:\n---\n",
            "%YAML 1.2\n---\n",
            "%YAML 2.0\n---\n",
            "%FOO bar\n---\n",
            "\u{feff}",
            "%TAG ! !x\n---\n",
            "%YAML 1.1\n%YAML 1.1\n---\n",
            "%\n",
            "%YAML 1.\n--- ",
        ]));
    }
    if writer.random.chance(12) {
        text.push_str(writer.random.pick(&[
            "---\n",
            "--- ",
            "---\t",
            "# c\n",
            "\n",
            "--- # c\n",
            "...\n",
            "---",
        ]));
    }
    let node = writer.node(0, 0);
    text.push_str(node.trim_start_matches('\n'));
    if writer.random.chance(70) {
        text.push('\n');
    }
    if writer.random.chance(10) {
        text.push_str(writer.random.pick(&[
            "---\nb: 1\n",
            "...\n",
            "...\nx",
            "# end",
            "--- x",
            "\n\n",
            "  \n",
            "\t",
            "...\n%YAML 1.1\n---\na",
        ]));
    }
    if writer.random.chance(25) {
        text = damage(&mut writer.random, &text);
    }
    text
}

/// A rendered file: documents with heads and hooks, sometimes broken.
pub fn manifest(seed: u64) -> String {
    let mut random = Random::new(seed ^ 0x6d61_6e69);
    let mut text = String::new();
    for i in 0..=random.below(4) {
        if i > 0 || random.chance(40) {
            text.push_str(random.pick(&[
                "---\n",
                "\n---\n",
                "--- # c\n",
                "---",
                " ---\n",
                "\n\n---  \n",
                "---\n---\n",
                "---\r\n",
                "----\n",
                "--- \na: 1\n",
            ]));
        }
        if random.chance(15) {
            let inner = random.next();
            text.push_str(&self::text(inner));
            continue;
        }
        let kind = random.one(&[
            "Pod",
            "Service",
            "Job",
            "Foo",
            "ConfigMap",
            "Namespace",
            "",
            "List",
            "Secret",
            "Deployment",
            "Ingress",
            "1",
            "{}",
            "MutatingWebhookConfiguration",
            "ValidatingWebhookConfiguration",
            "APIService",
        ]);
        text.push_str(&format!(
            "apiVersion: {}\nkind: {kind}\nmetadata:\n  name: n{i}\n",
            random.one(&["v1", "1", "", "a/b"])
        ));
        if random.chance(35) {
            let hook = random.one(&[
                "pre-install",
                "post-install,pre-upgrade",
                "test",
                "crd-install",
                "\"\"",
                " test , pre-delete ",
                "test-success",
                "1",
                "[a]",
                "pre-install, nope",
                "Test",
            ]);
            text.push_str(&format!("  annotations:\n    helm.sh/hook: {hook}\n"));
            if random.chance(60) {
                text.push_str(&format!(
                    "    helm.sh/hook-weight: {}\n",
                    random.one(&["\"5\"", "\"-3\"", "2", "\"x\"", "\"1.5\"", "\"+4\"", "\" 1\""])
                ));
            }
            if random.chance(30) {
                text.push_str(&format!(
                    "    helm.sh/hook-delete-policy: {}\n",
                    random.one(&["hook-succeeded", "before-hook-creation, hook-failed", "nope", "\"\""])
                ));
            }
        }
        if random.chance(40) {
            text.push_str(random.pick(&[
                "data: {a: b}\n",
                "spec:\n  x: |\n    ---\n    y\n",
                "# comment\n",
                "\n\n",
                "x: \"---\"\n",
                "metadata: 1\n",
                "kind: [a]\n",
                "  bad\n",
                "\tx: 1\n",
                "data:\n  a: |\n    x  \n\n\n",
            ]));
        }
    }
    if random.chance(10) { damage(&mut random, &text) } else { text }
}

fn damage(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    for _ in 0..=random.below(2) {
        let at = random.below(characters.len() + 1);
        match random.below(3) {
            0 if at < characters.len() => {
                characters.remove(at);
            }
            1 if at < characters.len() => characters.insert(at, characters[at]),
            _ => {
                let strange = random.one(&[
                    ':',
                    ' ',
                    '\n',
                    '\t',
                    '-',
                    '#',
                    '[',
                    ']',
                    '{',
                    '}',
                    ',',
                    '"',
                    '\'',
                    '|',
                    '>',
                    '&',
                    '*',
                    '!',
                    '%',
                    '@',
                    '`',
                    '?',
                    '\r',
                    '\u{85}',
                    '\u{a0}',
                    '\u{feff}',
                    '\u{1}',
                    '\u{7f}',
                    'é',
                    '\u{1F600}',
                    '\\',
                    '0',
                    '~',
                    '\u{2028}',
                ]);
                characters.insert(at, strange);
            }
        }
    }
    characters.into_iter().collect()
}

struct Writer {
    random: Random,
    anchors: usize,
}

impl Writer {
    fn pad(indent: usize) -> String {
        " ".repeat(indent)
    }

    /// The text behind `key:` or `-`, with the space before it; block collections start with a line break.
    fn node(&mut self, indent: usize, depth: usize) -> String {
        let mut properties = String::new();
        if self.random.chance(7) {
            self.anchors += 1;
            properties.push_str(&format!("&x{} ", self.anchors));
        }
        if self.random.chance(7) {
            properties.push_str(self.random.pick(TAGS));
        }
        let below = if depth > 3 { 55 } else { 100 };
        match self.random.below(below) {
            0..=29 => format!("{properties}{}", self.random.pick(SCALARS)),
            30..=39 => format!("{properties}{}", self.random.pick(QUOTED)),
            40..=43 if self.anchors > 0 => format!("*x{}", 1 + self.random.below(self.anchors + 1)),
            40..=46 => format!("{properties}{}", self.block(indent)),
            47..=48 => format!(
                "{properties}{}\n{}{}",
                self.random.pick(SCALARS),
                Self::pad(indent + self.random.below(3)),
                self.random.pick(SCALARS)
            ),
            49..=54 => format!("{properties}{}", self.flow(depth)),
            55..=84 => format!("{}{}", properties.trim_end(), self.mapping(indent, depth)),
            _ => format!("{}{}", properties.trim_end(), self.sequence(indent, depth)),
        }
    }

    fn mapping(&mut self, indent: usize, depth: usize) -> String {
        let mut text = String::new();
        let count = 1 + self.random.below(4);
        for _ in 0..count {
            text.push('\n');
            if self.random.chance(4) {
                text.push_str(self.random.pick(&["# c\n", "\n", "  # c\n", "\t\n", "#\n"]));
            }
            text.push_str(&Self::pad(indent));
            let key = match self.random.below(20) {
                0 => self.random.pick(SCALARS).to_owned(),
                1 => self.random.pick(QUOTED).to_owned(),
                2 => "<<".to_owned(),
                3 => self.flow(3),
                4 => format!("&k {}", self.random.pick(&["a", "b"])),
                5 => format!("? {}\n{}", self.random.pick(&["a", "[a]", "- a", "|\n  x"]), Self::pad(indent)),
                _ => self.random.pick(&["a", "b", "c", "key", "1", "y", "a b", "long-key", "é"]).to_owned(),
            };
            let step = self.random.one(&[2, 2, 2, 4, 1, 0]);
            let value = self.node(indent + step, depth + 1);
            let space = if value.starts_with('\n') {
                self.random.one(&["", " ", " # c"])
            } else {
                self.random.one(&[" ", " ", " ", "  ", "\t", ""])
            };
            text.push_str(&format!("{key}:{space}{value}"));
            if self.random.chance(5) {
                text.push_str(self.random.pick(&[" # c", " ", "\t", " #", "#x"]));
            }
        }
        text
    }

    fn sequence(&mut self, indent: usize, depth: usize) -> String {
        let mut text = String::new();
        let count = 1 + self.random.below(4);
        for _ in 0..count {
            text.push('\n');
            text.push_str(&Self::pad(indent));
            let value = self.node(indent + 2, depth + 1);
            let compact = value.starts_with('\n') && self.random.chance(70);
            let value = if compact { value.trim_start().to_owned() } else { value };
            text.push_str(&format!("-{}{value}", self.random.one(&[" ", " ", " ", " ", "  ", "\t", ""])));
        }
        text
    }

    fn flow(&mut self, depth: usize) -> String {
        let (open, close, pairs) = self.random.one(&[("[", "]", false), ("{", "}", true)]);
        let mut text = open.to_owned();
        let count = self.random.below(4);
        for i in 0..count {
            if i > 0 {
                text.push_str(self.random.pick(&[", ", ",", ",\n  ", " ,", ", # c\n "]));
            }
            let item = match self.random.below(10) {
                0..=5 => self.random.pick(SCALARS).to_owned(),
                6 => self.random.pick(QUOTED).to_owned(),
                7 if depth < 5 => self.flow(depth + 1),
                8 if self.anchors > 0 => "*x1".to_owned(),
                9 => format!("{}{}", self.random.pick(TAGS), self.random.pick(&["", "a", "1"])),
                _ => "a".to_owned(),
            };
            if pairs || self.random.chance(10) {
                let value = self.random.pick(SCALARS).to_owned();
                let between = self.random.one(&[": ", ": ", ":", " : ", "", "? "]);
                text.push_str(&format!("{item}{between}{value}"));
            } else {
                text.push_str(&item);
            }
        }
        if self.random.chance(10) {
            text.push_str(self.random.pick(&[",", " ", "\n", ", ,"]));
        }
        if !self.random.chance(3) {
            text.push_str(close);
        }
        text
    }

    fn block(&mut self, indent: usize) -> String {
        let mut text = self
            .random
            .pick(&[
                "|", ">", "|-", "|+", ">-", ">+", "|2", ">1-", "|-2", "|+3", "|0", "|10", "|--", "| # c",
                "|x",
            ])
            .to_owned();
        let count = self.random.below(5);
        let base = indent + self.random.one(&[2, 2, 2, 1, 0, 4]);
        for _ in 0..count {
            text.push_str(self.random.pick(&["\n", "\n", "\n", "\n\n", "\n \n", "\n\t\n", "\r\n"]));
            let deeper = self.random.one(&[0, 0, 0, 0, 1, 3]);
            text.push_str(&Self::pad(base + deeper));
            text.push_str(self.random.pick(&[
                "line",
                "two words",
                "x: y",
                "# no comment",
                "- a",
                "",
                "\ttab",
                "trailing  ",
                "é\u{85}x",
                "---",
                "\u{feff}",
            ]));
        }
        text.push_str(self.random.pick(&["", "", "\n", "\n\n", "\n  \n"]));
        text
    }
}
