//! Files that a merge of git has left with conflict markers. Parsers name the marker as whatever they
//! expected in its place, which does not help.

use opdev_event::{Diagnostic, Place, Severity};

/// The lines of the first conflict of a text, from `<<<<<<<` to `>>>>>>>`, counted from 1.
fn conflict(text: &str) -> Option<(u32, u32)> {
    let marker = |line: &str, sign: &str| line.strip_prefix(sign).is_some_and(|rest| rest.starts_with(' '));
    let (mut begins, mut is_divided) = (None, false);
    for (number, line) in (1..).zip(text.lines()) {
        if marker(line, "<<<<<<<") {
            (begins, is_divided) = (Some(number), false);
        } else if line == "=======" {
            is_divided = true;
        } else if let Some(first) = begins.filter(|_| is_divided && marker(line, ">>>>>>>")) {
            return Some((first, number));
        }
    }
    None
}

/// Says of each error in a file with conflict markers that these are its cause, at the first marker. One
/// error of a file is enough then. `read` gets paths as the places have them.
pub fn explain(diagnostics: &mut Vec<Diagnostic>, read: impl Fn(&str) -> Option<String>) {
    let mut told: Vec<String> = Vec::new();
    diagnostics.retain_mut(|one| {
        let Some(place) = one.place.as_ref().filter(|_| one.severity == Severity::Error) else { return true };
        let Some((first, last)) = read(&place.file).as_deref().and_then(conflict) else { return true };
        if told.contains(&place.file) {
            return false;
        }
        told.push(place.file.clone());
        one.message = format!("merge conflict: lines {first} to {last} have git's conflict markers");
        one.hint = Some("keep one side of each conflict, delete the markers, and save".to_owned());
        one.excerpt = None;
        one.place = Some(Place { file: place.file.clone(), line: first, column: 1 });
        true
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFLICT: &str = "a: 1\n<<<<<<< HEAD\nb: 1\n=======\nb: 2\n>>>>>>> other\nc: 3\n";

    #[test]
    fn only_whole_conflicts_count() {
        assert_eq!(conflict(CONFLICT), Some((2, 6)));
        assert_eq!(conflict("Title\n=======\n>>>>>>> quoted\n"), None, "a heading and a quotation");
        assert_eq!(conflict("<<<<<<< HEAD\na\n>>>>>>> x\n"), None);
        assert_eq!(conflict("  <<<<<<< HEAD\n=======\n>>>>>>> x\n"), None, "git writes them at the margin");
        assert_eq!(conflict(&CONFLICT.replace('\n', "\r\n").replace("=======\r", "=======")), Some((2, 6)));
    }

    #[test]
    fn the_markers_are_named_once_a_file() {
        let at = |file: &str, line| Diagnostic {
            severity: Severity::Error,
            message: "could not find expected ':'".to_owned(),
            place: Some(Place { file: file.to_owned(), line, column: 1 }),
            excerpt: None,
            hint: None,
            kind: None,
        };
        let mut all = vec![at("a.yaml", 9), at("b.yaml", 1), at("a.yaml", 12)];
        explain(&mut all, |file| (file == "a.yaml").then(|| CONFLICT.to_owned()));
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].message, "merge conflict: lines 2 to 6 have git's conflict markers");
        assert_eq!(all[0].place.as_ref().unwrap().line, 2);
        assert_eq!(all[1], at("b.yaml", 1));
    }
}
