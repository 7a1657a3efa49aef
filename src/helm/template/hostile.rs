//! Programs that would never end or take all memory: each is refused, where Helm itself hangs or dies.

use super::golden::render;
use super::{Compat, on_deep_stack};

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
