//! Where the declarations of a Go file begin and end, by its letters alone, so that of a large package only
//! the types that are used get parsed. For files that compile; where the letters do not add up, it says
//! nothing.

use super::package::counts_as_name;
use super::syntax::{SourceFile, TypeDecl, read};
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tree_sitter::{Parser, Point, Tree};

/// A declared type that is parsed once somebody asks for it.
#[derive(Debug)]
pub(crate) struct Later {
    pub(crate) name: Arc<str>,
    chunk: Chunk,
    decl: OnceLock<Option<TypeDecl>>,
}

impl Later {
    /// The type; `None` where it is none after all.
    pub(crate) fn decl(&self, file: &SourceFile) -> Option<&TypeDecl> {
        let make = || {
            let part = parse(&file.path, &file.text, std::slice::from_ref(&self.chunk))?;
            part.types.into_iter().find(|decl| decl.name == self.name)
        };
        self.decl.get_or_init(make).as_ref()
    }
}

/// One declaration with the comments above it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Chunk {
    bytes: Range<usize>,
    /// Lines (from 0) of its first and of its last byte.
    lines: Range<usize>,
    /// Where its keyword ends.
    keyword: Range<usize>,
}

/// A file whose types are parsed later; `None` where its letters do not add up.
pub(crate) fn outline(path: &str, text: &Arc<str>) -> Option<SourceFile> {
    let (mut now, mut later) = (Vec::new(), Vec::new());
    for chunk in chunks(text)? {
        match text.get(chunk.keyword.clone())? {
            "type" => match single_name(text.get(chunk.keyword.end..chunk.bytes.end)?) {
                Some(name) => {
                    later.push(Later { name: name.into(), chunk, decl: OnceLock::new() });
                }
                None => now.push(chunk),
            },
            "func" => {
                let header = text.get(chunk.keyword.end..chunk.bytes.end)?.lines().next()?;
                if ["MarshalJSON(", "MarshalText(", "DeepCopy(", "DeepCopyInto("]
                    .iter()
                    .any(|name| header.contains(name))
                {
                    now.push(chunk);
                }
            }
            "package" | "import" => now.push(chunk),
            // Constants matter to `+k8s:enum` alone, and then the file is not outlined.
            _ => {}
        }
    }
    let mut file = parse(path, text, &now)?;
    file.later = later;
    Some(file)
}

thread_local! {
    static PARSER: std::cell::RefCell<Parser> = std::cell::RefCell::new(parser());
}

/// A parser of Go.
pub(crate) fn parser() -> Parser {
    let mut parser = Parser::new();
    // Fails only where grammar and library are of different ABIs; then every file has an error that says so.
    let _ = parser.set_language(&tree_sitter_go::LANGUAGE.into());
    parser
}

/// Parses some parts of a text; what is outside is as if it were not there, and places are those of the
/// whole.
fn parse(path: &str, text: &Arc<str>, chunks: &[Chunk]) -> Option<SourceFile> {
    let ranges: Vec<tree_sitter::Range> = chunks
        .iter()
        .map(|chunk| tree_sitter::Range {
            start_byte: chunk.bytes.start,
            end_byte: chunk.bytes.end,
            start_point: Point { row: chunk.lines.start, column: 0 },
            end_point: Point { row: chunk.lines.end, column: 0 },
        })
        .collect();
    if ranges.is_empty() {
        return Some(SourceFile::new(path, text.clone()));
    }
    let tree: Tree = PARSER.with_borrow_mut(|parser| {
        parser.set_included_ranges(&ranges).ok()?;
        parser.parse(text.as_bytes(), None)
    })?;
    let file = read(path, text, tree.root_node());
    file.errors.is_empty().then_some(file)
}

/// The name in `type Name …`; nothing for a group.
fn single_name(rest: &str) -> Option<&str> {
    let rest = rest.trim_start_matches([' ', '\t']);
    let end = rest.find(|c: char| !counts_as_name(c)).unwrap_or(rest.len());
    rest.get(..end).filter(|name| !name.is_empty())
}

const KEYWORDS: [&str; 6] = ["package", "import", "type", "func", "var", "const"];

/// All declarations in their order.
fn chunks(text: &str) -> Option<Vec<Chunk>> {
    let bytes = text.as_bytes();
    let mut scan = Scan { bytes, at: 0, line: 0, depth: 0 };
    let mut found = Vec::new();
    // Where what belongs to the next declaration begins.
    let (mut start, mut start_line) = (0, 0);
    let mut open: Option<Range<usize>> = None;
    let mut fresh = true;
    while let Some(byte) = bytes.get(scan.at).copied() {
        match byte {
            b'\n' => {
                scan.newline();
                if scan.depth == 0
                    && let Some(keyword) = open.take()
                {
                    found.push(Chunk { bytes: start..scan.at, lines: start_line..scan.line, keyword });
                    (start, start_line) = (scan.at, scan.line);
                }
                fresh = true;
                continue;
            }
            b' ' | b'\t' | b'\r' => scan.at += 1,
            b'/' if matches!(bytes.get(scan.at + 1), Some(b'/' | b'*')) => {
                scan.comment()?;
                continue;
            }
            b'"' | b'\'' | b'`' => scan.quoted(byte)?,
            b'(' | b'{' | b'[' => {
                scan.depth += 1;
                scan.at += 1;
            }
            b')' | b'}' | b']' => {
                scan.depth = scan.depth.checked_sub(1)?;
                scan.at += 1;
            }
            // Two declarations on one line.
            b';' if scan.depth == 0 => return None,
            b'a'..=b'z' if fresh && scan.depth == 0 && open.is_none() => {
                let word = scan.word();
                if !KEYWORDS.contains(&text.get(word.clone())?) {
                    return None;
                }
                open = Some(word);
            }
            b'a'..=b'z' | b'A'..=b'Z' | b'_' => drop(scan.word()),
            _ => scan.at += 1,
        }
        fresh &= matches!(byte, b' ' | b'\t' | b'\r');
    }
    if scan.depth > 0 {
        return None;
    }
    if let Some(keyword) = open {
        found.push(Chunk { bytes: start..bytes.len(), lines: start_line..scan.line, keyword });
    }
    Some(found)
}

struct Scan<'t> {
    bytes: &'t [u8],
    at: usize,
    line: usize,
    depth: usize,
}

impl Scan<'_> {
    fn newline(&mut self) {
        self.at += 1;
        self.line += 1;
    }

    fn word(&mut self) -> Range<usize> {
        let start = self.at;
        while self.bytes.get(self.at).is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_' || *b >= 0x80) {
            self.at += 1;
        }
        start..self.at
    }

    /// Passes over a comment, but not over the end of a line comment's line.
    fn comment(&mut self) -> Option<()> {
        if self.bytes.get(self.at + 1) == Some(&b'/') {
            while self.bytes.get(self.at).is_some_and(|b| *b != b'\n') {
                self.at += 1;
            }
            return Some(());
        }
        self.at += 2;
        while self.bytes.get(self.at..self.at + 2)? != b"*/" {
            self.line += usize::from(self.bytes[self.at] == b'\n');
            self.at += 1;
        }
        self.at += 2;
        Some(())
    }

    /// Passes over a text or a rune.
    fn quoted(&mut self, quote: u8) -> Option<()> {
        self.at += 1;
        loop {
            match *self.bytes.get(self.at)? {
                byte if byte == quote => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' if quote != b'`' => self.at += 2,
                b'\n' if quote != b'`' => return None,
                b'\n' => self.newline(),
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// Copyright\n\npackage v1\n\nimport (\n\tmetav1 \"k8s.io/x\"\n)\n\n// A is first.\n// +a=1\ntype A struct {\n\
        \tB string `json:\"b}\"` // {\n\t/* } */ C rune // '\n}\n\n// +free\n\n// List is a list.\ntype List[T any] []T // behind\n\n\
        type (\n\t// D is in a group.\n\tD int\n\tE = D\n)\n\nfunc (a A) MarshalJSON() ([]byte, error) {\n\treturn []byte{'{', '\\''}, nil\n}\n\n\
        var x = `\ntype No struct {\n`\n\nconst y = '\\\\' +\n\t1\n\n// F ends.\ntype F = A";

    #[test]
    fn an_outline_finds_what_a_whole_parse_finds() {
        let text: Arc<str> = TEXT.into();
        let tree = parser().parse(TEXT.as_bytes(), None).unwrap();
        let whole = read("x.go", &text, tree.root_node());
        let file = outline("x.go", &text).unwrap();
        assert_eq!(file.package, "v1");
        assert_eq!(file.imports.len(), 1);
        assert_eq!(&*file.methods[0].receiver, "A");
        let names: Vec<&str> = file.later.iter().map(|later| &*later.name).collect();
        assert_eq!(names, ["A", "List", "F"]);
        let found = file.types.iter().chain(file.later.iter().filter_map(|later| later.decl(&file)));
        let mut found: Vec<&TypeDecl> = found.collect();
        found.sort_by_key(|decl| decl.at);
        assert_eq!(format!("{found:?}"), format!("{:?}", whole.types.iter().collect::<Vec<_>>()));
    }

    #[test]
    fn letters_that_do_not_add_up_are_left_to_the_parser() {
        for text in ["type A struct {", "type A }", "type A int; type B int", "x := 1", "var a = \"", "/*"] {
            assert!(outline("x.go", &text.into()).is_none(), "{text}");
        }
    }
}
