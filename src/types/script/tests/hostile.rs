//! Scripts that do not end, grow, fall deep or talk nonsense: each ends with a place, and the next call is
//! fine.

use super::{Fake, PODSET, load, observed, parent, place, quick, run};
use crate::contract::Limits;
use expect_test::expect;
use std::time::Duration;

fn fails(text: &str, limits: &Limits) -> String {
    let program = load(text).unwrap();
    let error = program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), limits).unwrap_err();
    format!("{}: {}", place(&error), error.message)
}

#[test]
fn limits_end_a_call_and_nothing_else() {
    let cases = [
        ("export function reconcile() {\n  while (true) {}\n}", "did not end", "x.ts:2:3"),
        (
            "export function reconcile() {\n  let n = 0;\n  for (;;) n += Math.abs(n);\n}",
            "did not end",
            "x.ts:3:",
        ),
        (
            "export function reconcile() {\n  const all = [];\n  for (;;) all.push({ x: [1, 2, 3] });\n}",
            "of memory",
            "x.ts:3:",
        ),
        (
            "import { list } from \"opdev\";\nexport function reconcile() {\n  const all = [];\n  for (let i = 0; i < 9; i++) list(\"v1/Pod\");\n  function grow() {\n    all.push(\"x\" + all.length);\n  }\n  for (;;) grow();\n}",
            "of memory",
            "x.ts:",
        ),
        (
            "function f(n) {\n  return f(n + 1) + 1;\n}\nexport function reconcile() {\n  return f(0);\n}",
            "too deeply",
            "x.ts:2:",
        ),
        (
            "async function f() {\n  for (;;) await null;\n}\nexport async function reconcile() {\n  await f();\n}",
            "did not end",
            "x.ts:",
        ),
        (
            "export function reconcile() {\n  const f = () => Promise.resolve().then(f);\n  return f();\n}",
            "",
            "x.ts:",
        ),
        (
            "export function reconcile() {\n  return /^(a+)+$/.test(\"a\".repeat(40) + \"!\");\n}",
            "did not end",
            "x.ts:2:",
        ),
        ("export function reconcile() {\n  return \"x\".repeat(2 ** 29);\n}", "of memory", "x.ts:2:"),
        (
            "export function reconcile() {\n  return new Array(2 ** 28).fill(0).join(\"x\");\n}",
            "of memory",
            "x.ts:2:",
        ),
        ("export function reconcile() {\n  let s = \"x\";\n  for (;;) s += s;\n}", "", "x.ts:3:"),
        (
            "export function reconcile() {\n  const a = [];\n  a.length = 4e9;\n  return a.sort();\n}",
            "",
            "x.ts:",
        ),
        ("export function reconcile() {\n  return JSON.parse(\"[\".repeat(100000));\n}", "", "x.ts:2:"),
        (
            "export async function reconcile() {\n  await new Promise(() => {});\n}",
            "never settled",
            "x.ts:1:",
        ),
        (
            "export function reconcile() {\n  for (;;) { try { for (;;) Math.abs(1); } catch { } }\n}",
            "did not end",
            "x.ts:2:",
        ),
        (
            "export function reconcile() {\n  return { get status() { for (;;) Math.abs(1); } };\n}",
            "did not end",
            "x.ts:2:",
        ),
        (
            "export function reconcile() {\n  return new Proxy({}, { ownKeys() { for (;;) Math.abs(1); } });\n}",
            "did not end",
            "x.ts:2:",
        ),
    ];
    for (text, words, at) in cases {
        // A test of memory may take its time on a busy machine.
        let time = if words == "of memory" { Duration::from_secs(60) } else { Duration::from_millis(500) };
        let failure = fails(text, &Limits { time, ..quick() });
        assert!(failure.contains(words) && failure.starts_with(at), "{text}: {failure}");
    }
    assert!(run(PODSET).is_ok(), "the process is fine afterwards");
}

#[test]
fn memory_may_run_out_at_any_moment() {
    let bodies = [
        "let o = {}; for (let i = 0;; i++) o[\"k\" + i] = { i };",
        "const m = new Map(); for (let i = 0;; i++) m.set(i, new Map([[i, () => m]]));",
        "const a = []; for (;;) a.push(JSON.parse(\"[1,{}]\"), new Error(\"x\"), /a(b)c/g.exec(\"abc\"), 1n << BigInt(a.length));",
        "const a = []; for (;;) { try { a.push(new Array(100).fill({})); } catch (e) { a.push(e); } }",
        "const a = []; for (;;) a.push(get(\"v1/Pod\", \"x\" + a.length), event(\"Normal\", \"X\", \"m\"), replicas([], 10, { kind: \"Pod\", apiVersion: \"v1\", metadata: {} }));",
    ];
    for body in bodies {
        let text = format!(
            "import {{ get, event, replicas }} from \"opdev\"; export function reconcile() {{ {body} }}"
        );
        let program = load(&text).unwrap();
        for memory in [40_000, 300_001, 1_300_003] {
            let limits = Limits { time: Duration::from_millis(500), memory, ..quick() };
            let done = program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &limits);
            assert!(done.unwrap_err().place.is_some(), "{body}");
        }
    }
    assert!(run(PODSET).is_ok());
}

#[test]
fn one_long_native_operation_is_left_behind() {
    // Nothing can interrupt this from inside; it ends by itself after a while.
    let text = "export function reconcile(self) {\n  if (self.spec.replicas === 3) \"a\".repeat(6e4).indexOf(\"a\".repeat(3e4) + \"b\");\n  return {};\n}";
    let program = load(text).unwrap();
    let tight = Limits { time: Duration::from_millis(50), ..quick() };
    let call = |replicas: u32, limits: &Limits| {
        let mut parent = parent();
        parent["spec"]["replicas"] = replicas.into();
        program.reconcile(&observed(parent, Vec::new()), &Fake::default(), limits)
    };
    let first = call(3, &tight).unwrap_err();
    expect!["config/reconcilers/x.ts did not end within 50 ms and is inside one operation that cannot be interrupted"]
    .assert_eq(&first.message);
    let second = call(1, &tight).unwrap_err();
    expect!["config/reconcilers/x.ts is not called: an earlier call is still inside one operation that cannot be interrupted"]
    .assert_eq(&second.message);
    // Once it is done the script is called again.
    while let Err(error) = call(1, &quick()) {
        expect!["config/reconcilers/x.ts is not called: an earlier call is still inside one operation that cannot be interrupted"]
        .assert_eq(&error.message);
        std::thread::yield_now();
    }
    assert!(run(PODSET).is_ok());
}

#[test]
fn nonsense_is_named_with_its_path_and_place() {
    let cases = [
        ("return 7;", "the answer is the number 7, not an object", "x.ts:2:1"),
        ("return [];", "the answer is a list", "x.ts:2:1"),
        ("", "the answer is missing", "x.ts:1:17"),
        (
            "return { childs: [] };",
            "childs is not a part of an answer; did you mean `children`?",
            "x.ts:2:10",
        ),
        ("return { children: {} };", "children is an object, not a list", "x.ts:2:10"),
        ("return { children: [{ kind: \"Pod\" }] };", "children[0].apiVersion is missing", "x.ts:2:10"),
        (
            "return { children: [{ apiVersion: \"v1\", kind: \"Pod\", metadata: {} }] };",
            "children[0].metadata.name is missing",
            "x.ts:2:10",
        ),
        ("return { children: [[]] };", "children[0] is a list; spread it", "x.ts:2:10"),
        ("return { status: { n: NaN } };", "status.n is NaN", "x.ts:2:10"),
        (
            "return { status: { a: { \"b-c\": [() => 1] } } };",
            "status.a[\"b-c\"][0] is a function",
            "x.ts:2:10",
        ),
        (
            "return { status: { p: Promise.resolve(1) } };",
            "status.p is a Promise; write `await`",
            "x.ts:2:10",
        ),
        ("return { status: new Map([[1, 2]]) };", "status is a Map", "x.ts:2:10"),
        ("return { status: { n: 2 ** 60 } };", "status.n is 1152921504606846976, beyond 2^53", "x.ts:2:10"),
        ("return { status: { n: 2n ** 70n } };", "status.n is an integer of more than 64 bits", "x.ts:2:10"),
        (
            "const a = {}; a.a = a; return { status: a };",
            "nested deeper than 100 levels, or contains itself",
            "x.ts:2:33",
        ),
        ("return { status: { a: [undefined] } };", "status.a[0] is undefined", "x.ts:2:10"),
        ("return { requeueAfter: \"soon\" };", "requeueAfter is \"soon\", not a time", "x.ts:2:10"),
        (
            "return { conditions: [{ type: \"Ready\" }] };",
            "conditions[0] of type Ready has no status",
            "x.ts:2:10",
        ),
        ("return { patches: [{}] };", "patches[0] is not what patch() makes", "x.ts:2:10"),
        ("return { waiting: true };", "waiting is not a text", "x.ts:2:10"),
        (
            "let a = [1]; for (let i = 0; i < 40; i++) a = [a, a]; return { status: { a } };",
            "is too large",
            "x.ts:2:64",
        ),
    ];
    for (body, words, at) in cases {
        let failure = run(&format!("export function reconcile() {{\n{body}\n}}")).unwrap_err();
        assert!(failure.message.contains(words), "{body}: {}", failure.message);
        assert_eq!(place(&failure), at, "{body}: {}", failure.message);
    }
}

/// A small generator, so that the same texts are made each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

#[test]
fn mutated_scripts_never_panic_or_hang() {
    const WORDS: [&str; 24] = [
        "{",
        "}",
        "(",
        ")",
        "[",
        "]",
        "<",
        ">",
        "as ",
        ": string",
        "=>",
        "`",
        "${",
        "/",
        "*",
        "\n",
        ";",
        "while(1)",
        "await ",
        "import ",
        "owned(\"v1/Pod\")",
        "Ü\u{1F600}",
        "throw ",
        "replicas(",
    ];
    let mut chance = Chance(7);
    let limits = Limits { time: Duration::from_millis(100), memory: 8 << 20, stack: 128 << 10 };
    let mut loaded = 0;
    for _ in 0..200 {
        let mut text: Vec<char> = PODSET.chars().collect();
        for _ in 0..=chance.below(2) {
            let at = chance.below(text.len());
            match chance.below(3) {
                0 => drop(text.drain(at..(at + 1 + chance.below(12)).min(text.len()))),
                1 => drop(text.splice(at..at, WORDS[chance.below(WORDS.len())].chars())),
                _ => {
                    let from = chance.below(text.len());
                    let piece: Vec<char> = text[from..(from + chance.below(30)).min(text.len())].to_vec();
                    drop(text.splice(at..at, piece));
                }
            }
        }
        let text: String = text.into_iter().collect();
        match load(&text) {
            Ok(program) => {
                loaded += 1;
                let done = program.reconcile(&observed(parent(), Vec::new()), &Fake::default(), &limits);
                if let Err(error) = done {
                    assert!(error.place.is_some() && !error.message.is_empty(), "{text}");
                }
            }
            Err(error) => assert!(error.place.is_some() && !error.message.is_empty(), "{text}: {error:?}"),
        }
    }
    assert!(loaded > 10, "{loaded} of 200 could still be loaded");
}

#[test]
fn broken_texts_end_in_a_place() {
    for text in [
        "",
        "\0",
        "export",
        "export function reconcile(",
        "export function reconcile() { return {",
        "const a: = 1; export function reconcile() {}",
        "\u{feff}export function reconcile() { return {} ",
        "export function reconcile() { return {} } await new Promise(() => {});",
        "throw new Error(\"at the top\"); export function reconcile() {}",
        "export const reconcile = 7;",
        "for(;;);",
        "export const owns = 7; export function reconcile() {}",
        "export const owns = [\"Nonsense\"]; export function reconcile() {}",
        "import { owned } from \"opdev\"; owned(\"v1/Pod\"); export function reconcile() {}",
    ] {
        let Err(error) = load(text) else { panic!("{text} was loaded") };
        assert!(error.place.is_some() && !error.message.is_empty(), "{text}: {error:?}");
    }
    for deep in ["(", "[", "{", "a<", "`${", "f(() => ", "x as (", "if (a) "] {
        let _ = load(&deep.repeat(5_000));
    }
    assert!(load(&format!("export function reconcile() {{}} // {}", "x".repeat(2 << 20))).is_err());
}
