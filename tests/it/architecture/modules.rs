//! Reads the modules of a package from its files: what each defines, what it imports, and the paths it names.
//!
//! The text is split into tokens by the compiler's own tokenizer, so comments and strings are never taken for
//! code. What stands under `#[cfg(test)]` is left out by its braces; the code behind it is read.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// One module: a file, or a `mod name { … }` inside of one.
#[derive(Default)]
pub(super) struct Module {
    /// The file, relative to the package's folder. Modules inside of a file have the file's name.
    pub(super) file: PathBuf,
    pub(super) name: String,
    pub(super) parent: Option<usize>,
    pub(super) children: BTreeMap<String, usize>,
    /// Names of functions, types, traits, constants and macros that are defined here.
    pub(super) items: BTreeSet<String>,
    /// Name in this module → the path that a `use` gave for it.
    pub(super) imports: BTreeMap<String, Named>,
    /// What `use path::*` names.
    pub(super) globs: Vec<Named>,
    /// All paths of two or more segments, with those of `use`.
    pub(super) paths: Vec<Named>,
}

/// A path in the code, with its line.
#[derive(Clone, Debug)]
pub(super) struct Named {
    pub(super) path: Vec<String>,
    pub(super) line: usize,
}

/// All modules of a package; the first is the root.
pub(super) struct Package {
    pub(super) modules: Vec<Module>,
}

impl Package {
    /// Reads the package whose root is `file` in `folder`: `lib.rs` or `main.rs`.
    pub(super) fn read(folder: &Path, file: &str) -> Self {
        let mut package = Package { modules: Vec::new() };
        package.file(folder, PathBuf::from(file), Path::new(""), None, "lib");
        package
    }

    /// Names from the root to a module.
    pub(super) fn path(&self, module: usize) -> Vec<&str> {
        let mut path = Vec::new();
        let mut at = module;
        while let Some(parent) = self.modules[at].parent {
            path.push(self.modules[at].name.as_str());
            at = parent;
        }
        path.reverse();
        path
    }

    /// Reads one file; `inside` is the folder in which its child modules lie.
    fn file(
        &mut self,
        folder: &Path,
        file: PathBuf,
        inside: &Path,
        parent: Option<usize>,
        name: &str,
    ) -> usize {
        let text = fs::read_to_string(folder.join(&file)).unwrap();
        let tokens = tokens_of(&text).unwrap_or_else(|e| panic!("{}: {e}", file.display()));
        let index = self.modules.len();
        self.modules.push(Module { file, parent, name: name.to_owned(), ..Module::default() });
        self.items(folder, inside, index, &tokens);
        index
    }

    /// Reads the items of a module.
    fn items(&mut self, folder: &Path, inside: &Path, module: usize, tokens: &[TokenTree]) {
        let mut at = 0;
        while at < tokens.len() {
            let word = word_at(tokens, at);
            let next = word_at(tokens, at + 1);
            match (word.as_deref(), next) {
                (Some("mod"), Some(name)) => {
                    let child = self.child(folder, inside, module, &name, tokens.get(at + 2));
                    self.modules[module].children.insert(name, child);
                    at += 3;
                }
                (Some("use"), _) => {
                    let end = end_of_use(tokens, at);
                    self.import(module, &tokens[at + 1..end]);
                    at = end + 1;
                }
                (
                    Some("fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"),
                    Some(name),
                ) => {
                    self.modules[module].items.insert(name);
                    at += 1;
                }
                (Some("macro_rules"), None) => {
                    self.modules[module].items.extend(word_at(tokens, at + 2));
                    at += 3;
                }
                _ => at = self.body(module, tokens, at),
            }
        }
    }

    /// Reads the module behind `mod name`: what is between its braces, or a file of its own.
    fn child(
        &mut self,
        folder: &Path,
        inside: &Path,
        module: usize,
        name: &str,
        after: Option<&TokenTree>,
    ) -> usize {
        let below = inside.join(name);
        if let Some(TokenTree::Group(group)) = after {
            let index = self.modules.len();
            let file = self.modules[module].file.clone();
            let parent = Some(module);
            self.modules.push(Module { file, parent, name: name.to_owned(), ..Module::default() });
            self.items(folder, &below, index, &without_tests(group.stream()));
            return index;
        }
        let beside = inside.join(format!("{name}.rs"));
        let file = if folder.join(&beside).exists() { beside } else { below.join("mod.rs") };
        self.file(folder, file, &below, Some(module), name)
    }

    /// Reads one token of code that is no item, and what is inside of it. Returns the place behind it.
    fn body(&mut self, module: usize, tokens: &[TokenTree], at: usize) -> usize {
        match &tokens[at] {
            TokenTree::Group(group) => {
                let inner = without_tests(group.stream());
                let mut next = 0;
                while next < inner.len() {
                    if word_at(&inner, next).as_deref() == Some("use") {
                        let end = end_of_use(&inner, next);
                        self.import(module, &inner[next + 1..end]);
                        next = end + 1;
                    } else {
                        next = self.body(module, &inner, next);
                    }
                }
                at + 1
            }
            TokenTree::Ident(first) => {
                let line = first.span().start().line;
                let mut path = vec![first.to_string()];
                let mut end = at + 1;
                while colons_at(tokens, end) {
                    let Some(name) = word_at(tokens, end + 2) else { break };
                    path.push(name);
                    end += 3;
                }
                // `…>::name` and `::name` are the rest of a path whose start is elsewhere.
                let is_rest = at >= 2 && colons_at(tokens, at - 2);
                if path.len() > 1 && !is_rest {
                    self.modules[module].paths.push(Named { path, line });
                }
                end
            }
            TokenTree::Punct(_) | TokenTree::Literal(_) => at + 1,
        }
    }

    /// Takes in one `use`, whose tree is `tokens`.
    fn import(&mut self, module: usize, tokens: &[TokenTree]) {
        let mut leaves = Vec::new();
        use_tree(&[], tokens, &mut leaves);
        let module = &mut self.modules[module];
        for (name, named) in leaves {
            module.paths.push(named.clone());
            if name == "*" {
                module.globs.push(named);
            } else {
                module.imports.insert(name, named);
            }
        }
    }
}

/// The tokens of a file, without what is only there for tests.
fn tokens_of(text: &str) -> Result<Vec<TokenTree>, proc_macro2::LexError> {
    let tokens = without_tests(TokenStream::from_str(text)?);
    // `#![cfg(test)]` at the top leaves out the whole file.
    let inner = tokens.windows(3).take_while(|t| is_sign(&t[0], '#') || is_sign(&t[1], '!'));
    let is_test = inner.into_iter().any(|t| is_sign(&t[1], '!') && is_cfg_test(&t[2]));
    Ok(if is_test { Vec::new() } else { tokens })
}

/// The lines in which a field of a JSON value is made or changed by `value["name"]`, which panics where the
/// value is no map.
pub(super) fn changed_by_index(text: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut open = vec![tokens_of(text).unwrap()];
    while let Some(tokens) = open.pop() {
        for (at, token) in tokens.iter().enumerate() {
            let TokenTree::Group(group) = token else { continue };
            open.push(without_tests(group.stream()));
            if at > 0 && is_field(token) && is_indexed(&tokens[at - 1]) && is_changed(&tokens, at) {
                lines.push(token.span().start().line);
            }
        }
    }
    lines.sort_unstable();
    lines
}

/// `["name"]`
fn is_field(token: &TokenTree) -> bool {
    let TokenTree::Group(group) = token else { return false };
    let inner: Vec<_> = group.stream().into_iter().collect();
    group.delimiter() == Delimiter::Bracket
        && matches!(inner.as_slice(), [TokenTree::Literal(text)] if text.to_string().starts_with('"'))
}

/// What may stand before an index: a name, or what a call or another index gave.
fn is_indexed(token: &TokenTree) -> bool {
    match token {
        TokenTree::Ident(word) => !["in", "return", "else", "match", "if"].contains(&&*word.to_string()),
        TokenTree::Group(group) => group.delimiter() != Delimiter::Brace,
        TokenTree::Punct(_) | TokenTree::Literal(_) => false,
    }
}

/// Returns true if what is indexed at `at` is assigned to, borrowed to be changed, or emptied.
fn is_changed(tokens: &[TokenTree], at: usize) -> bool {
    let is_index = |token: &TokenTree| matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Bracket);
    let end = at + tokens[at..].iter().take_while(|token| is_index(token)).count();
    let is_sign_at = |at: usize, sign: char| tokens.get(at).is_some_and(|token| is_sign(token, sign));
    let assigned = is_sign_at(end, '=') && !is_sign_at(end + 1, '=') && !is_sign_at(end + 1, '>');
    let called = word_at(tokens, end + 1).filter(|_| is_sign_at(end, '.')).unwrap_or_default();
    let emptied = called.ends_with("_mut") || called == "take" || called == "clone_from";
    let begins = tokens[..at].iter().rposition(|token| {
        let is_part = matches!(token, TokenTree::Ident(word) if *word != "mut")
            || is_sign(token, '.')
            || is_index(token);
        !is_part
    });
    let borrowed = begins.is_some_and(|at| {
        word_at(tokens, at).as_deref() == Some("mut") && at > 0 && is_sign(&tokens[at - 1], '&')
    });
    assigned || emptied || borrowed
}

/// How many lines a file has besides those of items that are only there for tests.
pub(super) fn lines_without_tests(text: &str) -> usize {
    let tokens: Vec<_> = TokenStream::from_str(text).unwrap().into_iter().collect();
    let tests: usize = tests_in(&tokens)
        .into_iter()
        .map(|range| tokens[range.end - 1].span().end().line + 1 - tokens[range.start].span().start().line)
        .sum();
    text.lines().count() - tests
}

/// Leaves out each item, field or statement that stands under `#[cfg(test)]`.
pub(super) fn without_tests(stream: TokenStream) -> Vec<TokenTree> {
    let mut tokens: Vec<_> = stream.into_iter().collect();
    for range in tests_in(&tokens).into_iter().rev() {
        tokens.drain(range);
    }
    tokens
}

/// Where in `tokens` what stands under `#[cfg(test)]` lies, each from its `#` to its end.
fn tests_in(tokens: &[TokenTree]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    while at < tokens.len() {
        let is_test = is_sign(&tokens[at], '#') && tokens.get(at + 1).is_some_and(is_cfg_test);
        let end = if is_test { end_of_item(tokens, at + 2) } else { at + 1 };
        if is_test {
            found.push(at..end);
        }
        at = end;
    }
    found
}

/// The place behind the item that begins at `at`: behind its braces or its semicolon.
fn end_of_item(tokens: &[TokenTree], mut at: usize) -> usize {
    while at + 1 < tokens.len() && is_sign(&tokens[at], '#') {
        at += 2;
    }
    let mut needs_semicolon = false;
    while at < tokens.len() {
        match &tokens[at] {
            TokenTree::Ident(word) => {
                needs_semicolon |= ["use", "static", "let", "type"].contains(&word.to_string().as_str());
            }
            TokenTree::Punct(sign) if matches!(sign.as_char(), ';' | ',') => return at + 1,
            // A constant's value may be a block: it ends at its semicolon.
            TokenTree::Punct(sign) if sign.as_char() == '=' => needs_semicolon = true,
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace && !needs_semicolon => {
                return at + 1;
            }
            TokenTree::Punct(_) | TokenTree::Group(_) | TokenTree::Literal(_) => {}
        }
        at += 1;
    }
    at
}

/// Is this the `[cfg(test)]` of an attribute, also as one of several conditions that must all hold?
fn is_cfg_test(token: &TokenTree) -> bool {
    let text = token.to_string().replace(' ', "");
    text == "[cfg(test)]" || text.starts_with("[cfg(all(test,")
}

fn is_sign(token: &TokenTree, sign: char) -> bool {
    matches!(token, TokenTree::Punct(p) if p.as_char() == sign)
}

fn word_at(tokens: &[TokenTree], at: usize) -> Option<String> {
    match tokens.get(at) {
        Some(TokenTree::Ident(word)) => Some(word.to_string()),
        _ => None,
    }
}

fn colons_at(tokens: &[TokenTree], at: usize) -> bool {
    tokens.len() > at + 1 && is_sign(&tokens[at], ':') && is_sign(&tokens[at + 1], ':')
}

fn end_of_use(tokens: &[TokenTree], at: usize) -> usize {
    let rest = tokens[at..].iter().position(|token| is_sign(token, ';'));
    rest.map_or(tokens.len(), |offset| at + offset)
}

/// The leaves of `a::b::{self, c as d, e::*}`: the name that each gets here, and its whole path.
fn use_tree(prefix: &[String], tokens: &[TokenTree], leaves: &mut Vec<(String, Named)>) {
    for part in tokens.split(|token| is_sign(token, ',')) {
        let mut path = prefix.to_vec();
        let mut alias = None;
        let mut line = 0;
        let mut is_leaf = false;
        let mut words = part.iter();
        while let Some(token) = words.next() {
            line = line.max(token.span().start().line);
            match token {
                TokenTree::Ident(word) if word == "as" => alias = words.next().map(ToString::to_string),
                TokenTree::Ident(word) => {
                    is_leaf = true;
                    path.push(word.to_string());
                }
                TokenTree::Punct(sign) if sign.as_char() == '*' => alias = Some("*".to_owned()),
                TokenTree::Group(group) => {
                    is_leaf = false;
                    use_tree(&path, &group.stream().into_iter().collect::<Vec<_>>(), leaves);
                }
                TokenTree::Punct(_) | TokenTree::Literal(_) => {}
            }
        }
        if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
            path.pop();
        }
        if is_leaf && let Some(last) = path.last() {
            leaves.push((alias.unwrap_or_else(|| last.clone()), Named { path, line }));
        }
    }
}
