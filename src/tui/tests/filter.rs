//! Filters of lists.

use super::fixture;
use opdev_panes::lists::filter::{Filter, Subject, passes};
use serde_json::json;

fn shows(line: &str) -> bool {
    let metadata = json!({"namespace": "dev", "labels": {"app": "web", "tier": "front"}});
    let pod = fixture::object("Pod", "web-1", None, "17:00:00", &json!({"metadata": metadata}));
    let state = fixture::of(vec![fixture::seen(pod)]);
    let object = state.objects.keys().find_map(|key| state.objects.get(key)).map(AsRef::as_ref);
    Filter::new(line).passes(Subject { text: "pod dev/web-1", object, ..Subject::default() })
}

#[test]
fn all_parts_must_hold() {
    for line in [
        "",
        "web",
        "WEB pod",
        "!db",
        "/web-\\d$/",
        "/d.v\\/w/",
        "!/db/ web",
        "k:pod",
        "n:dev",
        "ns:dev",
        "!n:prod",
        "-l app=web",
        "-l app=web,tier!=back",
        "l:tier",
        "!l:app=db",
        "web -l app=web !x",
        "!",
        "/",
        "n:",
        "ns:",
    ] {
        assert!(shows(line), "{line}");
    }
    for line in ["db", "!web", "/^web/", "!/web/", "k:Po", "n:de", "-l app=db", "l:!app", "web n:prod"] {
        assert!(!shows(line), "{line}");
    }
}

#[test]
fn what_cannot_be_read_is_told_and_filters_nothing() {
    for (line, told) in
        [("/(/ web", "no regular expression"), ("-l a==b==c", "-l a==b==c"), ("l:=x", "-l =x")]
    {
        assert!(
            Filter::new(line).problem.is_some_and(|problem| problem.to_string().contains(told)),
            "{line}"
        );
        assert!(shows(line), "{line}");
    }
}

#[test]
fn plain_lines_have_no_labels() {
    assert!(passes("a !b", "A line") && !passes("-l a=b", "a line") && passes("/l.ne$/", "a line"));
}
