//! Where the exported functions of a script stand and where they return, so that an answer that makes no
//! sense can be shown at the line that gave it.

use super::syntax::{Source, Tree};
use opdev_types::diagnostic::Place;
use std::collections::BTreeMap;
use tree_sitter::Node;

/// Functions at the top level by name.
#[derive(Debug, Default)]
pub(super) struct Marks {
    functions: BTreeMap<String, Mark>,
    exports: BTreeMap<String, Place>,
    /// Loops in the order of the text.
    loops: Vec<Loop>,
}

#[derive(Debug)]
struct Loop {
    from: Place,
    to: Place,
    /// True if no condition ends it.
    endless: bool,
}

#[derive(Debug)]
struct Mark {
    place: Place,
    returns: Vec<Return>,
}

#[derive(Debug)]
struct Return {
    place: Place,
    /// Keys of an object that is written out in the return.
    keys: BTreeMap<String, Place>,
}

impl Marks {
    /// The best place for what is wrong with `key` of the answer: the key where it is written once, else the
    /// only return, else the function.
    pub(super) fn answer(&self, function: &str, key: Option<&str>) -> Option<Place> {
        let mark = self.functions.get(function)?;
        let written: Vec<&Place> =
            key.map_or_else(Vec::new, |key| mark.returns.iter().filter_map(|r| r.keys.get(key)).collect());
        if let [one] = written.as_slice() {
            return Some((*one).clone());
        }
        match mark.returns.as_slice() {
            [one] => Some(one.place.clone()),
            _ => Some(mark.place.clone()),
        }
    }

    /// The loop that a script was in when it was interrupted: the engine knows no place for the jump at the
    /// end of a loop and gives that of the function. `None` where the place lies in a loop already.
    pub(super) fn interrupted_loop(&self, place: &Place) -> Option<Place> {
        let behind = || self.loops.iter().filter(|l| l.from.file == place.file && l.from >= *place);
        if self.loops.iter().any(|l| l.from <= *place && *place < l.to) {
            return None;
        }
        behind().find(|l| l.endless).or_else(|| behind().next()).map(|l| l.from.clone())
    }

    /// Where a name is declared at the top level.
    pub(super) fn export(&self, name: &str) -> Option<Place> {
        self.exports.get(name).or_else(|| self.functions.get(name).map(|mark| &mark.place)).cloned()
    }
}

/// Looks for functions and constants at the top level.
pub(super) fn marks(source: &Source<'_>, tree: &Tree) -> Marks {
    let mut marks = Marks::default();
    for statement in named(tree.root()) {
        let declaration = statement.child_by_field_name("declaration").unwrap_or(statement);
        match declaration.kind() {
            "function_declaration" | "generator_function_declaration" => {
                add(&mut marks, source, declaration, declaration);
            }
            "lexical_declaration" | "variable_declaration" => {
                for declarator in named(declaration) {
                    let value = declarator.child_by_field_name("value");
                    if let Some(function) =
                        value.filter(|v| matches!(v.kind(), "arrow_function" | "function_expression"))
                    {
                        add(&mut marks, source, declarator, function);
                    } else if let Some(name) = declarator.child_by_field_name("name") {
                        let text = source.text[name.start_byte()..name.end_byte()].to_owned();
                        marks.exports.insert(text, source.place(name.start_byte()));
                    }
                }
            }
            _ => {}
        }
    }
    loops(source, tree.root(), &mut marks.loops);
    marks
}

fn loops(source: &Source<'_>, root: Node<'_>, found: &mut Vec<Loop>) {
    let mut cursor = root.walk();
    loop {
        let node = cursor.node();
        if matches!(node.kind(), "while_statement" | "for_statement" | "do_statement") {
            let condition = node.child_by_field_name("condition");
            let condition = condition.map_or("", |condition| source.text[condition.byte_range()].trim());
            found.push(Loop {
                from: source.place(node.start_byte()),
                to: source.place(node.end_byte()),
                endless: matches!(condition, "" | ";" | "(true)" | "(1)" | "true"),
            });
        }
        if cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

fn add(marks: &mut Marks, source: &Source<'_>, owner: Node<'_>, function: Node<'_>) {
    let Some(name) = owner.child_by_field_name("name") else { return };
    let text = source.text[name.start_byte()..name.end_byte()].to_owned();
    let mut mark = Mark { place: source.place(name.start_byte()), returns: Vec::new() };
    if let Some(body) = function.child_by_field_name("body") {
        if body.kind() == "statement_block" {
            returns(source, body, &mut mark.returns);
        } else {
            mark.returns.push(returned(source, body, Some(body)));
        }
    }
    marks.functions.insert(text, mark);
}

/// All returns of a body, not those of functions inside it.
fn returns(source: &Source<'_>, body: Node<'_>, found: &mut Vec<Return>) {
    let mut cursor = body.walk();
    loop {
        let node = cursor.node();
        let mut down = true;
        match node.kind() {
            "return_statement" => {
                found.push(returned(source, node, node.named_child(0)));
                down = false;
            }
            "function_declaration"
            | "function_expression"
            | "arrow_function"
            | "method_definition"
            | "class"
            | "class_declaration"
            | "generator_function"
            | "generator_function_declaration" => down = false,
            _ => {}
        }
        if down && cursor.goto_first_child() {
            continue;
        }
        while !cursor.goto_next_sibling() {
            if !cursor.goto_parent() {
                return;
            }
        }
    }
}

fn returned(source: &Source<'_>, at: Node<'_>, value: Option<Node<'_>>) -> Return {
    let mut keys = BTreeMap::new();
    let mut value = value;
    while let Some(inner) = value
        .filter(|v| matches!(v.kind(), "parenthesized_expression" | "as_expression" | "satisfies_expression"))
    {
        value = inner.named_child(0);
    }
    for pair in value.filter(|v| v.kind() == "object").map(named).unwrap_or_default() {
        let key = match pair.kind() {
            "pair" => pair.child_by_field_name("key"),
            "shorthand_property_identifier" => Some(pair),
            _ => None,
        };
        if let Some(key) = key {
            let text = source.text[key.start_byte()..key.end_byte()].trim_matches(['"', '\'']);
            keys.insert(text.to_owned(), source.place(key.start_byte()));
        }
    }
    Return { place: source.place(at.start_byte()), keys }
}

fn named(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.named_children(&mut cursor).collect()
}
