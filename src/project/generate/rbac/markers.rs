//! Markers put into a Go file, which stays as it is otherwise, its line ends included. Pure.

/// The line of the Reconcile function, from 0.
pub(super) fn reconcile_line(text: &str) -> Option<usize> {
    let is_function =
        |(line, code): (&str, bool)| code && line.starts_with("func (") && line.contains(") Reconcile(");
    text.split_inclusive('\n').zip(begins_in_code(text)).position(is_function)
}

/// Puts markers behind the last one above the Reconcile function, else above its comment.
pub(super) fn with_markers(text: &str, markers: &[String]) -> Option<String> {
    let function = reconcile_line(text)?;
    let code = begins_in_code(text);
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let end = if lines[function].ends_with("\r\n") { "\r\n" } else { "\n" };
    let mut added = String::new();
    markers.iter().for_each(|marker| added.extend([marker.as_str(), end]));
    let last = (0..function).rev().find(|at| code[*at] && is_marker(lines[*at]));
    let at = match last {
        Some(last) => last + 1,
        None => {
            added.push_str(end);
            let comment = lines[..function].iter().rev().take_while(|line| line.starts_with("//")).count();
            function - comment
        }
    };
    lines.insert(at, &added);
    Some(lines.concat())
}

fn is_marker(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//");
    comment.is_some_and(|comment| comment.trim_start().starts_with("+kubebuilder:rbac:"))
}

/// For each line whether it begins outside of strings and comments.
fn begins_in_code(text: &str) -> Vec<bool> {
    let bytes = text.as_bytes();
    let (mut begins, mut at) = (vec![true], 0);
    // The end of the string or comment.
    let mut inside: Option<&[u8]> = None;
    while let Some(byte) = bytes.get(at) {
        let rest = &bytes[at..];
        let length = match inside {
            None => {
                inside = match byte {
                    b'"' => Some(b"\""),
                    b'\'' => Some(b"'"),
                    b'`' => Some(b"`"),
                    _ if rest.starts_with(b"//") => Some(b"\n"),
                    _ if rest.starts_with(b"/*") => Some(b"*/"),
                    _ => None,
                };
                if inside.is_some_and(|end| end == b"*/") { 2 } else { 1 }
            }
            Some(b"\"" | b"'") if *byte == b'\\' && bytes.get(at + 1) != Some(&b'\n') => 2,
            // A text that is not closed on its line is an error of the user's, and no reason to read the rest
            // as one.
            Some(b"\"" | b"'") if *byte == b'\n' => {
                inside = None;
                1
            }
            Some(end) if rest.starts_with(end) => {
                inside = None;
                end.len()
            }
            Some(_) => 1,
        };
        if *byte == b'\n' {
            begins.push(inside.is_none());
        }
        at += length;
    }
    begins
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marker() -> Vec<String> {
        vec!["// +kubebuilder:rbac:groups=core,resources=pods,verbs=get;list".to_owned()]
    }

    #[test]
    fn markers_join_those_above_the_function() {
        let marker = marker();
        let text = "package c\n\n// +kubebuilder:rbac:groups=a,resources=b,verbs=get\n\n// Reconcile does.\nfunc (r *R) Reconcile(ctx\n";
        let after = with_markers(text, &marker).unwrap();
        let expected = text.replace("verbs=get\n", &format!("verbs=get\n{}\n", marker[0]));
        assert_eq!(after, expected);
        let bare = "package c\n\n// Reconcile does.\nfunc (r *R) Reconcile(ctx\n";
        let after = with_markers(bare, &marker).unwrap();
        assert_eq!(
            after,
            format!("package c\n\n{}\n\n// Reconcile does.\nfunc (r *R) Reconcile(ctx\n", marker[0])
        );
        assert_eq!(with_markers("package c\n", &marker), None);
    }

    #[test]
    fn line_ends_stay_as_they_are() {
        let marker = marker();
        let text = "package c\r\n\r\n//+kubebuilder:rbac:groups=a,resources=b,verbs=get\r\nfunc (r *R) Reconcile(ctx) {\r\n}\n\n// no end";
        let after = with_markers(text, &marker).unwrap();
        assert_eq!(after, text.replace("verbs=get\r\n", &format!("verbs=get\r\n{}\r\n", marker[0])));
        let bare = text.replace("//+kubebuilder", "//kubebuilder");
        let after = with_markers(&bare, &marker).unwrap();
        assert_eq!(after, bare.replace("//kube", &format!("{}\r\n\r\n//kube", marker[0])));
    }

    #[test]
    fn a_text_is_no_marker_and_no_function() {
        let marker = marker();
        let template = "const template = `\n// +kubebuilder:rbac:groups=a,resources=b,verbs=get\nfunc (r *R) Reconcile(ctx\n`\n\n\
                        var quote, rune = \"\\\"`\", '`' // it's `fine\n/* `\n// +kubebuilder:rbac:groups=c\n*/\n\n\
                        var text = \"// +kubebuilder:rbac:groups=d\"\n\n";
        let text = format!("package c\n\n{template}func (r *R) Reconcile(ctx\n");
        let after = with_markers(&text, &marker).unwrap();
        assert_eq!(after, format!("package c\n\n{template}{}\n\nfunc (r *R) Reconcile(ctx\n", marker[0]));
        assert_eq!(reconcile_line(&format!("package c\n{template}")), None);
    }
}
