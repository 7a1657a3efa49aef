//! Programs that would never end or take all memory: each is refused, where Helm itself hangs or dies.

use super::context::Context;
use super::golden::render;
use super::set::TemplateSet;
use super::value::Value;
use super::{Compat, Environment, FuncError, on_deep_stack};

/// An environment that has enough after some time, as whoever waits for a render does.
struct Impatient {
    asked: std::cell::Cell<u32>,
    patience: u32,
}

impl Environment for Impatient {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::UNIX_EPOCH
    }

    fn random(&self, buffer: &mut [u8]) {
        for (at, byte) in buffer.iter_mut().enumerate() {
            *byte = u8::try_from((at * 197 + 31) % 251).unwrap();
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<serde_json::Value, FuncError> {
        Err("no cluster".into())
    }

    fn give_up(&self) -> Option<&'static str> {
        self.asked.set(self.asked.get() + 1);
        (self.asked.get() > self.patience).then_some("enough")
    }
}

/// A function that takes long asks in between, also where one call is all there is.
#[test]
fn long_work_is_broken_off_from_inside() {
    let programs = [
        "{{ range until 1000000 }}{{ end }}",
        "{{ genPrivateKey \"rsa\" }}",
        "{{ genCA \"a\" 365 }}",
        "{{ genSelfSignedCert \"a\" nil nil 365 }}",
        "{{ range until 10 }}{{ bcrypt \"a\" }}{{ end }}",
        "{{ range until 10 }}{{ derivePassword 1 \"long\" \"p\" \"u\" \"s\" }}{{ end }}",
        "{{ regexFindAll \".*?b|a\" (repeat 3000 \"a\") -1 | len }}",
        "{{ regexReplaceAll \"a\" (repeat 3000 \"a\") \"b\" | len }}",
        "{{ regexReplaceAllLiteral \"a\" (repeat 3000 \"a\") \"b\" | len }}",
        "{{ regexSplit \"a\" (repeat 3000 \"a\") -1 | len }}",
        "{{ uniq (until 3000) | len }}",
    ];
    on_deep_stack(|| {
        for text in programs {
            let mut set = TemplateSet::new(Compat::V3);
            set.add("a", text).unwrap();
            let env = Impatient { asked: 0.into(), patience: 4 };
            let mut context = Context::new(&env, Compat::V3);
            let error = set.execute("a", Value::Nil, &mut context).unwrap_err().to_string();
            assert!(error.ends_with("enough"), "{text}: {error}");
        }
    });
}

#[test]
fn endless_programs_are_refused() {
    const ITSELF: &str = "{{ $d := dict }}{{ $_ := set $d \"a\" $d }}";
    let on_itself = [
        "$d",
        "toYamlPretty $d",
        "deepCopy $d",
        "toToml $d",
        "printf \"%v\" $d",
        "deepEqual $d $d",
        "merge $d (dict \"a\" $d)",
    ];
    let mut programs: Vec<(String, &str)> =
        on_itself.iter().map(|call| (format!("{ITSELF}{{{{ {call} }}}}"), "holds itself")).collect();
    let others = [
        ("{{ $l := list 1 }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ $l }}", "128 MiB"),
        ("{{ range 10000000000 }}{{ end }}", "steps"),
        ("{{ repeat 1000000000 \"x\" }}", "overflow"),
        (
            "{{ range until 101 }}{{ if . }}{{ $_ := htpasswd \"u\" (repeat 73 \"p\") }}{{ end }}{{ end }}\
             {{ range until 501 }}{{ $_ := bcrypt (repeat 73 \"p\") }}{{ end }}",
            "keys, certificates and passwords",
        ),
        (
            "{{ $x := repeat 30000000 \"1\" }}{{ range until 100 }}{{ $_ := len (upper $x) }}{{ end }}",
            "too much text",
        ),
        ("{{ $x := repeat 50000000 \"1\" }}{{ semverCompare \">1\" $x }}", "too much text"),
        ("{{ $x := repeat 300000 \"1 - 2 \" }}{{ semverCompare $x \"1\" }}", "too much text"),
        ("{{ $x := until 60000 }}{{ uniq $x | len }}", "too much text"),
        ("{{ until 1000000000 }}", "128 MiB"),
        ("{{ nindent 1000000000 \"x\" }}", "makeslice"),
        ("{{ define \"a\" }}{{ include \"a\" . }}{{ end }}{{ include \"a\" . }}", "nested reference name"),
        (
            "{{ define \"a\" }}{{ template \"a\" . }}{{ end }}{{ template \"a\" . }}",
            "exceeded maximum template depth",
        ),
    ];
    programs.extend(others.map(|(text, why)| (text.to_owned(), why)));
    on_deep_stack(|| {
        for (text, why) in &programs {
            let error = render(text, Compat::V3).unwrap_err();
            assert!(error.contains(why), "{text}: {}", &error[error.len().saturating_sub(200)..]);
        }
        // A map may hold itself as long as nobody reads all of it.
        assert_eq!(render(&format!("{ITSELF}{{{{ $d.a.a.a | len }}}}"), Compat::V3).unwrap(), b"1");
    });
}

/// A result that grows with more than the length of its arguments is refused before it is made.
#[test]
fn functions_that_multiply_are_charged_before_they_make_anything() {
    const TEXT: &str = "{{ $x := repeat 1000000 \"a\" }}{{ $y := repeat 10000 \"b\" }}";
    let programs = [
        "regexReplaceAllLiteral \"\" $x $y",
        "mustRegexReplaceAllLiteral \"\" $x $y",
        "regexReplaceAll \"\" $x $y",
        "mustRegexReplaceAll \"a\" $x $y",
        "regexReplaceAll \"(.*)\" $x (repeat 100000 \"$1\")",
        "regexFindAll \"a\" (repeat 4 $x) -1",
        "mustRegexFindAll \"\" (repeat 4 $x) -1",
        "regexSplit \"\" (repeat 4 $x) -1",
        "replace \"a\" $y $x",
        "replace \"\" $y $x",
        "wrapWith 1 $y (repeat 1000000 \"a \")",
        "wrapWith 1 $y $x",
        "splitList \"\" (repeat 4 $x)",
        "split \"a\" (repeat 4 $x)",
        "splitn \"\" 2000000 (repeat 4 $x)",
        "join $x (until 1000)",
        "indent 60000 (repeat 10000 \"\\n\")",
        "nindent 60000 (repeat 10000 \"\\n\")",
        "printf (repeat 1000 \"%999999[1]d\") 1",
        "printf (repeat 1000 \"%[1]s\") $x",
        "printf (repeat 1000 \"%[1]q\") $x",
        "cat (list $x $x $x $x $x) (list $x $x $x $x $x) (list (list $x $x $x) (repeat 128000000 \"a\"))",
        "dict (list $l) 1",
        "toDecimal $l",
        "toJson (repeat 30000000 \"<\")",
        "html (repeat 30000000 \"<\")",
        "toToml (dict \"a\" $l)",
        "toYaml $l",
        "toString $l",
        "deepCopy $l",
        "fromYaml (repeat 1000000 \"a: [] \")",
        "fromYamlArray (repeat 1000000 \"- a\\n\")",
        "fromJsonArray (printf \"[%s0]\" (repeat 1000000 \"0,\"))",
        "tpl (repeat 1000000 \"{{1}}\") .",
        "randAlphaNum 200000000",
        "until 9000000",
        "seq 9000000",
        "b64enc (repeat 60000000 \"a\")",
    ];
    on_deep_stack(|| {
        for call in programs {
            let list = "{{ $l := list 1 }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}";
            let text = format!("{TEXT}{list}{{{{ {call} | len }}}}");
            let error = render(&text, Compat::V3).expect_err(call);
            assert!(error.contains("MiB") || error.contains("GiB"), "{call}: {error:.300}");
        }
    });
}

/// Many results that are small: they are charged together.
#[test]
fn what_functions_make_is_charged_together() {
    let programs = [
        "{{ $l := list }}{{ range until 100 }}{{ $l = append $l (repeat 20000000 \"a\") }}{{ end }}",
        "{{ $d := dict }}{{ range until 200 }}{{ range $i := until 60000 }}{{ $_ := set $d (print $i) 1 }}{{ end }}{{ end }}",
        "{{ $x := repeat 50000000 \"a\" }}{{ define \"b\" }}{{ . }}{{ end }}{{ range until 100 }}{{ $_ := include \"b\" $x }}{{ end }}",
    ];
    on_deep_stack(|| {
        for text in programs {
            let error = render(text, Compat::V3).unwrap_err();
            let limits = ["GiB", "steps", "too much text"];
            assert!(limits.iter().any(|limit| error.contains(limit)), "{text}: {error}");
        }
        // A function that gives back a value that is there makes nothing.
        let text = "{{ $x := repeat 50000000 \"a\" }}{{ $d := dict \"x\" $x }}{{ range until 1000 }}{{ $_ := get $d \"x\" }}\
                    {{ $_ = index $d \"x\" }}{{ $_ = set $d \"y\" 1 }}{{ end }}ok";
        assert_eq!(render(text, Compat::V3).unwrap(), b"ok");
    });
}

/// Helm prints each of them, so they end nothing here: values let go of each other without a stack, and what
/// reads all of a value says that it is too deep.
#[test]
fn values_may_be_as_deep_as_a_template_nests_them() {
    let nested = [
        "{{ $s := dict }}{{ range until 400000 }}{{ $s = dict \"a\" $s }}{{ end }}",
        "{{ $s := list }}{{ range until 200000 }}{{ $s = list $s }}{{ end }}",
        "{{ $s := dict }}{{ range until 100000 }}{{ $s = dict \"a\" (list $s) }}{{ end }}",
        "{{ $s := dict }}{{ $t := $s }}{{ range until 100000 }}{{ $n := dict }}{{ $_ := set $t \"a\" $n }}{{ $t = $n }}{{ end }}",
    ];
    let calls = [
        "$s",
        "toYaml $s",
        "toYamlPretty $s",
        "toToml $s",
        "deepCopy $s",
        "deepEqual $s (list 1 $s)",
        "merge $s (dict \"a\" $s)",
        "uniq (list $s $s)",
        "has $s (list $s)",
        "without (list $s) $s",
        "printf \"%v\" $s",
        "quote $s",
        "join \"\" (list $s)",
        "toString $s",
        "dict $s 1",
        "sortAlpha (list $s)",
        "genSelfSignedCert \"a\" (list $s) nil 1",
        "eq $s $s",
        "lt $s 1",
        "index $s 1",
        "toJson $s",
        "$s | empty",
        "required \"x\" $s | kindOf",
        "fail (toString $s)",
        "tpl \"{{ . }}\" $s",
    ];
    on_deep_stack(|| {
        for nest in nested {
            assert_eq!(render(&format!("{nest}ok"), Compat::V3).unwrap(), b"ok");
            // Deep enough for what reads all of a value.
            let nest = nest.replace("00000 }}", "000 }}");
            for call in calls {
                if let Err(error) = render(&format!("{nest}{{{{ {call} }}}}"), Compat::V3) {
                    assert!(error.len() < 1_000_000, "{call}");
                }
            }
        }
    });
}
