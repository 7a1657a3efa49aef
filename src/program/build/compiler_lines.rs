//! The problem: each compiler writes a place in its own way, some through a build tool that puts a word
//! before it and colours between.
//!
//! Their lines as `file:line:column: message`, which Go and C compilers write. Pure.

/// The words before an error: of Maven, and of Kotlin.
const BEFORE: [&str; 2] = ["[ERROR] ", "e: file://"];

/// Longer lines are no compiler's: they stay as they are, whatever a build prints.
const LONGEST: usize = 16 * 1024;

/// Makes the lines of a build equal in form. Lines of another form stay as they are, without colours.
pub(super) fn uniform(text: &str) -> String {
    let mut lines: Vec<String> = Vec::new();
    for line in text.lines() {
        if line.len() > LONGEST {
            lines.push(line.to_owned());
            continue;
        }
        let plain = crate::logs::strip_escapes(line);
        let rest = BEFORE.iter().find_map(|before| plain.strip_prefix(before)).unwrap_or(&plain);
        if let Some(place) = rest.trim_start().strip_prefix("--> ").filter(|place| is_place(place))
            && let Some(message) = lines.last_mut().filter(|line| line.starts_with("error"))
        {
            // rustc: the message stands before the place.
            *message = format!("{place}: {message}");
            continue;
        }
        lines.push(javac(rest).or_else(|| in_parentheses(rest)).unwrap_or_else(|| plain.clone()));
    }
    lines.join("\n")
}

/// `src/main.rs:12:5`
fn is_place(text: &str) -> bool {
    let mut parts = text.rsplitn(3, ':');
    let is_number = |part: Option<&str>| part.is_some_and(|part| part.parse::<u32>().is_ok());
    is_number(parts.next()) && is_number(parts.next()) && parts.next().is_some_and(|file| !file.is_empty())
}

/// javac by itself writes `A.java:53: error: message`, through Maven `A.java:[53,5] message`.
fn javac(line: &str) -> Option<String> {
    let at = [".java:", ".kt:", ".scala:", ".groovy:"]
        .into_iter()
        .find_map(|end| Some(line.find(end)? + end.len()))?;
    let (file, rest) = (&line[..at - 1], &line[at..]);
    if let Some((place, message)) = rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        let (number, column) = place.split_once(',')?;
        return at_place(file, number, column, message);
    }
    let (number, message) = rest.split_once(' ')?;
    let number = number.trim_end_matches(':');
    match number.split_once(':') {
        Some((number, column)) => at_place(file, number, column, message),
        None => at_place(file, number, "0", message),
    }
}

/// `a.ts(12,5): error TS2304: message`, of `tsc` and of `dotnet build`.
fn in_parentheses(line: &str) -> Option<String> {
    let (place, message) = line.trim_start().split_once("): ")?;
    let (file, place) =
        place.rsplit_once('(').filter(|(file, _)| file.contains('.') && !file.ends_with(' '))?;
    let (number, column) = place.split_once(',')?;
    at_place(file, number, column, message)
}

fn at_place(file: &str, number: &str, column: &str, message: &str) -> Option<String> {
    let (number, column): (u32, u32) = (number.trim().parse().ok()?, column.trim().parse().ok()?);
    let message = message.strip_prefix("error: ").unwrap_or(message);
    Some(format!("{file}:{number}:{column}: {message}"))
}

#[cfg(test)]
mod tests {
    use super::uniform;

    #[test]
    fn each_compiler_has_a_place() {
        let cases = [
            (
                "\u{1b}[1;31m[ERROR] \u{1b}[m/p/src/A.java:[53,5] ';' expected",
                "/p/src/A.java:53:5: ';' expected",
            ),
            ("/p/src/A.java:53: error: ';' expected", "/p/src/A.java:53:0: ';' expected"),
            ("e: file:///p/src/A.kt:3:7 Unresolved: x", "/p/src/A.kt:3:7: Unresolved: x"),
            ("/p/src/A.scala:3:7: not found: value x", "/p/src/A.scala:3:7: not found: value x"),
            (
                "src/a.ts(12,5): error TS2304: Cannot find name 'x'.",
                "src/a.ts:12:5: error TS2304: Cannot find name 'x'.",
            ),
            (
                "error[E0308]: mismatched types\n  --> src/main.rs:12:5\n   |",
                "src/main.rs:12:5: error[E0308]: mismatched types\n   |",
            ),
            ("./main.go:3:7: undefined: x", "./main.go:3:7: undefined: x"),
            ("\u{1b}[32mBUILD\u{1b}[0m FAILED (1,2): no", "BUILD FAILED (1,2): no"),
        ];
        for (line, expected) in cases {
            assert_eq!(uniform(line), expected);
        }
    }

    #[test]
    fn output_of_any_size_is_read_once() {
        let places = format!("error: a\n{}", "  --> a:1:1\n".repeat(200_000));
        assert!(uniform(&places).starts_with("a:1:1: error: a\n"));
        let titles = "\u{1b}]".repeat(1_000_000);
        assert_eq!(uniform(&titles), titles);
    }
}
