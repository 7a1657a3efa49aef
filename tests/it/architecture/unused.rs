//! Public items that nobody names outside of tests: the compiler finds none of them, for another package might.

use super::modules::without_tests;
use super::{members, name, packages, root};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;
use std::str::FromStr;

/// Items that only tests name, each for a reason. The list only shrinks.
const FOR_TESTS: [(&str, &str); 6] = [
    // Answers wait for a disk: the tests of the verbs bring one that waits for a word.
    ("src/controlplane/storage/lib.rs", "on_disk"),
    // Three packages hold what they know against all definitions of Kubernetes.
    ("src/object/facts/mod.rs", "raw_definitions"),
    // The other half of `three_way`, by which Kubernetes' tables of cases are read.
    ("src/object/strategic/mod.rs", "two_way"),
    ("src/program/trace/lib.rs", "unknown_calls"),
    ("src/state/versions.rs", "same_gone"),
    ("src/tui/panes/lists/table.rs", "rows_made"),
];

/// The names in code and how often each stands there, and its public items with their lines.
#[derive(Default)]
struct Names {
    times: BTreeMap<String, usize>,
    public: Vec<(String, usize)>,
}

impl Names {
    fn read(&mut self, tokens: &[TokenTree]) {
        for (at, token) in tokens.iter().enumerate() {
            match token {
                TokenTree::Group(group) => self.read(&group.stream().into_iter().collect::<Vec<_>>()),
                TokenTree::Ident(word) => {
                    *self.times.entry(word.to_string()).or_default() += 1;
                    if word == "pub" {
                        self.public.extend(public(&tokens[at + 1..]));
                    }
                }
                // A text to be formatted names constants in its braces.
                TokenTree::Literal(text) => {
                    for part in text.to_string().split('{').skip(1) {
                        let word: String =
                            part.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
                        *self.times.entry(word).or_default() += 1;
                    }
                }
                TokenTree::Punct(_) => {}
            }
        }
    }
}

/// The name and the line of the item behind `pub`, where it is open to all packages.
fn public(rest: &[TokenTree]) -> Option<(String, usize)> {
    let mut words = rest.iter().map_while(|token| match token {
        TokenTree::Ident(word) => Some(word),
        _ => None,
    });
    let kinds = ["fn", "struct", "enum", "trait", "type", "const", "static"];
    let mut kind = words.next()?;
    while ["const", "async", "unsafe"].iter().any(|before| kind == before) {
        let next = words.next()?;
        if !kinds.iter().any(|one| next == one) {
            return Some((next.to_string(), next.span().start().line));
        }
        kind = next;
    }
    let item = kinds.iter().any(|one| kind == one).then(|| words.next())??;
    Some((item.to_string(), item.span().start().line))
}

/// Public items that stand nowhere but at their own definition: file, line and name.
fn unused(files: &[(String, String)]) -> Vec<(String, usize, String)> {
    let mut times: BTreeMap<String, usize> = BTreeMap::new();
    let mut public = Vec::new();
    for (file, text) in files {
        let mut names = Names::default();
        names.read(&without_tests(TokenStream::from_str(text).unwrap()));
        for (word, more) in names.times {
            *times.entry(word).or_default() += more;
        }
        public.extend(names.public.into_iter().map(|(item, line)| (file.clone(), line, item)));
    }
    let mut defined: BTreeMap<String, usize> = BTreeMap::new();
    for (_, _, item) in &public {
        *defined.entry(item.clone()).or_default() += 1;
    }
    public.retain(|(_, _, item)| times.get(item) <= defined.get(item));
    public
}

#[test]
fn a_public_item_that_only_its_tests_name_is_unused() {
    let file = |text: &str| vec![("a.rs".to_owned(), text.to_owned())];
    let names =
        |text: &str| unused(&file(text)).into_iter().map(|(_, line, item)| (line, item)).collect::<Vec<_>>();
    let text = "pub fn a() {}\npub(crate) fn b() {}\n#[cfg(test)]\nmod tests { fn t() { super::a() } }\n";
    assert_eq!(names(text), [(1, "a".to_owned())]);
    assert_eq!(names("pub const fn a() {}\nfn b() { a() }\n"), []);
    assert_eq!(names("pub const LIMIT: u8 = 1;\nfn b() { f!(\"at most {LIMIT}\") }\n"), []);
    assert_eq!(names("// a\npub struct A;\n"), [(2, "A".to_owned())]);
}

#[test]
fn public_items_have_users() {
    let mut paths: BTreeSet<PathBuf> = BTreeSet::new();
    for (folder, package) in packages() {
        paths.extend(package.modules.iter().map(|module| root().join(folder).join(&module.file)));
    }
    paths.insert(root().join("src/cli/main.rs"));
    let files: Vec<(String, String)> =
        paths.iter().map(|path| (name(path), fs::read_to_string(path).unwrap())).collect();
    assert!(members().len() > 30 && files.len() > 1000, "{} files", files.len());
    let found = unused(&files);
    let is_known = |file: &str, item: &str| FOR_TESTS.contains(&(file, item));
    let new: Vec<String> = found
        .iter()
        .filter(|(file, _, item)| !is_known(file, item))
        .map(|(file, line, item)| format!("{file}:{line}: {item}"))
        .collect();
    assert!(
        new.is_empty(),
        "nobody but tests names them; take them out, or `pub(crate)`:\n{}",
        new.join("\n")
    );
    for (file, item) in FOR_TESTS {
        let still = found.iter().any(|(at, _, one)| at == file && one == item);
        assert!(still, "{item} of {file} has a user, or is gone: take it off the list");
    }
}
