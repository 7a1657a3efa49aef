//! Paths of schemas, in which `[*]` stands for any item and `.*` for any key, and how paths of objects fit
//! them.

/// The path of a property.
pub(super) fn child(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// The path of a list's items.
pub(super) fn items(path: &str) -> String {
    format!("{path}[*]")
}

/// The path of a map's values.
pub(super) fn values(path: &str) -> String {
    child(path, "*")
}

/// The last name of a path.
pub(super) fn last(path: &str) -> &str {
    path.rsplit('.').next().unwrap_or(path)
}

/// Everything before the last name.
pub(super) fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

#[derive(PartialEq)]
enum Step<'a> {
    Name(&'a str),
    Index,
    Any,
}

fn steps(path: &str) -> Vec<Step<'_>> {
    let mut steps = Vec::new();
    for part in path.split('.').filter(|part| !part.is_empty()) {
        let mut pieces = part.split('[');
        match pieces.next() {
            Some("*") => steps.push(Step::Any),
            Some("") | None => {}
            Some(name) => steps.push(Step::Name(name)),
        }
        for piece in pieces {
            let inner = piece.trim_end_matches(']');
            // Kubernetes writes keys of maps in brackets too, in errors of duplicates.
            let index = inner == "*" || inner.bytes().all(|b| b.is_ascii_digit());
            steps.push(if index { Step::Index } else { Step::Name(inner) });
        }
    }
    steps
}

/// Returns true if one of the two stands at or below the other: `spec.a[*]` and `spec.a[0].b` do.
pub(super) fn related(pattern: &str, path: &str) -> bool {
    let fits = |(a, b): (&Step<'_>, &Step<'_>)| a == b || *a == Step::Any || *b == Step::Any;
    steps(pattern).iter().zip(&steps(path)).all(fits)
}

/// Returns true if the path of an object stands at or below the pattern.
pub(super) fn covers(pattern: &str, path: &str) -> bool {
    steps(pattern).len() <= steps(path).len() && related(pattern, path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_paths() {
        assert!(covers("spec.a[*].b", "spec.a[3].b"));
        assert!(covers("spec.a[*]", "spec.a[3].b.c"));
        assert!(covers("spec.m.*", "spec.m.key"));
        assert!(!covers("spec.a[*].b", "spec.a[3]"));
        assert!(related("spec.a[*].b", "spec.a[3]"));
        assert!(!related("spec.a", "spec.b"));
        assert_eq!((last("spec.a.b"), parent("spec.a.b"), parent("a")), ("b", "spec.a", ""));
    }
}
