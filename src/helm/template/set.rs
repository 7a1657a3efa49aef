//! A set of named templates with Go's rules of definition and redefinition, and the cache of parsed texts
//! behind it. A clone shares everything; `tpl` works on a clone so that its definitions stay its own.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use super::context::{Compat, Context};
use super::error::{ExecError, ParseError};
use super::exec;
use super::funcs::strings::find;
use super::funcs::{Function, Language};
use super::node::Tree;
use super::parse::parse;
use super::reads::Quickly;
use super::text::Str;
use super::value::Value;

type Trees = Arc<BTreeMap<Str, Arc<Tree>>>;

/// The name of a text, and whose functions it may call.
type Key = (Box<str>, Compat);

/// A text and its trees.
type Parsed = (Arc<str>, Trees);

/// The name of every text that `tpl` runs.
pub(super) const TPL: &str = "gotpl";

/// How many texts a cache keeps before it starts again.
const CACHED_TEXTS: usize = 20_000;

/// How many texts of one name are compared one by one, newest first, before a hash is taken instead: a file
/// has a few versions, while `tpl` parses everything under one name.
const COMPARED: usize = 4;

/// The parsed form of a text: its own template, and those it defines.
#[derive(Clone)]
pub struct ParsedText(Trees);

/// Parsed texts by name and content, shared by renders: only what changed is parsed again.
#[derive(Default)]
pub struct ParseCache {
    parsed: Mutex<Cached>,
}

impl fmt::Debug for ParseCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Texts of `tpl` may hold secrets.
        f.write_str("ParseCache")
    }
}

#[derive(Default)]
struct Cached {
    /// The latest texts of each name.
    recent: HashMap<Key, VecDeque<Parsed>, Quickly>,
    /// Texts that fell out of `recent`, by content.
    older: HashMap<Key, HashMap<Arc<str>, Trees, Quickly>, Quickly>,
    count: usize,
}

impl ParseCache {
    /// Returns true if nothing was parsed yet.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// How many texts were parsed.
    #[must_use]
    pub fn len(&self) -> usize {
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner).count
    }

    /// The trees of a text, parsed at most once.
    fn parse(&self, name: &str, text: &str, language: Language) -> Result<Trees, ParseError> {
        let key = (Box::from(name), language.compat);
        if let Some(trees) = self.parsed.lock().unwrap_or_else(PoisonError::into_inner).find(&key, text) {
            return Ok(trees);
        }
        let text: Arc<str> = text.into();
        let trees = Arc::new(parse(name, &text, language)?);
        self.parsed.lock().unwrap_or_else(PoisonError::into_inner).keep(key, text, &trees);
        Ok(trees)
    }
}

impl Cached {
    fn find(&self, key: &Key, text: &str) -> Option<Trees> {
        let recent = self.recent.get(key)?;
        if let Some((_, trees)) = recent.iter().find(|(known, _)| **known == *text) {
            return Some(Arc::clone(trees));
        }
        if recent.len() < COMPARED {
            return None;
        }
        self.older.get(key)?.get(text).cloned()
    }

    fn keep(&mut self, key: Key, text: Arc<str>, trees: &Trees) {
        if self.count >= CACHED_TEXTS {
            *self = Cached::default();
        }
        self.count += 1;
        let recent = self.recent.entry(key.clone()).or_default();
        recent.push_front((text, Arc::clone(trees)));
        if recent.len() > COMPARED
            && let Some((text, trees)) = recent.pop_back()
        {
            self.older.entry(key).or_default().insert(text, trees);
        }
    }
}

/// Named templates that can call each other.
#[derive(Clone)]
pub struct TemplateSet {
    cache: Arc<ParseCache>,
    language: Language,
    /// Newest last; a later layer hides an earlier one.
    layers: Vec<Arc<HashMap<Str, Arc<Tree>, Quickly>>>,
}

impl TemplateSet {
    /// An empty set with a cache of its own.
    #[must_use]
    pub fn new(compat: Compat) -> TemplateSet {
        TemplateSet::with_cache(compat, Arc::default())
    }

    /// An empty set over a cache that outlives it.
    #[must_use]
    pub fn with_cache(compat: Compat, cache: Arc<ParseCache>) -> TemplateSet {
        TemplateSet { cache, language: Language { compat, own: &[] }, layers: Vec::new() }
    }

    /// A set with functions of the environment beside the usual ones, and in place of those that have their
    /// names. Its cache must not be shared with sets of other functions.
    #[must_use]
    pub fn with_functions(mut self, own: &'static [Function]) -> TemplateSet {
        self.language.own = own;
        self
    }

    /// Parses a text and adds it and what it defines; an empty template does not replace one that has
    /// content.
    ///
    /// # Errors
    /// The text does not parse; the set is unchanged.
    pub fn add(&mut self, name: &str, text: &str) -> Result<(), ParseError> {
        self.define(self.parse(name, text)?);
        Ok(())
    }

    /// Adds a text that was parsed, and what it defines, as `add` does.
    pub fn define(&mut self, ParsedText(trees): ParsedText) {
        if self.layers.is_empty() {
            self.layers.push(Arc::default());
        }
        let known: Vec<_> = trees
            .iter()
            .filter(|(name, tree)| !(tree.is_empty() && self.get(name).is_some()))
            .map(|(name, tree)| (name.clone(), Arc::clone(tree)))
            .collect();
        if let Some(layer) = self.layers.last_mut() {
            Arc::make_mut(layer).extend(known);
        }
    }

    /// The parsed form of a text, if the cache knows it.
    #[must_use]
    pub fn known(&self, name: &str, text: &str) -> Option<ParsedText> {
        let key = (Box::from(name), self.language.compat);
        self.cache.parsed.lock().unwrap_or_else(PoisonError::into_inner).find(&key, text).map(ParsedText)
    }

    /// Parses a text for `define`.
    ///
    /// # Errors
    /// The text does not parse.
    pub fn parse(&self, name: &str, text: &str) -> Result<ParsedText, ParseError> {
        self.cache.parse(name, text, self.language).map(ParsedText)
    }

    /// Returns true if a template of this name exists.
    #[must_use]
    pub fn contains(&self, name: &str) -> bool {
        self.get(name.as_bytes()).is_some()
    }

    /// The name of every template.
    #[must_use]
    pub fn names(&self) -> Vec<String> {
        self.layers.iter().flat_map(|layer| layer.keys()).map(ToString::to_string).collect()
    }

    /// Executes a template on data.
    ///
    /// # Errors
    /// The template is missing or failed; the output so far is dropped.
    pub fn execute(&self, name: &str, data: Value, context: &mut Context<'_>) -> Result<Vec<u8>, ExecError> {
        exec::execute(self, name.as_bytes(), data, context)
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<&Arc<Tree>> {
        self.layers.iter().rev().find_map(|layer| layer.get(name))
    }

    /// The template of that name, about to be executed.
    pub(super) fn called(&self, name: &[u8], context: &Context<'_>) -> Option<&Arc<Tree>> {
        let at = self.layers.iter().rposition(|layer| layer.contains_key(name))?;
        let (name, tree) = self.layers[at].get_key_value(name)?;
        if let Some(reads) = &context.reads {
            // A definition in a text of `tpl` follows from the text, unless it is empty and so hides nothing.
            if at == 0 {
                reads.tree(name, tree);
            } else if tree.is_empty() {
                reads.hidden();
            }
        }
        Some(tree)
    }

    /// The set `tpl` runs in: this one, plus a text whose definitions nobody else sees, and the text's own
    /// tree.
    pub(super) fn overlay(
        &self,
        name: &str,
        text: &str,
    ) -> Result<(TemplateSet, Option<Arc<Tree>>), ParseError> {
        let trees = self.cache.parse(name, text, self.language)?;
        let mut set = self.clone();
        if trees.len() > 1 {
            set.layers.push(Arc::default());
            if let Some(layer) = set.layers.last_mut().and_then(Arc::get_mut) {
                for (name, tree) in trees.iter() {
                    if !(tree.is_empty() && self.get(name).is_some()) {
                        layer.insert(name.clone(), Arc::clone(tree));
                    }
                }
            }
        }
        Ok((set, trees.get(name.as_bytes()).cloned()))
    }
}

/// Removes the text Go prints for values that are not there, as Helm does on every file and `tpl` result.
#[must_use]
pub fn without_no_value(output: Vec<u8>) -> Vec<u8> {
    const MARK: &[u8] = b"<no value>";
    let mut found = find(&output, MARK);
    if found.is_none() {
        return output;
    }
    let mut rest = &output[..];
    let mut kept = Vec::with_capacity(output.len());
    while let Some(at) = found {
        kept.extend_from_slice(&rest[..at]);
        rest = &rest[at + MARK.len()..];
        found = find(rest, MARK);
    }
    kept.extend_from_slice(rest);
    kept
}
