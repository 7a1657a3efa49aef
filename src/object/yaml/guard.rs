//! Keeps a panic of the YAML parser from becoming one of opdev: the text is a user's, so it is an error about the text.
//! Installs no panic hook; a program's own hook asks `panic_is_told` and says nothing about such a panic.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};

thread_local! {
    static EXPECTED: Cell<bool> = const { Cell::new(false) };
}

/// Whether a panic of this thread would be caught and told as an error about the text that is being read.
pub fn panic_is_told() -> bool {
    EXPECTED.get()
}

/// The step panicked; what it worked on must not be used again.
pub(super) struct Panicked;

/// Runs one step of the parser.
pub(super) fn run<T>(step: impl FnOnce() -> T) -> Result<T, Panicked> {
    EXPECTED.set(true);
    let done = catch_unwind(AssertUnwindSafe(step));
    EXPECTED.set(false);
    done.map_err(|_| Panicked)
}

#[cfg(test)]
mod tests {
    use super::super::{documents, from_str, parse};
    use super::{panic_is_told, run};

    #[test]
    fn texts_that_break_the_parser_are_errors_with_a_place() {
        let cases = [
            ("[!, ]", 1, 2, "yaml: line 1: a tag stands right before a comma; put a space between them"),
            (
                "a: 1\nb:\n  - é: [!x, y]\n",
                3,
                9,
                "yaml: line 3: a tag stands right before a comma; put a space between them",
            ),
            ("a: \"\\", 1, 2, "yaml: found unknown escape character"),
            ("a: 1\nb: >\r <", 2, 2, "yaml: line 2: what follows here cannot be read"),
        ];
        for (text, line, column, message) in cases {
            let error = parse(text).unwrap_err();
            assert_eq!(
                (error.line, error.column, error.message.as_str()),
                (line, column, message),
                "{text:?}"
            );
        }
        assert!(parse("[! , ]").is_ok());
        assert!(documents("a: 1\n---\n[!, ]").is_err());
    }

    #[test]
    fn a_panic_is_told_only_while_the_parser_runs() {
        assert!(!panic_is_told());
        assert!(matches!(run(panic_is_told), Ok(true)));
        assert!(run(|| panic!("of the parser")).is_err());
        assert!(!panic_is_told());
    }

    /// Every text is read or refused.
    #[test]
    fn no_text_panics() {
        const PARTS: [&str; 44] = [
            "!",
            "!a",
            "!!str",
            "!<",
            ",",
            "[",
            "]",
            "{",
            "}",
            ":",
            "? ",
            "- ",
            " ",
            "\n",
            "\n  ",
            "&a",
            "*a",
            "\"",
            "'",
            "\\",
            "|",
            ">",
            "%",
            "%TAG ! a",
            "---",
            "...",
            "#",
            "a",
            "1",
            "\t",
            "\r",
            "\u{85}",
            "\u{2028}",
            "\u{feff}",
            "é",
            "<<",
            "@",
            "%C3",
            "\\x",
            "\\u",
            "2",
            "-",
            "%YAML 1.1\n",
            "\u{10ffff}",
        ];
        let mut seed = 88_172_645_463_325_252_u64;
        let mut draw = |below: u64| {
            seed ^= seed << 13;
            seed ^= seed >> 7;
            seed ^= seed << 17;
            usize::try_from(seed % below).unwrap()
        };
        for _ in 0..30_000 {
            let count = draw(14) + 1;
            let text: String = (0..count).map(|_| PARTS[draw(PARTS.len() as u64)]).collect();
            let _ = (documents(&text), from_str(&text));
        }
    }

    /// A stack that overflows cannot be caught, so depth is bounded; also the depth that aliases add up to.
    #[test]
    fn deep_texts_are_refused_before_the_stack_ends() {
        let nested = |open: &str, close: &str, depth: usize| {
            from_str(&format!("{}{}", open.repeat(depth), close.repeat(depth)))
        };
        let mut chain = String::from("a0: &a0 [x]\n");
        for i in 1..40 {
            chain.push_str(&format!("a{i}: &a{i} {}*a{}{}\n", "[".repeat(90), i - 1, "]".repeat(90)));
        }
        let read = move || {
            for (open, close) in [("[", "]"), ("{a: ", "}"), ("- ", "")] {
                assert!(nested(open, close, 250).is_ok(), "{open}");
                for depth in [251, 9_000, 50_000] {
                    let message = nested(open, close, depth).unwrap_err().message;
                    assert!(message.contains("more than 250 levels deep"), "{open} {message}");
                }
            }
            assert!(nested("? ", "", 50_000).is_err());
            let error = from_str(&chain).unwrap_err();
            assert!(error.message.contains("more than 250 levels deep"), "{error:?}");
            assert_eq!(error.line, 4);
        };
        std::thread::Builder::new().stack_size(2 << 20).spawn(read).unwrap().join().unwrap();
    }
}
