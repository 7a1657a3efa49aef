//! Inserts entries at the scaffold markers of kubebuilder and the Operator SDK: comments such as
//! `# +kubebuilder:scaffold:watch`. Both tools accept them with and without a space after `#`. Without a
//! marker an entry goes to the end of the list it belongs to. What the user wrote stays as it is.

/// The list in a YAML file to which entries belong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum List {
    /// The file itself is the list.
    Whole,
    /// The value of a key at the top level.
    Key(&'static str),
}

/// The text with an entry in front of the marker, in the marker's indentation; `None` where the marker is
/// missing. An entry whose lines stand there already changes nothing.
pub(super) fn insert(text: &str, marker: &str, entry: &str) -> Option<String> {
    let at = text.lines().position(|line| is_marker(line, marker))?;
    let indent = text.lines().nth(at).map_or("", indent_of);
    Some(if holds(text, entry) { text.to_owned() } else { with_lines(text, at, indent, entry) })
}

/// The Go text with an import in front of the marker `imports`, in the order that gofmt gives the imports
/// there; `None` where the marker is missing. An import that stands there already changes nothing.
pub(super) fn insert_import(text: &str, import: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let marker = lines.iter().position(|line| is_marker(line, "imports"))?;
    if lines.iter().any(|line| line.trim() == import) {
        return Some(text.to_owned());
    }
    let path = |line: &str| line.split('"').nth(1).map(str::to_owned);
    let is_import = |line: &&&str| path(line).is_some();
    let first = marker - lines[..marker].iter().rev().take_while(is_import).count();
    // The project's own packages stand apart from others.
    let group = lines[first..marker].iter().map(|line| root_of(line)).collect::<Vec<_>>();
    if !group.is_empty() && !group.contains(&root_of(import)) {
        return Some(with_lines(text, marker, "\t", &format!("\n{import}\n")));
    }
    let at = (first..marker).find(|at| path(lines[*at]) > path(import)).unwrap_or(marker);
    Some(with_lines(text, at, indent_of(lines[marker]), &format!("{import}\n")))
}

/// The first part of an import's path.
fn root_of(line: &str) -> &str {
    line.split('"').nth(1).and_then(|path| path.split('/').next()).unwrap_or_default()
}

/// The text with an entry at the end of a list. A key that is missing is added where it stands in
/// alphabetical order, as in `PROJECT`.
pub(super) fn append(text: &str, list: List, entry: &str) -> String {
    if holds(text, entry) {
        return text.to_owned();
    }
    let lines: Vec<&str> = text.lines().collect();
    let List::Key(key) = list else { return with_lines(text, lines.len(), "", entry) };
    let Some(at) = lines.iter().position(|line| key_of(line) == Some(key)) else {
        let next = lines.iter().position(|line| key_of(line).is_some_and(|other| other > key));
        return with_lines(text, next.unwrap_or(lines.len()), "", &format!("{key}:\n{entry}"));
    };
    let rest = &lines[at + 1..];
    let items = &rest[..rest.iter().position(|line| key_of(line).is_some()).unwrap_or(rest.len())];
    let first = items.iter().find(|line| line.trim_start().starts_with("- "));
    if first.is_none() && lines[at].trim_end() != format!("{key}:") {
        // `resources: []`
        let mut lines: Vec<String> = lines.iter().map(|line| (*line).to_owned()).collect();
        lines[at] = format!("{key}:\n{}", entry.trim_end());
        return lines.join("\n") + "\n";
    }
    let blank = |line: &&str| line.trim().is_empty() || line.trim_start().starts_with('#');
    let last = items.iter().rposition(|line| !blank(line)).map_or(0, |last| last + 1);
    with_lines(text, at + 1 + last, first.map_or("", |line| indent_of(line)), entry)
}

/// The text with an entry in front of a line, indented.
fn with_lines(text: &str, at: usize, indent: &str, entry: &str) -> String {
    let indented =
        entry.lines().map(|line| if line.is_empty() { line.to_owned() } else { format!("{indent}{line}") });
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    lines.splice(at..at, indented);
    lines.join("\n") + "\n"
}

/// The key of a line at the top level.
fn key_of(line: &str) -> Option<&str> {
    let key = line.split_once(':')?.0;
    key.starts_with(|c: char| c.is_ascii_alphabetic()).then_some(key)
}

/// The blanks that a line begins with.
fn indent_of(line: &str) -> &str {
    &line[..line.len() - line.trim_start().len()]
}

fn is_marker(line: &str, marker: &str) -> bool {
    let line = line.trim();
    let Some(comment) = line.strip_prefix('#').or_else(|| line.strip_prefix("//")) else { return false };
    comment.trim_start().strip_prefix("+kubebuilder:scaffold:") == Some(marker)
}

/// Returns true if the lines of an entry stand in a text, one after the other, whatever their indentation.
fn holds(text: &str, entry: &str) -> bool {
    let wanted: Vec<&str> = entry.lines().map(str::trim).collect();
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    !wanted.is_empty() && lines.windows(wanted.len()).any(|window| window == wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_goes_in_front_of_its_marker_once() {
        let text = "resources:\n  # +kubebuilder:scaffold:crdkustomizeresource\nother: 1\n";
        let once = insert(text, "crdkustomizeresource", "- bases/a.yaml\n").unwrap();
        assert_eq!(
            once,
            "resources:\n  - bases/a.yaml\n  # +kubebuilder:scaffold:crdkustomizeresource\nother: 1\n"
        );
        assert_eq!(insert(&once, "crdkustomizeresource", "- bases/a.yaml\n").unwrap(), once);
    }

    #[test]
    fn the_older_form_without_a_space_is_a_marker_too() {
        assert_eq!(
            insert("#+kubebuilder:scaffold:watch\n", "watch", "- a\n").unwrap(),
            "- a\n#+kubebuilder:scaffold:watch\n"
        );
        assert_eq!(insert("# +kubebuilder:scaffold:watches\n", "watch", "- a\n"), None);
    }

    #[test]
    fn imports_of_the_project_stand_together_in_order() {
        let text = "import (\n\t\"sigs.k8s.io/x\"\n\t// +kubebuilder:scaffold:imports\n)\n";
        let one = insert_import(text, "\"my.domain/a/internal/controller\"").unwrap();
        let two = insert_import(&one, "appv1 \"my.domain/a/api/v1\"").unwrap();
        let own =
            "\t\"sigs.k8s.io/x\"\n\n\tappv1 \"my.domain/a/api/v1\"\n\t\"my.domain/a/internal/controller\"\n";
        assert_eq!(two, format!("import (\n{own}\t// +kubebuilder:scaffold:imports\n)\n"));
        assert_eq!(insert_import(&two, "appv1 \"my.domain/a/api/v1\"").unwrap(), two);
        assert_eq!(insert_import("import ()\n", "\"a\""), None);
    }

    #[test]
    fn without_a_marker_an_entry_ends_its_own_list() {
        let resources = List::Key("resources");
        assert_eq!(append("resources:\n- a", resources, "- b\n"), "resources:\n- a\n- b\n");
        // Another key follows, and the items are indented.
        let text = "resources:\n  - a\n\n# what is patched\npatches:\n- path: p.yaml\n";
        let wanted = "resources:\n  - a\n  - b\n\n# what is patched\npatches:\n- path: p.yaml\n";
        assert_eq!(append(text, resources, "- b\n"), wanted);
        assert_eq!(append(wanted, resources, "- b\n"), wanted);
        assert_eq!(append("resources: []\nx: 1\n", resources, "- b\n"), "resources:\n- b\nx: 1\n");
        assert_eq!(append("a: 1\nx: 1\n", resources, "- b\n"), "a: 1\nresources:\n- b\nx: 1\n");
        assert_eq!(append("- group: a\n", List::Whole, "- group: b\n"), "- group: a\n- group: b\n");
        assert_eq!(append("", List::Whole, "- group: b\n"), "- group: b\n");
    }
}
