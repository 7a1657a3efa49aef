//! Modules and those they name, and the cycles of that graph.

use std::collections::{BTreeMap, BTreeSet};

use super::modules::{Named, Package};

/// From a node to the nodes that it names, each with the places of the code that name it.
pub(super) type Arrows = BTreeMap<String, BTreeMap<String, Vec<String>>>;

/// Where a path leads.
struct Target {
    module: usize,
    /// The path ends at the module itself, not at something that it defines.
    is_module: bool,
}

impl Package {
    /// The arrows between files.
    pub(super) fn arrows_between_files(&self) -> Arrows {
        self.arrows(|module| self.modules[module].file.display().to_string())
    }

    /// The arrows between the modules of the top level, each with all files below it.
    pub(super) fn arrows_between_top_modules(&self) -> Arrows {
        self.arrows(|module| self.path(module).first().copied().unwrap_or("lib").to_owned())
    }

    /// The arrows, where `node` gives each module the name of its node.
    fn arrows(&self, node: impl Fn(usize) -> String) -> Arrows {
        let mut arrows = Arrows::new();
        for from in 0..self.modules.len() {
            let source = node(from);
            let ends = arrows.entry(source.clone()).or_default();
            for named in &self.modules[from].paths {
                let Some(target) = self.resolve(from, &named.path) else { continue };
                let target = node(target);
                if target != source {
                    let place = format!(
                        "{}:{} {}",
                        self.modules[from].file.display(),
                        named.line,
                        named.path.join("::")
                    );
                    ends.entry(target).or_default().push(place);
                }
            }
        }
        arrows
    }

    /// The module in which the thing that `path` names is defined, through all re-exports. Nothing, where the
    /// path leaves the package, or where it names a module only: then the paths through that module are the
    /// arrows.
    pub(super) fn resolve(&self, from: usize, path: &[String]) -> Option<usize> {
        let target = self.follow(from, path, &mut BTreeSet::new())?;
        (!target.is_module).then_some(target.module)
    }

    fn follow(&self, from: usize, path: &[String], seen: &mut BTreeSet<(usize, String)>) -> Option<Target> {
        let (first, mut rest) = path.split_first()?;
        let mut at = match first.as_str() {
            "crate" => 0,
            "self" => from,
            "super" => self.modules[from].parent?,
            name => return self.lookup(from, name, rest, seen),
        };
        while let Some((word, more)) = rest.split_first() {
            match word.as_str() {
                "super" => at = self.modules[at].parent?,
                name => {
                    return self
                        .lookup(at, name, more, seen)
                        .or(Some(Target { module: at, is_module: false }));
                }
            }
            rest = more;
        }
        Some(Target { module: at, is_module: true })
    }

    /// Looks up `name` in a module, then `rest` in what was found.
    fn lookup(
        &self,
        at: usize,
        name: &str,
        rest: &[String],
        seen: &mut BTreeSet<(usize, String)>,
    ) -> Option<Target> {
        let module = &self.modules[at];
        if let Some(child) = module.children.get(name) {
            // A function may have the name of a module beside it.
            let is_item = rest.is_empty() && module.items.contains(name);
            return match rest.split_first() {
                None => Some(Target { module: if is_item { at } else { *child }, is_module: !is_item }),
                Some((next, more)) => self
                    .lookup(*child, next, more, seen)
                    .or(Some(Target { module: *child, is_module: false })),
            };
        }
        if module.items.contains(name) {
            return Some(Target { module: at, is_module: false });
        }
        if !seen.insert((at, name.to_owned())) {
            return None;
        }
        if let Some(Named { path, .. }) = module.imports.get(name) {
            return self.follow(at, &[path.as_slice(), rest].concat(), seen);
        }
        module.globs.iter().find_map(|glob| {
            let target = self.follow(at, &glob.path, seen)?;
            self.lookup(target.module, name, rest, seen)
        })
    }
}

/// The groups of two or more nodes that lead to each other, the largest first (Tarjan's algorithm).
pub(super) fn cycles(arrows: &Arrows) -> Vec<Vec<String>> {
    let mut search = Search {
        arrows,
        number: BTreeMap::new(),
        low: BTreeMap::new(),
        stack: Vec::new(),
        found: Vec::new(),
    };
    for node in arrows.keys() {
        if !search.number.contains_key(node.as_str()) {
            search.visit(node);
        }
    }
    let mut found = search.found;
    found.sort_by_key(|group| std::cmp::Reverse(group.len()));
    found
}

struct Search<'a> {
    arrows: &'a Arrows,
    number: BTreeMap<&'a str, usize>,
    low: BTreeMap<&'a str, usize>,
    stack: Vec<&'a str>,
    found: Vec<Vec<String>>,
}

impl<'a> Search<'a> {
    fn visit(&mut self, node: &'a str) {
        let number = self.number.len();
        self.number.insert(node, number);
        self.low.insert(node, number);
        self.stack.push(node);
        for end in self.arrows.get(node).into_iter().flat_map(BTreeMap::keys) {
            let reached = if let Some(other) = self.number.get(end.as_str()) {
                // A node that has left the stack belongs to a group that is complete.
                if !self.stack.contains(&end.as_str()) {
                    continue;
                }
                *other
            } else {
                self.visit(end);
                self.low[end.as_str()]
            };
            let low = self.low[node].min(reached);
            self.low.insert(node, low);
        }
        if self.low[node] == number {
            let start = self.stack.iter().position(|other| *other == node).expect("it was pushed above");
            let mut group: Vec<String> = self.stack.split_off(start).into_iter().map(str::to_owned).collect();
            if group.len() > 1 {
                group.sort();
                self.found.push(group);
            }
        }
    }
}
