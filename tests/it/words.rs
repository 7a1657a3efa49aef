//! Prose of the repository, held by figures that only get better: how comments begin, how wide they are, and how long the
//! sentences of README and pages are. `tests/reference/words/measure.py` prints the same figures with the worst sentences.

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

/// The comments of a file that begin badly, and its comment lines beyond column 110.
fn faults(text: &str) -> (usize, usize) {
    let (mut badly, mut wide) = (0, 0);
    let mut before: Option<(&str, &str)> = None;
    for line in text.lines() {
        let now = comment(line);
        if let Some((marker, said)) = now {
            wide += usize::from(line.chars().count() > 110);
            let is_first = before.is_none_or(|(other, above)| other != marker || above.trim().is_empty());
            badly += usize::from(is_first && begins_badly(said));
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
        (2, 0),
        "the first and the last one; a line in the middle may begin with any word"
    );
    assert_eq!(faults(&format!("    // {}\n", "x".repeat(104))), (0, 1));
    assert_eq!(faults(&format!("    // {}\n", "x".repeat(103))), (0, 0));
}

/// The words of a sentence, without what is no word.
fn words(sentence: &str) -> usize {
    sentence.split_whitespace().filter(|word| word.chars().any(char::is_alphanumeric)).count()
}

/// The words of each sentence of a paragraph.
fn in_sentences(text: &str) -> Vec<usize> {
    let mut from = 0;
    let mut found = Vec::new();
    for (at, _) in text.match_indices(['.', '!', '?']) {
        let Some(next) = text[at + 1..].trim_start_matches(')').strip_prefix(' ') else { continue };
        let begins = next.starts_with(|c: char| c.is_uppercase() || matches!(c, '(' | '*' | '['));
        if begins || next.starts_with("code") || next.starts_with("opdev") {
            found.push(words(&text[from..=at]));
            from = at + 1;
        }
    }
    found.push(words(&text[from..]));
    found
}

/// The sentences of a page: paragraphs, items of lists and cells of tables; code counts as one word.
fn sentences(page: &str) -> Vec<usize> {
    let prose: String = page.split("```").step_by(2).collect();
    let bare: String =
        prose.split('`').enumerate().map(|(at, part)| if at % 2 == 1 { "code" } else { part }).collect();
    let mut parts = vec![String::new()];
    for line in bare.lines().map(str::trim) {
        let item = line.trim_start_matches(|c: char| c.is_ascii_digit()).starts_with(". ");
        if line.is_empty() || line.starts_with(['|', '#', '-', '!']) || item {
            parts.push(String::new());
        }
        match line.strip_prefix('|') {
            Some(row) => parts.extend(row.split('|').map(str::to_owned)),
            None if line.starts_with(['#', '!']) => {}
            None => {
                let last = parts.last_mut().unwrap();
                last.push(' ');
                last.push_str(line);
            }
        }
    }
    parts.iter().flat_map(|part| in_sentences(part)).filter(|words| *words >= 4).collect()
}

#[test]
fn a_sentence_ends_where_the_next_one_begins() {
    let page = "# A title is none\n\nOne of four words. And `a long piece of code` is one word here.\n\n- an item of five words\n";
    assert_eq!(sentences(page), [4, 6, 5]);
}

/// Fewer comments that begin badly and fewer that are too wide, fewer long sentences a page: never more.
#[test]
fn prose_gets_better() {
    let (mut badly, mut wide) = (0, 0);
    for path in below("src", "rs") {
        let (more, wider) = faults(&fs::read_to_string(path).unwrap());
        badly += more;
        wide += wider;
    }
    let mut lines = format!("comments that begin badly\t{badly}\ncomments beyond column 110\t{wide}\n");
    let mut pages = below("docs", "md");
    pages.push(root().join("README.md"));
    pages.sort();
    for page in pages.iter().filter(|page| !page.starts_with(root().join("docs/decisions"))) {
        let found = sentences(&fs::read_to_string(page).unwrap());
        let long = found.iter().filter(|words| **words > 25).count();
        let name = page.strip_prefix(root()).unwrap().display();
        let _ = writeln!(lines, "{name}: sentences over 25 words\t{long}");
    }
    let golden = root().join("tests/golden/prose.tsv");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&golden, &lines).unwrap();
    }
    let count =
        |line: &str| line.rsplit_once('\t').map(|(what, n)| (what.to_owned(), n.parse::<usize>().unwrap()));
    let most: BTreeMap<String, usize> =
        fs::read_to_string(&golden).unwrap().lines().filter_map(count).collect();
    for (what, now) in lines.lines().filter_map(count) {
        let most = most.get(&what).copied().unwrap_or_default();
        assert!(now <= most, "{what}: {now}, at most {most}; docs/style.md says how to write them");
    }
}
