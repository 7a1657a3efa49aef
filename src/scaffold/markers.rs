//! Inserts entries at the scaffold markers of kubebuilder and the Operator SDK: comments such as
//! `# +kubebuilder:scaffold:watch`. Both tools accept them with and without a space after `#`.

/// The text with an entry in front of the marker, in the marker's indentation; `None` where the marker is missing.
/// An entry whose lines stand there already changes nothing.
pub(super) fn insert(text: &str, marker: &str, entry: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let at = lines.iter().position(|line| is_marker(line, marker))?;
    if holds(text, entry) {
        return Some(text.to_owned());
    }
    let indent: String = lines[at].chars().take_while(|c| c.is_whitespace()).collect();
    let mut out = String::new();
    for line in &lines[..at] {
        out.push_str(line);
        out.push('\n');
    }
    for line in entry.lines() {
        if !line.is_empty() {
            out.push_str(&indent);
        }
        out.push_str(line);
        out.push('\n');
    }
    for line in &lines[at..] {
        out.push_str(line);
        out.push('\n');
    }
    Some(out)
}

/// The text with an entry at its end.
pub(super) fn append(text: &str, entry: &str) -> String {
    if holds(text, entry) {
        return text.to_owned();
    }
    let gap = if text.is_empty() || text.ends_with('\n') { "" } else { "\n" };
    format!("{text}{gap}{entry}")
}

fn is_marker(line: &str, marker: &str) -> bool {
    let Some(comment) = line.trim().strip_prefix('#') else { return false };
    comment.trim_start().strip_prefix("+kubebuilder:scaffold:") == Some(marker)
}

/// Whether the lines of an entry stand in a text, one after the other, whatever their indentation.
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
    fn an_entry_is_appended_to_a_file_without_a_last_line_end() {
        assert_eq!(append("resources:\n- a", "- b\n"), "resources:\n- a\n- b\n");
    }
}
