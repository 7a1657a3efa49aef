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

/// What takes long asks in between, also where one call of a function is all there is.
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
        ("{{ $l := list 1 }}{{ range until 40 }}{{ $l = list $l $l }}{{ end }}{{ $l }}", "256 MiB"),
        ("{{ range 10000000000 }}{{ end }}", "steps"),
        ("{{ repeat 1000000000 \"x\" }}", "overflow"),
        (
            "{{ range until 100 }}{{ $_ := derivePassword 1 \"long\" \"p\" \"u\" \"s\" }}{{ end }}",
            "too many keys or passwords",
        ),
        (
            "{{ $x := repeat 30000000 \"1\" }}{{ range until 100 }}{{ $_ := len (upper $x) }}{{ end }}",
            "too much text",
        ),
        ("{{ $x := repeat 50000000 \"1\" }}{{ semverCompare \">1\" $x }}", "too much text"),
        ("{{ $x := repeat 300000 \"1 - 2 \" }}{{ semverCompare $x \"1\" }}", "too much text"),
        ("{{ $x := until 60000 }}{{ uniq $x | len }}", "too much text"),
        ("{{ until 1000000000 }}", "list too long"),
        ("{{ nindent 1000000000 \"x\" }}", "makeslice"),
        ("{{ $x := repeat 100000000 \"x\" }}{{ replace \"x\" $x $x }}", "makeslice"),
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
