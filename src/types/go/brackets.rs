//! The declarations of a Go file by its brackets alone, for files that the grammar cannot read as a whole:
//! function bodies and initialisers are blanked out, for no type depends on them, and a bracket that is never
//! closed is found. A line that begins with a keyword of a declaration begins one, as gofmt writes it. Never
//! decides what a declaration means.

use super::package::counts_as_name;
use std::ops::Range;

/// Keywords of declarations.
const KEYWORDS: [&str; 6] = ["package", "import", "type", "func", "var", "const"];

/// One declaration, from its keyword on.
#[derive(Debug)]
struct Declaration<'t> {
    keyword: &'t str,
    bytes: Range<usize>,
    /// The text between the outermost braces.
    bodies: Vec<Range<usize>>,
}

impl Declaration<'_> {
    /// Types do not depend on what is inside of it.
    fn is_code(&self) -> bool {
        matches!(self.keyword, "func" | "var")
    }
}

/// A bracket that is not closed where its declaration ends, or one that closes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unbalanced {
    /// The bracket that is not closed.
    pub(crate) opens_at: usize,
    /// Where the text stops making sense.
    pub(crate) at: usize,
    /// The token that stands there.
    stop: Stop,
}

/// The token before which a bracket should have been closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stop {
    Declaration(&'static str),
    /// A closing bracket of another kind.
    Bracket(u8),
    FileEnd,
}

impl Unbalanced {
    /// The error, in words. It counts lines, so it is for errors that are shown, not for every bracket of a
    /// hostile file.
    pub(crate) fn message(&self, text: &str) -> String {
        let bytes = text.as_bytes();
        let open = char::from(bytes.get(self.opens_at).copied().unwrap_or_default());
        let before = bytes.get(..self.opens_at).unwrap_or_default();
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        match self.stop {
            Stop::Declaration(keyword) => {
                format!("`{keyword}` begins here, and the `{open}` of line {line} is not closed")
            }
            Stop::Bracket(close) => {
                format!("`{}` does not close the `{open}` of line {line}", char::from(close))
            }
            Stop::FileEnd => format!("the file ends here, and the `{open}` of line {line} is not closed"),
        }
    }
}

/// The declarations of a file, and where its brackets do not fit each other outside of code.
fn scan(text: &str) -> (Vec<Declaration<'_>>, Vec<Unbalanced>) {
    let mut scan =
        Scan { text, at: 0, open: Vec::new(), current: None, found: Vec::new(), wrong: Vec::new() };
    scan.run();
    (scan.found, scan.wrong)
}

/// The text with function bodies and the values of variables blanked out; each byte keeps its place.
pub(crate) fn without_code(text: &str) -> String {
    let mut bytes = text.as_bytes().to_vec();
    let mut blank = |range: Range<usize>| {
        for byte in bytes.get_mut(range).into_iter().flatten() {
            if *byte != b'\n' {
                *byte = b' ';
            }
        }
    };
    let (declarations, _) = scan(text);
    for declaration in declarations.iter().filter(|declaration| declaration.is_code()) {
        if declaration.keyword == "func" {
            declaration.bodies.iter().for_each(|body| blank(body.clone()));
        } else {
            blank(declaration.bytes.start + "var".len()..declaration.bytes.end);
        }
    }
    for declaration in declarations.iter().filter(|declaration| declaration.keyword == "var") {
        let start = declaration.bytes.start + "var".len();
        if let Some(two) = bytes.get_mut(start..start + 2).filter(|two| two.iter().all(|byte| *byte == b' '))
        {
            two.copy_from_slice(b"()");
        }
    }
    // Blanks are put in place of whole stretches between ASCII bytes, so that the rest is still text.
    String::from_utf8(bytes).unwrap_or_else(|_| text.to_owned())
}

/// Where brackets of types, imports and constants do not fit.
pub(crate) fn unbalanced(text: &str) -> Vec<Unbalanced> {
    scan(text).1
}

struct Scan<'t> {
    text: &'t str,
    at: usize,
    /// Brackets that are open.
    open: Vec<(u8, usize)>,
    current: Option<Declaration<'t>>,
    found: Vec<Declaration<'t>>,
    wrong: Vec<Unbalanced>,
}

impl Scan<'_> {
    fn run(&mut self) {
        let bytes = self.text.as_bytes();
        // A line break ends a statement where this is true.
        let mut complete = false;
        while let Some(byte) = bytes.get(self.at).copied() {
            if (self.at == 0 || bytes.get(self.at - 1) == Some(&b'\n')) && self.keyword().is_some() {
                self.begin();
                complete = false;
                continue;
            }
            match byte {
                b'\n' => {
                    if self.open.is_empty() && complete {
                        self.end(self.at);
                    }
                    self.at += 1;
                    continue;
                }
                b' ' | b'\t' | b'\r' => {
                    self.at += 1;
                    continue;
                }
                b'/' if matches!(bytes.get(self.at + 1), Some(b'/' | b'*')) => {
                    self.comment();
                    continue;
                }
                b'"' | b'\'' | b'`' => self.quoted(byte),
                b'(' | b'[' | b'{' => {
                    self.open.push((byte, self.at));
                    self.at += 1;
                }
                b')' | b']' | b'}' => self.close(byte),
                _ => self.at += 1,
            }
            complete = byte.is_ascii_alphanumeric()
                || byte >= 0x80
                || matches!(byte, b'_' | b'"' | b'\'' | b'`' | b')' | b']' | b'}');
        }
        let end = self.text.trim_end().len();
        self.unclosed(end, end, Stop::FileEnd);
        self.end(self.text.len());
    }

    /// The keyword of a declaration that stands here.
    fn keyword(&self) -> Option<&'static str> {
        let rest = self.text.get(self.at..)?;
        let keyword = KEYWORDS.into_iter().find(|keyword| rest.starts_with(keyword))?;
        let next = rest[keyword.len()..].chars().next();
        next.is_none_or(|next| !counts_as_name(next)).then_some(keyword)
    }

    fn begin(&mut self) {
        let Some(keyword) = self.keyword() else { return };
        let end = self.comments_above();
        self.unclosed(self.at, end, Stop::Declaration(keyword));
        self.end(end);
        let bytes = self.at..self.at + keyword.len();
        self.at = bytes.end;
        self.current = Some(Declaration { keyword, bytes, bodies: Vec::new() });
    }

    /// Where the comments that stand right above this line begin.
    fn comments_above(&self) -> usize {
        let mut start = self.at;
        while let Some(before) = self.text.get(..start.saturating_sub(1)) {
            let line = before.rfind('\n').map_or(0, |newline| newline + 1);
            if line >= start || !before[line..].starts_with("//") {
                break;
            }
            start = line;
        }
        start
    }

    fn end(&mut self, at: usize) {
        self.open.clear();
        if let Some(mut declaration) = self.current.take() {
            declaration.bytes.end = at.max(declaration.bytes.end);
            self.found.push(declaration);
        }
    }

    /// Notes what is open where a declaration has to end, and the next one stands.
    fn unclosed(&mut self, at: usize, end: usize, stop: Stop) {
        let (Some(first), Some(last)) = (self.open.first(), self.open.last()) else { return };
        let Some(declaration) = &mut self.current else { return };
        if declaration.is_code() {
            // A body without an end goes away with its brace: a function may be declared without one.
            if first.0 == b'{' {
                declaration.bodies.push(first.1..end);
            }
            return;
        }
        self.wrong.push(Unbalanced { opens_at: last.1, at, stop });
    }

    fn close(&mut self, byte: u8) {
        let opening = match byte {
            b')' => b'(',
            b']' => b'[',
            _ => b'{',
        };
        match self.open.pop() {
            Some((open, at)) if open == opening => self.close_body(byte, at),
            Some((_, opens_at)) if self.current.as_ref().is_some_and(|one| !one.is_code()) => {
                self.wrong.push(Unbalanced { opens_at, at: self.at, stop: Stop::Bracket(byte) });
            }
            Some(_) | None => {}
        }
        self.at += 1;
    }

    /// Notes a body of the declaration whose last bracket closes here; it began at `at`.
    fn close_body(&mut self, byte: u8, at: usize) {
        if byte == b'}'
            && self.open.is_empty()
            && let Some(declaration) = &mut self.current
        {
            declaration.bodies.push(at + 1..self.at);
        }
    }

    fn comment(&mut self) {
        let rest = &self.text[self.at..];
        let length =
            if rest.starts_with("//") { rest.find('\n') } else { rest.find("*/").map(|end| end + 2) };
        self.at += length.unwrap_or(rest.len());
    }

    /// Passes over a text or a rune; one that is not closed ends with its line.
    fn quoted(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        self.at += 1;
        while let Some(byte) = bytes.get(self.at).copied() {
            match byte {
                b'\n' if quote != b'`' => return,
                b'\\' if quote != b'`' => self.at += 1,
                _ => {}
            }
            self.at += 1;
            if byte == quote {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_blanked_out_and_keeps_its_place() {
        let text = "package a\n\nvar x = new(int64(5))\n\nvar (\n\ty = f(`\ntype No`)\n)\n\nvar z =\n\tnew(1)\n\n// F.\nfunc F(a interface{}) (b struct{ C int }) {\n\tif `}` != \"{\" {\n\t}\n}\n\ntype A struct {\n\tB string `json:\"é\"` // {\n}\n";
        let blanked = without_code(text);
        assert_eq!(blanked.len(), text.len());
        assert_eq!(blanked.matches('\n').count(), text.matches('\n').count());
        let words = blanked.split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(
            words,
            "package a var() var() var() // F. func F(a interface{}) (b struct{ C int }) { } \
             type A struct { B string `json:\"é\"` // { }"
        );
        assert_eq!(unbalanced(text), []);
    }

    #[test]
    fn an_open_function_ends_where_the_next_declaration_begins() {
        let text =
            "package a\n\nfunc F() {\n\tif true {\n}\n\n// A is a type.\ntype A struct {\n\tB string\n}\n";
        let words = without_code(text).split_whitespace().collect::<Vec<_>>().join(" ");
        assert_eq!(words, "package a func F() // A is a type. type A struct { B string }");
        assert_eq!(unbalanced(text), []);
    }

    #[test]
    fn a_cut_struct_is_told_where_the_text_stops_making_sense() {
        let found = |text: &str| {
            let all = unbalanced(text).into_iter();
            let line = |at: usize| text[..at].matches('\n').count() + 1;
            all.map(|one| (line(one.opens_at), line(one.at), one.message(text))).collect::<Vec<_>>()
        };
        let (first, second) =
            ("package a\n\ntype A struct {\n\tB string\n", "// C is next.\ntype C struct {\n\tD int\n}\n");
        let message = "`type` begins here, and the `{` of line 3 is not closed".to_owned();
        assert_eq!(found(&format!("{first}\n{second}")), [(3, 7, message)]);
        let message = "the file ends here, and the `{` of line 3 is not closed".to_owned();
        assert_eq!(found(first), [(3, 4, message)]);
        let message = "`)` does not close the `{` of line 3".to_owned();
        assert_eq!(found("package a\n\ntype A struct {\n\tB string\n)\n"), [(3, 5, message)]);
    }
}
