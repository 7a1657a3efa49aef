//! Random programs in Go's template language with Helm's functions, and values for them. Most arguments have
//! the type that is wanted, so that programs get somewhere; some have not, so that errors are compared, too.

use super::functions::FUNCTIONS;
use super::pools::{
    FLOATS, FORMATS, INTS, JSONS, KEYS, PATHS, PATTERNS, SMALL, STRINGS, TIMES, TOMLS, URLS, VALUES,
    VERSIONS, YAMLS,
};
use crate::random::Random;
use serde_json::{Value, json};

/// The case with that seed.
pub fn case(seed: u64) -> Value {
    let mut writer = Writer { random: Random::new(seed), variables: vec![], depth: 0, defines: 0, loops: 0 };
    let values = values(&mut writer.random);
    let mut text = String::new();
    if writer.random.chance(30) {
        for _ in 0..=writer.random.below(2) {
            writer.defines += 1;
            let body = writer.body(2);
            text.push_str(&format!("{{{{ define \"t{}\" }}}}{body}{{{{ end }}}}", writer.defines));
        }
    }
    writer.variables.clear();
    let pieces = 1 + writer.random.below(3);
    text.push_str(&writer.body(pieces));
    if writer.random.chance(4) {
        text = damage(&mut writer.random, &text);
    }
    json!({"files": {"templates/NOTES.txt": text}, "values": values.to_string()})
}

/// Takes a character out, doubles one, or puts a strange one in: programs that may not parse.
fn damage(random: &mut Random, text: &str) -> String {
    let mut characters: Vec<char> = text.chars().collect();
    let at = random.below(characters.len());
    match random.below(3) {
        0 => {
            characters.remove(at);
        }
        1 => characters.insert(at, characters[at]),
        _ => {
            let strange = random.one(&[
                '}', '{', '"', '`', '(', ')', '|', '$', '.', ' ', '\n', '-', '\'', '@', ':', '=', ',', '\\',
                'é', '/', '*', '0',
            ]);
            characters.insert(at, strange);
        }
    }
    characters.into_iter().collect()
}

fn values(random: &mut Random) -> Value {
    let strings = [
        "",
        "a",
        "hello world",
        "x\ny",
        "1",
        "true",
        "äöü",
        "a,b,c",
        "{{ .Values.i }}",
        "Foo_Bar-baz",
        "  ",
        "1.2.3",
        "{{ fail \"no\" }}",
        "null",
        "a: 1",
    ];
    let mut string = || random.one(&strings);
    let (s, t, u, ns) = (string(), string(), string(), string());
    let l = [
        json!(string()),
        json!(3),
        json!(null),
        json!([1, string()]),
        json!({"a": string()}),
        json!(true),
        json!(1.5),
    ];
    let ls = [json!(string()), json!(string()), json!(string())];
    let number = random.one(&[0.5, 1e6, 1e21, -3.25, 1e-9, 100.0, 123456789.0]);
    let l: Vec<_> = l.iter().filter(|_| random.chance(60)).cloned().collect();
    json!({
        "s": s, "t": t, "u": u, "i": random.below(12), "j": random.one(&[0, 1, 80, 8080, 1_000_000, -5]), "f": 2.5, "g": number,
        "big": 1_000_650_000, "neg": -7, "yes": true, "no": false, "nil": null, "l": l, "ls": ls, "ln": [3, 1, 2.5], "el": [], "ed": {},
        "d": {"a": 1, "b": {"c": "x", "d": null}, "z": [1, {"k": "v"}]}, "nested": {"s": ns, "deep": {"er": [ns]}},
        "lm": [{"name": "one", "port": 80}, {"name": ns, "port": 443.5}],
    })
}

struct Writer {
    random: Random,
    variables: Vec<String>,
    depth: usize,
    defines: usize,
    loops: usize,
}

impl Writer {
    fn body(&mut self, pieces: usize) -> String {
        let mut text = String::new();
        for _ in 0..pieces {
            if self.random.chance(50) {
                text.push_str(self.random.pick(&[
                    "x",
                    " ",
                    "\n",
                    "a: ",
                    "  - b\n",
                    "é",
                    "{ }",
                    "\n\n  ",
                    "}}",
                    "---\n",
                    "\t",
                    "<no value>",
                ]));
            }
            text.push_str(&self.action());
        }
        text
    }

    fn open(&mut self) -> &'static str {
        self.random.one(&["{{ ", "{{ ", "{{", "{{- ", "{{ ", "{{-\n"])
    }

    fn close(&mut self) -> &'static str {
        self.random.one(&[" }}", " }}", "}}", " -}}", " }}", "\n-}}"])
    }

    fn tag(&mut self, inside: &str) -> String {
        format!("{}{inside}{}", self.open(), self.close())
    }

    fn action(&mut self) -> String {
        self.depth += 1;
        let deep = self.depth > 3;
        let text = match self.random.below(if deep { 60 } else { 100 }) {
            0..=44 => {
                let inside = self.pipeline();
                self.tag(&inside)
            }
            45..=51 => {
                let inside = self.pipeline();
                let fresh = self.variables.is_empty() || self.random.chance(70);
                let name = if fresh { format!("$v{}", self.variables.len()) } else { self.variable() };
                let text = self.tag(&format!("{name} {} {inside}", if fresh { ":=" } else { "=" }));
                if fresh {
                    self.variables.push(name);
                }
                text
            }
            52..=53 => self
                .random
                .one(&["{{/* c */}}", "{{- /* c\n */ -}}", "{{ /* c */ }}", "{{/* c }}*/}}"])
                .to_owned(),
            54 => self
                .random
                .one(&["{{ break }}", "{{ continue }}", "{{ end }}", "{{ else }}", "{{}}", "{{ . }"])
                .to_owned(),
            55..=57 if self.defines > 0 => {
                let inside = format!(
                    "template \"t{}\" {}",
                    1 + self.random.below(self.defines + 1),
                    self.operand('a')
                );
                if self.defines > 1 || self.random.chance(10) { self.tag(&inside) } else { String::new() }
            }
            55..=59 => {
                let inside = self.pipeline();
                self.tag(&inside)
            }
            60..=73 => self.branch("if"),
            74..=81 => self.branch("with"),
            82..=95 => self.range(),
            96..=97 => {
                let (body, argument) = (self.scoped(1), self.operand('a'));
                let number = self.random.below(3);
                let open = self.tag(&format!("block \"b{number}\" {argument}"));
                format!("{open}{body}{{{{ end }}}}")
            }
            _ => {
                let body = self.scoped(1);
                self.defines += 1;
                format!("{{{{ define \"t{}\" }}}}{body}{{{{ end }}}}", self.defines)
            }
        };
        self.depth -= 1;
        text
    }

    fn scoped(&mut self, pieces: usize) -> String {
        let before = self.variables.len();
        let text = self.body(pieces);
        self.variables.truncate(before);
        text
    }

    fn branch(&mut self, word: &str) -> String {
        let before = self.variables.len();
        let condition = self.pipeline();
        let declared = self.random.chance(20);
        let name = format!("$v{before}");
        let inside =
            if declared { format!("{word} {name} := {condition}") } else { format!("{word} {condition}") };
        if declared {
            self.variables.push(name);
        }
        let mut text = self.tag(&inside);
        text.push_str(&self.body(1));
        if self.random.chance(30) {
            let condition = self.pipeline();
            text.push_str(&self.tag(&format!("else {word} {condition}")));
            text.push_str(&self.body(1));
        }
        if self.random.chance(40) {
            text.push_str(&self.tag("else"));
            text.push_str(&self.body(1));
        }
        text.push_str(&self.tag("end"));
        self.variables.truncate(before);
        text
    }

    fn range(&mut self) -> String {
        let before = self.variables.len();
        let kind = self.random.one(&['l', 'l', 'd', 'k', 'a', 'l']);
        let over = self.operand(kind);
        let (first, second) = (format!("$v{before}"), format!("$v{}", before + 1));
        let inside = match self.random.below(4) {
            0 => {
                self.variables.push(first.clone());
                format!("range {first} := {over}")
            }
            1 | 2 => {
                self.variables.extend([first.clone(), second.clone()]);
                format!("range {first}, {second} := {over}")
            }
            _ => format!("range {over}"),
        };
        let mut text = self.tag(&inside);
        self.loops += 1;
        text.push_str(&self.body(1));
        if self.random.chance(10) {
            let condition = self.operand('b');
            text.push_str(&format!(
                "{{{{ if {condition} }}}}{{{{ {} }}}}{{{{ end }}}}",
                self.random.one(&["break", "continue"])
            ));
        }
        self.loops -= 1;
        if self.random.chance(25) {
            text.push_str("{{ else }}none");
        }
        text.push_str("{{ end }}");
        self.variables.truncate(before);
        text
    }

    fn variable(&mut self) -> String {
        if self.variables.is_empty() {
            "$".to_owned()
        } else {
            self.variables[self.random.below(self.variables.len())].clone()
        }
    }

    fn pipeline(&mut self) -> String {
        let mut text = if self.random.chance(70) { self.call() } else { self.operand('a') };
        while self.random.chance(25) {
            let piped = self.piped();
            let spaces = self.random.one(&[" | ", "|", " |\n "]);
            text = format!("{text}{spaces}{piped}");
        }
        text
    }

    /// A call whose last argument comes through the pipe; never one whose last argument counts something.
    fn piped(&mut self) -> String {
        loop {
            let (name, wanted) = self.random.one(FUNCTIONS);
            let wanted: Vec<char> = wanted.chars().filter(|c| *c != '*').collect();
            let Some((last, fixed)) = wanted.split_last() else { continue };
            if matches!(last, 'k' | 'i' | 't') || name == "seq" {
                continue;
            }
            return self.with_arguments(name, fixed);
        }
    }

    fn call(&mut self) -> String {
        if self.random.chance(6) {
            return self
                .random
                .one(&[
                    "keys .Values.d | sortAlpha",
                    "values .Values.d | len",
                    "include \"t1\" .",
                    "include \"t2\" $",
                    "tpl .Values.s .",
                    "tpl .Values.t $",
                    "tpl \"{{ .Values.s }}-{{ $x := 1 }}{{ $x }}\" .",
                    "include \"missing\" .",
                    "tpl \"{{ define \\\"q\\\" }}Q{{ . }}{{ end }}{{ include \\\"q\\\" 1 }}\" .",
                    "index .Values.lm 0 \"name\"",
                    "index .Values \"d\" \"b\" \"c\"",
                    "(index .Values.lm 1).port",
                    ".Values.nested.deep.er.x",
                    ".Values.missing.x.y",
                    ".Values.s.x",
                    "(dict \"a\" (dict \"b\" 1)).a.b",
                    ".Values.lm.name",
                    "(list 1 2).x",
                    "$.Values.d.b.c",
                    ".Files.Get \"x\"",
                    ".Capabilities.APIVersions.Has \"v1\"",
                    "(semver \"1.2.3\").Major",
                    "(semver \"1.2.3\").Compare",
                    "\"x\".y",
                    "1.Foo",
                    "nil.x",
                    ".Chart.Nope",
                    ".Release.Nope",
                    ".Template.BasePath",
                    "and .Values.nil (fail \"x\")",
                    "or .Values.s (fail \"x\")",
                    ".Values.s 1",
                    "(.Values.s) 1",
                    "$ 1",
                    "1 2",
                    "nil",
                    "| quote",
                    "(toDate \"2006-01-02\" \"2024-02-29\").Year",
                    ".Values.l.x",
                ])
                .to_owned();
        }
        let (name, wanted) = self.random.one(FUNCTIONS);
        let mut wanted: Vec<char> = wanted.chars().collect();
        if wanted.last() == Some(&'*') {
            wanted.pop();
            let last = wanted.last().copied().unwrap_or('a');
            wanted.extend(std::iter::repeat_n(last, self.random.below(3)));
        }
        if self.random.chance(2) {
            wanted.pop();
        } else if self.random.chance(2) {
            wanted.push('a');
        }
        self.with_arguments(name, &wanted)
    }

    fn with_arguments(&mut self, name: &str, wanted: &[char]) -> String {
        let mut text = name.to_owned();
        for kind in wanted {
            text.push(' ');
            let kind = if !matches!(kind, 'k' | 't') && self.random.chance(2) {
                self.random.one(&['s', 'i', 'n', 'b', 'l', 'd', 'a'])
            } else {
                *kind
            };
            text.push_str(&self.operand(kind));
        }
        text
    }

    fn operand(&mut self, kind: char) -> String {
        if self.depth < 4 && !matches!(kind, 'k' | 't' | 'i') && self.random.chance(12) {
            self.depth += 1;
            let inside = self.pipeline();
            self.depth -= 1;
            return format!("({inside})");
        }
        if !self.variables.is_empty() && !matches!(kind, 'k' | 't' | 'i') && self.random.chance(15) {
            return self.variable();
        }
        if let Some((_, paths)) = VALUES.iter().find(|(k, _)| *k == kind) {
            if self.random.chance(if matches!(kind, 'l' | 'd') { 100 } else { 35 }) {
                return self.random.one(paths).to_owned();
            }
        }
        let literals = match kind {
            's' => STRINGS,
            'i' => INTS,
            'k' => SMALL,
            'n' => self.random.one(&[INTS, FLOATS, SMALL]),
            'b' => &["true", "false"],
            'r' => PATTERNS,
            'v' => VERSIONS,
            'f' => FORMATS,
            'y' => YAMLS,
            'j' => JSONS,
            'o' => TOMLS,
            'u' => URLS,
            'p' => PATHS,
            'c' => KEYS,
            't' => TIMES,
            _ => {
                let kind = self.random.one(&['s', 'i', 'n', 'b', 'l', 'd', 'n', 's']);
                return self.operand(kind);
            }
        };
        self.random.one(literals).to_owned()
    }
}
