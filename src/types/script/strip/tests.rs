//! Types are taken out and nothing else; what is left stands where it stood.

use super::super::syntax::{self, Source};
use super::strip;
use opdev_types::diagnostic::Diagnostic;

fn stripped(text: &str) -> Result<String, Box<Diagnostic>> {
    let source = Source { file: "x.ts", text };
    let tree = syntax::parse(&source)?;
    assert_eq!(tree.broken(), None, "{text}");
    strip(&source, &tree)
}

/// Blanks count once, and lines that only hold a semicolon are as good as empty.
fn squeezed(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace("; ;", ";")
}

#[test]
fn types_go_and_values_stay() {
    let cases = [
        ("const a: string = b as unknown as T;", "const a = b ;"),
        ("let [x, y]: [number, string] = z!, { w }: W = v;", "let [x, y] = z , { w } = v;"),
        (
            "function f<T extends A = B>(this: W, a?: T, ...r: T[]): asserts a is T {}",
            "function f ( a , ...r ) {}",
        ),
        ("const g = async <T,>(x: T): Promise<T> => x;", "const g = async (x ) => x;"),
        ("f<string>(new Map<string, number>(), a?.b<T>(c!.d![0]!));", "f (new Map (), a?.b (c .d [0] ));"),
        ("import type { A } from \"a\";", ";"),
        ("import { type B, C, type D } from \"b\";", "import { C, } from \"b\";"),
        ("import E, { type F } from \"e\"; export { type G, C };", "import E, { } from \"e\"; export { C };"),
        ("import { PodSet } from \"opdev:types\"; x", "; x"),
        ("export type H = { a: string }; export interface I<T> extends J { k(): T }", ";"),
        ("declare module \"m\" { }", ";"),
        ("declare const n: number;", ";"),
        ("try { } catch (e: unknown) { }", "try { } catch (e ) { }"),
        (
            "const o = { m<T>(a: T): T { return a }, get p(): string { return \"\" } } satisfies O;",
            "const o = { m (a ) { return a }, get p() { return \"\" } } ;",
        ),
        (
            "const p = (x as q.r.s).t, u = v as w.x.y<z> | undefined, a = b as C[\"d\"][];",
            "const p = (x ).t, u = v , a = b ;",
        ),
        ("const t = tag<string>`x${y as string}`;", "const t = tag `x${y }`;"),
        (
            "type Of = 1; let type = 2, as = 3, declare = 4; type = as;",
            "; let type = 2, as = 3, declare = 4; type = as;",
        ),
        (
            "const s = \"a as b\", r = /a<b>(c): d/g, c = a < b && d > (e);",
            "const s = \"a as b\", r = /a<b>(c): d/g, c = a < b && d > (e);",
        ),
        ("namespace N { export type A = 1 }", ";"),
        ("interface V<in out A, in B, out C> { a: A }", ";"),
        ("// a comment: string\n/* as T */ x", "// a comment: string /* as T */ x"),
    ];
    for (text, expected) in cases {
        assert_eq!(squeezed(&stripped(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn members_of_classes() {
    let text = "abstract class A<T> extends B<T> implements C {\n  private readonly x: number = 1\n  public [k] = 2\n  declare w: string\n  v!: T\n  abstract m(): void\n  [key: string]: any\n  foo(): void\n  override foo(a?: T): void { }\n  get: number\n  bar() {}\n  static async *gen(): G {}\n}";
    let expected =
        "class A extends B { x = 1 ; [k] = 2 ; v ; ; foo(a ) { } get; bar() {} static async *gen() {} }";
    assert_eq!(squeezed(&stripped(text).unwrap()), expected);
}

#[test]
fn no_two_statements_become_one() {
    let cases = [
        ("const a = b as T\n(c)()", "const a = b ; (c)()"),
        ("const a = b as T\n[0].c", "const a = b ; [0].c"),
        ("a = b satisfies T\n-c", "a = b -c"),
        ("foo\ninterface X { }\n(bar)()", "foo ; (bar)()"),
        ("foo\ntype X = Y;\n[bar].x", "foo ; [bar].x"),
        ("class A { x = y\n private *g() {} }", "class A { x = y ; *g() {} }"),
        ("return_ = <\nT>(x: T) => x", "return_ = ( x ) => x"),
        ("f = (a: string\n):\n  | A\n  | B => a", "f = (a ) => a"),
    ];
    for (text, expected) in cases {
        assert_eq!(squeezed(&stripped(text).unwrap()), expected, "{text}");
    }
}

#[test]
fn every_character_stays_in_its_place() {
    let text = "const é: string = \"ü\" as string, 日本: Größe = { a: 1 }\ninterface Ü {\n  größe: \"ß\"\n}\nfoo(é!, <T,>(ö: T): T => ö)\r\nlet z: { 𝒳: 1 } = 𝒴 as Z\n";
    let out = stripped(text).unwrap();
    let (a, b): (Vec<&str>, Vec<&str>) = (text.split('\n').collect(), out.split('\n').collect());
    assert_eq!(a.len(), b.len());
    for (a, b) in a.iter().zip(&b) {
        assert_eq!(a.chars().count(), b.chars().count(), "{a}\n{b}");
        for (x, y) in a.chars().zip(b.chars()) {
            assert!(x == y || matches!(y, ' ' | ';' | '(' | ')'), "{a}\n{b}");
        }
    }
}

#[test]
fn what_is_more_than_a_type_is_refused_with_its_place() {
    let cases = [
        ("\n  enum A { B }", "an enum", 2, 3),
        ("const enum A { B }", "an enum", 1, 1),
        ("namespace N { export const a = 1 }", "a namespace with values", 1, 1),
        ("class A { constructor(private x: string) { } }", "a parameter that is also a property", 1, 23),
        ("@dec class A { }", "a decorator", 1, 1),
        ("const x = <string>y;", "a type in angle brackets", 1, 11),
        ("import a = require(\"a\");", "require", 1, 1),
        ("export = x;", "export =", 1, 1),
    ];
    for (text, words, line, column) in cases {
        let error = stripped(text).unwrap_err();
        assert!(error.message.contains(words), "{text}: {}", error.message);
        assert!(error.hint.is_some());
        let place = error.place.unwrap();
        assert_eq!((place.line, place.column), (line, column), "{text}");
    }
}
