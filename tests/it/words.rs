//! Prose of the repository, held by figures that only get better: how comments begin, how wide they are, and how long the
//! sentences of README and pages are. `tests/reference/words/measure.py` prints the same figures with the worst sentences.

use crate::newer::{Place, among};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn below(folder: &str, end: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![root().join(folder)];
    while let Some(at) = open.pop() {
        for entry in fs::read_dir(at).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|ext| ext == end) {
                found.push(path);
            }
        }
    }
    found
}

/// The marker of a line that is a comment, and its text.
fn comment(line: &str) -> Option<(&str, &str)> {
    let line = line.trim_start();
    let marker = ["///", "//!", "//"].into_iter().find(|marker| line.starts_with(marker))?;
    Some((marker, line[marker.len()..].strip_prefix(' ').unwrap_or(&line[marker.len()..])))
}

/// A first word that hangs on the line above: the reader has to look for the subject.
fn begins_badly(text: &str) -> bool {
    let words = ["What", "Who", "Whether", "Which", "Of", "The same"];
    words.into_iter().any(|word| {
        text.strip_prefix(word)
            .is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
    })
}

/// The lines of a file whose comments begin badly, and its comment lines beyond column 110.
fn faults(text: &str) -> (Vec<usize>, Vec<usize>) {
    let (mut badly, mut wide) = (Vec::new(), Vec::new());
    let mut before: Option<(&str, &str)> = None;
    for (line, at) in text.lines().zip(1..) {
        let now = comment(line);
        if let Some((marker, said)) = now {
            wide.extend((line.chars().count() > 110).then_some(at));
            let is_first = before.is_none_or(|(other, above)| other != marker || above.trim().is_empty());
            badly.extend((is_first && begins_badly(said)).then_some(at));
        }
        before = now;
    }
    (badly, wide)
}

#[test]
fn comments_are_judged_by_their_first_line() {
    let text = "/// What it is.\nfn a() {}\n// It says\n// What it wants.\nlet of = 1;\n/// Offers one.\n//\n// The same twice.\n";
    assert_eq!(
        faults(text),
        (vec![1, 8], vec![]),
        "the first and the last one; a line in the middle may begin with any word"
    );
    assert_eq!(faults(&format!("    // {}\n", "x".repeat(104))), (vec![], vec![1]));
    assert_eq!(faults(&format!("    // {}\n", "x".repeat(103))), (vec![], vec![]));
}

/// The words of a sentence, without what is no word.
fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// A paragraph, an item of a list or a cell of a table: its text, and which line begins where in it.
#[derive(Default)]
struct Part {
    text: String,
    lines: Vec<(usize, usize)>,
}

impl Part {
    fn add(&mut self, text: &str, line: usize) {
        self.text.push(' ');
        self.lines.push((self.text.len(), line));
        self.text.push_str(text);
    }

    /// The line of the page that this place of the text is in.
    fn line(&self, at: usize) -> usize {
        let before = self.lines.iter().rev().find(|(from, _)| *from <= at);
        before.or(self.lines.first()).map_or(0, |(_, line)| *line)
    }

    /// Its sentences with how many words each has.
    fn sentences(&self) -> Vec<Sentence> {
        let mut from = 0;
        let mut found = Vec::new();
        let mut ends: Vec<usize> = Vec::new();
        for (at, _) in self.text.match_indices(['.', '!', '?']) {
            let Some(next) = self.text[at + 1..].trim_start_matches(')').strip_prefix(' ') else { continue };
            let begins = next.starts_with(|c: char| c.is_uppercase() || matches!(c, '(' | '*' | '['));
            if begins || next.starts_with("code") || next.starts_with("opdev") {
                ends.push(at + 1);
            }
        }
        ends.push(self.text.len());
        for end in ends {
            let text = &self.text[from..end];
            let begins = from + text.len() - text.trim_start().len();
            let lines = (self.line(begins), self.line(end.saturating_sub(1)));
            found.push(Sentence { words: words(text), lines, text: text.trim().to_owned() });
            from = end;
        }
        found
    }
}

/// A sentence of a page.
struct Sentence {
    words: usize,
    /// The first and the last line.
    lines: (usize, usize),
    text: String,
}

/// The sentences of a page: paragraphs, items of lists and cells of tables; code counts as one word.
fn sentences(page: &str) -> Vec<Sentence> {
    // A block of code keeps its lines, so that what follows keeps its number.
    let blocks = page.split("```").enumerate();
    let prose: String = blocks
        .map(|(at, part)| if at % 2 == 1 { "\n".repeat(part.matches('\n').count()) } else { part.to_owned() })
        .collect();
    let code = |part: &str| format!("code{}", "\n".repeat(part.matches('\n').count()));
    let bare: String = prose
        .split('`')
        .enumerate()
        .map(|(at, part)| if at % 2 == 1 { code(part) } else { part.to_owned() })
        .collect();
    let mut parts = vec![Part::default()];
    for (line, at) in bare.lines().map(str::trim).zip(1..) {
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        if line.is_empty() || line.starts_with(['|', '#', '-', '!']) || item {
            parts.push(Part::default());
        }
        match line.strip_prefix('|') {
            Some(row) => parts.extend(row.split('|').map(|cell| {
                let mut part = Part::default();
                part.add(cell, at);
                part
            })),
            None if line.starts_with(['#', '!']) => {}
            None => parts.last_mut().unwrap().add(line, at),
        }
    }
    parts.iter().flat_map(Part::sentences).filter(|sentence| sentence.words >= 4).collect()
}

#[test]
fn a_sentence_ends_where_the_next_one_begins() {
    let page = "# A title is none\n\nOne of four words. And `a long piece of code` is one word here.\n\n- an item of five words\n";
    let found = sentences(page);
    assert_eq!(found.iter().map(|one| one.words).collect::<Vec<_>>(), [4, 6, 5]);
    assert_eq!(found.iter().map(|one| one.lines).collect::<Vec<_>>(), [(3, 3), (3, 3), (5, 5)]);
    let page = "```sh\nno prose\n```\nA sentence over\ntwo lines. Another one with `code` in\nit.\n";
    assert_eq!(sentences(page).iter().map(|one| one.lines).collect::<Vec<_>>(), [(4, 5), (5, 6)]);
}

/// Fewer comments that begin badly and fewer that are too wide, fewer long sentences a page: never more.
#[test]
fn prose_gets_better() {
    let kept = "tests/golden/prose.tsv";
    // What is counted, with the place of each.
    let mut found: Vec<(String, Vec<Place>)> = Vec::new();
    let (mut badly, mut wide) = (Vec::new(), Vec::new());
    for path in below("src", "rs") {
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let place = |at: usize| Place { path: path.clone(), lines: (at, at), text: lines[at - 1].to_owned() };
        let (more, wider) = faults(&text);
        badly.extend(more.into_iter().map(place));
        wide.extend(wider.into_iter().map(place));
    }
    found.push(("comments that begin badly".to_owned(), badly));
    found.push(("comments beyond column 110".to_owned(), wide));
    let mut pages = below("docs", "md");
    pages.push(root().join("README.md"));
    pages.sort();
    for page in pages.iter().filter(|page| !page.starts_with(root().join("docs/decisions"))) {
        let long = sentences(&fs::read_to_string(page).unwrap()).into_iter().filter(|one| one.words > 25);
        let place = |one: Sentence| Place { path: page.clone(), lines: one.lines, text: one.text };
        let name = page.strip_prefix(root()).unwrap().display();
        found.push((format!("{name}: sentences over 25 words"), long.map(place).collect()));
    }
    let golden = root().join(kept);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let mut lines = String::new();
        for (what, places) in &found {
            let _ = writeln!(lines, "{what}\t{}", places.len());
        }
        fs::write(&golden, &lines).unwrap();
    }
    let count =
        |line: &str| line.rsplit_once('\t').map(|(what, n)| (what.to_owned(), n.parse::<usize>().unwrap()));
    let most: BTreeMap<String, usize> =
        fs::read_to_string(&golden).unwrap().lines().filter_map(count).collect();
    let mut wrong = Vec::new();
    for (what, places) in &found {
        let (now, most) = (places.len(), most.get(what).copied().unwrap_or_default());
        if now > most {
            let places: Vec<&Place> = places.iter().collect();
            wrong.push(format!("{what}: {now}, at most {most}; {}", among(&places, kept)));
        }
    }
    assert!(wrong.is_empty(), "docs/style.md says how to write them.\n{}", wrong.join("\n"));
}
