//! The modules of a script: the file itself and what it imports from beside it, in the order in which they
//! must be declared. Only relative imports inside the reconcilers folder and the module of the host exist.

use super::places::{self, Marks};
use super::strip::strip;
use super::syntax::{self, Source, Tree};
use opdev_types::diagnostic::{Diagnostic, Place};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tree_sitter::Node;

/// The module of the host's functions.
pub(super) const HOST: &str = "opdev";
/// The module of the generated types; it has no values.
pub(super) const TYPES: &str = "opdev:types";
/// How many modules one script may have.
const MOST: usize = 200;

/// One module, ready to be compiled.
#[derive(Debug)]
pub(super) struct Module {
    /// Its path, which is also its name.
    pub(super) name: String,
    /// JavaScript with every line and column where the author wrote it.
    pub(super) text: String,
    /// The names that it imports and where.
    pub(super) imports: Vec<(String, Place)>,
    /// Where the grammar could not read on, if anywhere: the engine's own words are better, if it has any.
    pub(super) broken: Option<Box<Diagnostic>>,
}

/// The modules of a script, those that are imported before those that import them, and the places in the
/// entry.
pub(super) fn gather(
    entry: &str,
    files: &BTreeMap<String, Arc<str>>,
) -> Result<(Vec<Module>, Marks), Box<Diagnostic>> {
    let mut gathering = Gathering { files, done: Vec::new(), known: BTreeSet::new(), marks: None };
    // Depth first without recursion: a module is done once all of its imports are.
    let mut open = vec![gathering.open(entry)?];
    while let Some(top) = open.last_mut() {
        let Some((wanted, at)) = top.wants.pop() else {
            if let Some(Open { module, .. }) = open.pop() {
                gathering.done.push(module);
            }
            continue;
        };
        if open.iter().any(|o| o.module.name == wanted) {
            let circle: Vec<&str> = open.iter().map(|o| o.module.name.as_str()).collect();
            return Err(Box::new(
                Diagnostic::error(
                    format!("these modules import each other: {} → {wanted}", circle.join(" → ")),
                    Some(at),
                )
                .with_hint("move what both need to a third file"),
            ));
        }
        if !gathering.known.contains(&wanted) {
            open.push(gathering.open(&wanted)?);
        }
    }
    Ok((gathering.done, gathering.marks.unwrap_or_default()))
}

struct Gathering<'f> {
    files: &'f BTreeMap<String, Arc<str>>,
    done: Vec<Module>,
    known: BTreeSet<String>,
    marks: Option<Marks>,
}

struct Open {
    module: Module,
    /// Imports that are left, the first one last, with the place that names them.
    wants: Vec<(String, Place)>,
}

impl Gathering<'_> {
    fn open(&mut self, name: &str) -> Result<Open, Box<Diagnostic>> {
        let text = self
            .files
            .get(name)
            .ok_or_else(|| Box::new(Diagnostic::error(format!("{name} is not there"), None)))?;
        let source = Source { file: name, text };
        self.known.insert(name.to_owned());
        if self.known.len() > MOST {
            return Err(Box::new(Diagnostic::error(
                format!("more than {MOST} modules"),
                Some(source.place(0)),
            )));
        }
        let tree = syntax::parse(&source)?;
        let typed = name.ends_with(".ts") || name.ends_with(".mts");
        let broken = if typed { tree.broken() } else { None };
        let broken = broken.map(|at| {
            Box::new(
                Diagnostic::error("this is not TypeScript that can be read", Some(source.place(at)))
                    .with_hint(
                        "if tsc accepts it, write the type more plainly, with `;` between its members",
                    ),
            )
        });
        if self.marks.is_none() {
            self.marks = Some(places::marks(&source, &tree));
        }
        let wants = self.imports(&source, &tree)?;
        let text = if typed { strip(&source, &tree)? } else { source.text.to_owned() };
        Ok(Open {
            module: Module { name: name.to_owned(), text, imports: imported(&source, &tree), broken },
            wants,
        })
    }

    fn imports(&self, source: &Source<'_>, tree: &Tree) -> Result<Vec<(String, Place)>, Box<Diagnostic>> {
        let root = tree.root();
        let mut wants = Vec::new();
        let mut cursor = root.walk();
        for statement in root.children(&mut cursor) {
            if !matches!(statement.kind(), "import_statement" | "export_statement") || erased(statement) {
                continue;
            }
            let Some(from) = statement.child_by_field_name("source") else { continue };
            let name = source.text[from.start_byte()..from.end_byte()].trim_matches(['"', '\'']);
            let place = source.place(from.start_byte());
            if name == HOST || name == TYPES {
                continue;
            }
            wants.push((
                self.resolve(source.file, name)
                    .map_err(|why| Box::new(Diagnostic { place: Some(place.clone()), ..*why }))?,
                place,
            ));
        }
        wants.reverse();
        Ok(wants)
    }

    /// The path of an import, found as the engine itself will find it: only leading dots are resolved.
    fn resolve(&self, from: &str, name: &str) -> Result<String, Box<Diagnostic>> {
        if !name.starts_with("./") && !name.starts_with("../") {
            return Err(Box::new(
                Diagnostic::error(format!("there is no module \"{name}\""), None).with_hint(
                    "a reconciler can import \"opdev\", types from \"opdev:types\", and files beside it such as \"./lib.ts\"",
                ),
            ));
        }
        let mut folder: Vec<&str> = from.split('/').collect();
        folder.pop();
        let mut rest = name;
        loop {
            if let Some(next) = rest.strip_prefix("./") {
                rest = next;
            } else if let Some(next) = rest.strip_prefix("../") {
                folder.pop();
                rest = next;
            } else {
                break;
            }
        }
        folder.push(rest);
        let path = folder.join("/");
        if self.files.contains_key(&path) {
            return Ok(path);
        }
        let near = [".ts", ".js", ".mts", ".mjs", "/index.ts", "/index.js"];
        let stem = path.trim_end_matches(".js").to_owned();
        let found = near.iter().find(|end| self.files.contains_key(&format!("{path}{end}")));
        let hint = match found {
            Some(end) => format!("write \"{name}{end}\""),
            None if self.files.contains_key(&format!("{stem}.ts")) => {
                format!("write \"{}.ts\"", name.trim_end_matches(".js"))
            }
            None => "imports are found beside the reconcilers only".to_owned(),
        };
        Err(Box::new(Diagnostic::error(format!("{path} is not there"), None).with_hint(hint)))
    }
}

/// The names in import clauses.
fn imported(source: &Source<'_>, tree: &Tree) -> Vec<(String, Place)> {
    let mut found = Vec::new();
    let mut cursor = tree.root().walk();
    let statements: Vec<Node<'_>> = tree.root().children(&mut cursor).collect();
    let mut open: Vec<Node<'_>> =
        statements.into_iter().filter(|node| node.kind() == "import_statement").collect();
    while let Some(node) = open.pop() {
        if let Some(name) = node.child_by_field_name("name").filter(|_| node.kind() == "import_specifier") {
            found.push((source.text[name.byte_range()].to_owned(), source.place(name.start_byte())));
        }
        let mut cursor = node.walk();
        open.extend(node.named_children(&mut cursor));
    }
    found
}

/// Returns true if an import or export goes away with the types.
fn erased(statement: Node<'_>) -> bool {
    statement.child(1).is_some_and(|child| matches!(child.kind(), "type" | "typeof"))
}
