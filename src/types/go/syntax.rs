//! One Go source file as a table: imports, types with fields, tags, comments and markers, marshalling methods
//! and string constants. Reads a syntax tree that tolerates errors; never resolves a name.

use super::brackets::{Unbalanced, unbalanced};
use super::comments::{Above, Cursor, Group, Groups, RawMarker, markers};
use super::outline::Later;
use crate::diagnostic::Place;
use std::ops::Range;
use std::sync::{Arc, OnceLock};
use tree_sitter::Node;

/// How deep a type expression may be nested before it is given up.
const DEPTH: usize = 100;

/// One parsed file.
#[derive(Debug)]
pub(crate) struct SourceFile {
    pub(crate) path: Arc<str>,
    pub(crate) text: Arc<str>,
    pub(crate) package: String,
    pub(crate) imports: Vec<Import>,
    pub(crate) types: Vec<TypeDecl>,
    /// Types of a file that is not the project's, parsed when they are needed.
    pub(crate) later: Vec<Later>,
    pub(crate) methods: Vec<Method>,
    pub(crate) consts: Vec<Const>,
    /// Markers that belong to the package.
    pub(crate) markers: Vec<RawMarker>,
    /// Where the text is not Go, outside the bodies of functions.
    pub(crate) errors: Vec<SyntaxError>,
    /// Where each line starts, once somebody asks.
    pub(crate) lines: OnceLock<Vec<usize>>,
}

/// A stretch that could not be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) message: String,
}

/// One import.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Import {
    /// `_`, `.` or the name it is given.
    pub(crate) name: Option<String>,
    pub(crate) path: Arc<str>,
}

/// One declared type.
#[derive(Debug)]
pub(crate) struct TypeDecl {
    pub(crate) name: Arc<str>,
    pub(crate) alias: bool,
    pub(crate) generic: bool,
    pub(crate) ty: TypeExpr,
    pub(crate) doc: Group,
    pub(crate) markers: Vec<RawMarker>,
    pub(crate) at: usize,
    /// All that it is made of, comments above included.
    pub(crate) span: Range<usize>,
}

/// One field of a struct, or several of one line.
#[derive(Debug)]
pub(crate) struct Field {
    /// Empty for an embedded field.
    pub(crate) names: Vec<Arc<str>>,
    pub(crate) ty: TypeExpr,
    pub(crate) tag: Option<Arc<str>>,
    pub(crate) doc: Group,
    pub(crate) markers: Vec<RawMarker>,
    pub(crate) at: usize,
}

/// A type expression and where it starts.
#[derive(Debug)]
pub(crate) struct TypeExpr {
    pub(crate) kind: TypeKind,
    pub(crate) at: usize,
}

/// The forms of type expressions.
#[derive(Debug)]
pub(crate) enum TypeKind {
    Ident(Arc<str>),
    Qualified(Arc<str>, Arc<str>),
    Pointer(Box<TypeExpr>),
    Slice(Box<TypeExpr>),
    Array(Box<TypeExpr>),
    Map(Box<TypeExpr>, Box<TypeExpr>),
    Struct(Vec<Field>),
    Interface,
    /// Anything else, in the words of Go's syntax tree.
    Other(&'static str),
}

/// A method of a type that says how it is written or copied.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) receiver: Arc<str>,
    pub(crate) kind: MethodKind,
}

/// The method that it is. Those with another signature than the usual one are left out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MethodKind {
    /// `MarshalJSON`.
    Json,
    /// `MarshalText`.
    Text,
    /// `DeepCopy`.
    DeepCopy { pointer_receiver: bool },
    /// `DeepCopyInto`.
    DeepCopyInto,
}

/// A constant with a type of its own and a string as its value.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Const {
    pub(crate) ty: Arc<str>,
    pub(crate) literal: Arc<str>,
}

impl SourceFile {
    /// The text of one of its declarations.
    pub(crate) fn text_of(&self, decl: &TypeDecl) -> &str {
        self.text.get(decl.span.clone()).unwrap_or_default()
    }

    /// A file of which nothing is known yet.
    pub(crate) fn new(path: &str, text: Arc<str>) -> SourceFile {
        SourceFile {
            path: path.into(),
            text,
            package: String::new(),
            imports: Vec::new(),
            types: Vec::new(),
            later: Vec::new(),
            methods: Vec::new(),
            consts: Vec::new(),
            markers: Vec::new(),
            errors: Vec::new(),
            lines: OnceLock::new(),
        }
    }

    /// Line and column of a byte, counted from 1.
    pub(crate) fn place(&self, at: usize) -> Place {
        let text = &self.text;
        let lines = self.lines.get_or_init(|| {
            std::iter::once(0).chain(text.match_indices('\n').map(|(newline, _)| newline + 1)).collect()
        });
        let mut at = at.min(text.len());
        while !text.is_char_boundary(at) {
            at -= 1;
        }
        let line = lines.partition_point(|start| *start <= at);
        let start = lines.get(line.saturating_sub(1)).copied().unwrap_or_default();
        let count = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let column = text.get(start..at).map_or(0, |before| before.chars().count());
        Place { file: self.path.to_string(), line: count(line), column: count(column + 1) }
    }
}

struct Reader<'t> {
    text: &'t str,
}

/// Reads a file out of its syntax tree.
pub(crate) fn read(path: &str, text: &Arc<str>, root: Node<'_>) -> SourceFile {
    let reader = Reader { text };
    let mut file = SourceFile::new(path, text.clone());
    let mut walk = root.walk();
    let children: Vec<Node<'_>> = root.children(&mut walk).collect();
    let mut groups = Groups::default();
    for node in children.iter().filter(|node| node.kind() == "comment") {
        groups.push(*node, text);
    }
    let mut cursor = Cursor::new(groups.list());
    for node in children.iter().filter(|node| node.is_named() && node.kind() != "comment") {
        let above = cursor.above(node.start_byte(), node.start_position().row);
        markers(text, above.free, false, &mut file.markers);
        reader.declaration(*node, &above, &mut file);
        cursor.leave(node.end_byte(), if in_line(*node) { node.end_position().row } else { usize::MAX });
    }
    markers(text, cursor.rest(), false, &mut file.markers);
    if root.has_error() {
        reader.errors(root, &mut file.errors);
    }
    if let Some(at) = text.find('\0') {
        let message = "a zero byte, or one that is not UTF-8, cannot stand in a Go file".to_owned();
        file.errors.insert(0, SyntaxError { at, message });
    }
    file
}

/// Returns true if a comment behind the declaration is its own.
fn in_line(node: Node<'_>) -> bool {
    matches!(node.kind(), "type_declaration" | "import_declaration" | "const_declaration" | "var_declaration")
}

impl Reader<'_> {
    fn string(&self, node: Node<'_>) -> &str {
        self.text.get(node.start_byte()..node.end_byte()).unwrap_or_default()
    }

    fn declaration(&self, node: Node<'_>, above: &Above<'_>, file: &mut SourceFile) {
        match node.kind() {
            "package_clause" => {
                markers(self.text, above.closest, false, &mut file.markers);
                markers(self.text, above.doc, true, &mut file.markers);
                if let Some(name) = node.named_child(0) {
                    self.string(name).clone_into(&mut file.package);
                }
            }
            "type_declaration" => self.type_declaration(node, above, file),
            kind => {
                markers(self.text, above.closest, false, &mut file.markers);
                match kind {
                    "import_declaration" => self.imports(node, file),
                    "const_declaration" => self.consts(node, file),
                    "method_declaration" => file.methods.extend(self.method(node)),
                    _ => {}
                }
            }
        }
    }

    fn type_declaration(&self, node: Node<'_>, above: &Above<'_>, file: &mut SourceFile) {
        let mut walk = node.walk();
        let children: Vec<Node<'_>> = node.children(&mut walk).collect();
        let specs = children.iter().filter(|node| matches!(node.kind(), "type_spec" | "type_alias"));
        if !children.iter().any(|child| child.kind() == "(") {
            let mut found = Vec::new();
            markers(self.text, above.closest, false, &mut found);
            markers(self.text, above.doc, true, &mut found);
            for spec in specs {
                if let Some(decl) = self.type_spec(*spec, above, std::mem::take(&mut found), file) {
                    file.types.push(decl);
                }
            }
            return;
        }
        markers(self.text, above.closest, false, &mut file.markers);
        let mut groups = Groups::default();
        for comment in children.iter().filter(|node| node.kind() == "comment") {
            groups.push(*comment, self.text);
        }
        let mut cursor = Cursor::new(groups.list());
        for spec in specs {
            let above = cursor.above(spec.start_byte(), spec.start_position().row);
            let mut found = Vec::new();
            markers(self.text, above.closest, false, &mut found);
            markers(self.text, above.doc, true, &mut found);
            if let Some(decl) = self.type_spec(*spec, &above, found, file) {
                file.types.push(decl);
            }
            cursor.leave(spec.end_byte(), spec.end_position().row);
        }
    }

    /// A type; of its markers, those that only a package can have go to the package.
    fn type_spec(
        &self,
        spec: Node<'_>,
        above: &Above<'_>,
        found: Vec<RawMarker>,
        file: &mut SourceFile,
    ) -> Option<TypeDecl> {
        let name = spec.child_by_field_name("name")?;
        let (of_package, of_type) = found
            .into_iter()
            .partition(|marker: &RawMarker| !marker.in_doc && super::markers::only_of_package(&marker.text));
        file.markers.extend::<Vec<RawMarker>>(of_package);
        let ty = spec.child_by_field_name("type").map_or_else(
            || TypeExpr { kind: TypeKind::Other("*ast.BadExpr"), at: spec.start_byte() },
            |node| self.type_expr(node, 0),
        );
        Some(TypeDecl {
            name: self.string(name).into(),
            alias: spec.kind() == "type_alias",
            generic: spec.child_by_field_name("type_parameters").is_some(),
            ty,
            doc: above.doc.cloned().unwrap_or_default(),
            markers: of_type,
            at: name.start_byte(),
            span: above.start().unwrap_or(spec.start_byte())..spec.end_byte(),
        })
    }

    fn type_expr(&self, node: Node<'_>, depth: usize) -> TypeExpr {
        let at = node.start_byte();
        let inner = |field: &str| {
            let child = node.child_by_field_name(field);
            child.map(|child| Box::new(self.type_expr(child, depth + 1)))
        };
        let bad = TypeKind::Other("*ast.BadExpr");
        if depth > DEPTH {
            return TypeExpr { kind: bad, at };
        }
        let kind = match node.kind() {
            "type_identifier" | "identifier" => TypeKind::Ident(self.string(node).into()),
            "qualified_type" => {
                match (node.child_by_field_name("package"), node.child_by_field_name("name")) {
                    (Some(package), Some(name)) => {
                        TypeKind::Qualified(self.string(package).into(), self.string(name).into())
                    }
                    _ => bad,
                }
            }
            "pointer_type" => match node.named_child(0) {
                Some(child) => TypeKind::Pointer(Box::new(self.type_expr(child, depth + 1))),
                None => bad,
            },
            "parenthesized_type" => match node.named_child(0) {
                Some(child) => return self.type_expr(child, depth + 1),
                None => bad,
            },
            "slice_type" => inner("element").map_or(bad, TypeKind::Slice),
            "array_type" | "implicit_length_array_type" => inner("element").map_or(bad, TypeKind::Array),
            "map_type" => match (inner("key"), inner("value")) {
                (Some(key), Some(value)) => TypeKind::Map(key, value),
                _ => bad,
            },
            "struct_type" => TypeKind::Struct(self.fields(node, depth)),
            "interface_type" => TypeKind::Interface,
            "function_type" => TypeKind::Other("*ast.FuncType"),
            "channel_type" => TypeKind::Other("*ast.ChanType"),
            "generic_type" => TypeKind::Other("*ast.IndexExpr"),
            _ => bad,
        };
        TypeExpr { kind, at }
    }

    fn fields(&self, node: Node<'_>, depth: usize) -> Vec<Field> {
        let Some(list) = node.named_child(0) else { return Vec::new() };
        let mut walk = list.walk();
        let children: Vec<Node<'_>> = list.named_children(&mut walk).collect();
        let mut groups = Groups::default();
        for comment in children.iter().filter(|node| node.kind() == "comment") {
            groups.push(*comment, self.text);
        }
        let mut cursor = Cursor::new(groups.list());
        let mut fields = Vec::with_capacity(children.len());
        for node in children.iter().filter(|node| node.kind() == "field_declaration") {
            let above = cursor.above(node.start_byte(), node.start_position().row);
            let mut found = Vec::new();
            markers(self.text, above.closest, false, &mut found);
            markers(self.text, above.doc, true, &mut found);
            fields.extend(self.field(*node, above.doc, found, depth));
            cursor.leave(node.end_byte(), node.end_position().row);
        }
        fields
    }

    fn field(
        &self,
        node: Node<'_>,
        doc: Option<&Group>,
        markers: Vec<RawMarker>,
        depth: usize,
    ) -> Option<Field> {
        let mut walk = node.walk();
        let names = node.children_by_field_name("name", &mut walk);
        let names: Vec<Arc<str>> = names.map(|name| self.string(name).into()).collect();
        let ty = self.type_expr(node.child_by_field_name("type")?, depth + 1);
        let pointer = node.child(0).is_some_and(|first| first.kind() == "*");
        let ty = if pointer {
            TypeExpr { at: node.start_byte(), kind: TypeKind::Pointer(Box::new(ty)) }
        } else {
            ty
        };
        let tag = node.child_by_field_name("tag").map(|tag| super::markers::unquote(self.string(tag)));
        Some(Field {
            names,
            ty,
            tag: tag.map(|tag| tag.unwrap_or_default().into()),
            doc: doc.cloned().unwrap_or_default(),
            markers,
            at: node.start_byte(),
        })
    }

    fn imports(&self, node: Node<'_>, file: &mut SourceFile) {
        let mut open = vec![node];
        while let Some(node) = open.pop() {
            let mut walk = node.walk();
            for child in node.named_children(&mut walk) {
                match child.kind() {
                    "import_spec_list" => open.push(child),
                    "import_spec" => {
                        let path = child
                            .child_by_field_name("path")
                            .and_then(|path| super::markers::unquote(self.string(path)));
                        if let Some(path) = path {
                            file.imports.push(Import {
                                name: child
                                    .child_by_field_name("name")
                                    .map(|name| self.string(name).to_owned()),
                                path: path.into(),
                            });
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    fn consts(&self, node: Node<'_>, file: &mut SourceFile) {
        let mut walk = node.walk();
        for spec in node.named_children(&mut walk).filter(|node| node.kind() == "const_spec") {
            let (Some(ty), Some(values)) =
                (spec.child_by_field_name("type"), spec.child_by_field_name("value"))
            else {
                continue;
            };
            let mut walk = values.walk();
            for value in
                values.named_children(&mut walk).filter(|value| value.kind().ends_with("string_literal"))
            {
                file.consts.push(Const { ty: self.string(ty).into(), literal: self.string(value).into() });
            }
        }
    }

    fn method(&self, node: Node<'_>) -> Option<Method> {
        let name = self.string(node.child_by_field_name("name")?);
        if !matches!(name, "MarshalJSON" | "MarshalText" | "DeepCopy" | "DeepCopyInto") {
            return None;
        }
        let of = node.child_by_field_name("receiver")?.named_child(0)?.child_by_field_name("type")?;
        let (pointer_receiver, receiver) = self.named(of)?;
        let parameters = self.parameters(node.child_by_field_name("parameters")?);
        let result = node.child_by_field_name("result");
        let result = result.map(|result| match result.kind() {
            "parameter_list" => self.parameters(result),
            _ => vec![result],
        });
        let result = result.unwrap_or_default();
        let kind = match name {
            "MarshalJSON" if parameters.is_empty() => MethodKind::Json,
            "MarshalText" if parameters.is_empty() => MethodKind::Text,
            "DeepCopy" => {
                let [result] = result.as_slice() else { return None };
                let gives = self.named(*result)?;
                let fits = parameters.is_empty() && gives == (pointer_receiver, receiver);
                fits.then_some(MethodKind::DeepCopy { pointer_receiver })?
            }
            "DeepCopyInto" => {
                let [out] = parameters.as_slice() else { return None };
                let fits = result.is_empty() && self.named(*out)? == (true, receiver);
                fits.then_some(MethodKind::DeepCopyInto)?
            }
            _ => return None,
        };
        Some(Method { receiver: receiver.into(), kind })
    }

    /// The types of parameters, one per name.
    fn parameters<'n>(&self, list: Node<'n>) -> Vec<Node<'n>> {
        let mut walk = list.walk();
        let mut out = Vec::new();
        for one in
            list.named_children(&mut walk).filter(|node| node.kind().ends_with("parameter_declaration"))
        {
            let Some(ty) = one.child_by_field_name("type") else { continue };
            let mut walk = one.walk();
            let names = one.children_by_field_name("name", &mut walk).count();
            out.extend(std::iter::repeat_n(ty, names.max(1)));
        }
        out
    }

    /// The name of `Name`, `*Name` or `Name[T]`, and whether it is a pointer.
    fn named(&self, node: Node<'_>) -> Option<(bool, &str)> {
        let (mut node, mut pointer) = (node, false);
        loop {
            match node.kind() {
                "type_identifier" => return Some((pointer, self.string(node))),
                "pointer_type" if pointer => return None,
                "pointer_type" => pointer = true,
                "parenthesized_type" | "generic_type" => {}
                _ => return None,
            }
            node = node.named_child(0)?;
        }
    }

    /// Collects the syntax errors. Bodies of functions and values of variables are left out: there the
    /// grammar is behind the language at times, and no type depends on them.
    fn errors(&self, root: Node<'_>, out: &mut Vec<SyntaxError>) {
        let unbalanced = unbalanced(self.text);
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if out.len() >= 20 {
                return;
            }
            let wrong = node.is_missing() || node.is_error();
            let inside = |one: &&Unbalanced| {
                let reach = node.start_byte()..=node.end_byte().max(one.at);
                reach.contains(&one.opens_at) || (node.is_missing() && one.opens_at <= node.start_byte())
            };
            if wrong && let Some(one) = unbalanced.iter().find(inside) {
                out.push(SyntaxError { at: one.at, message: one.message(self.text) });
                continue;
            }
            if node.is_missing() {
                let message = format!("expected {:?} here", node.kind());
                out.push(SyntaxError { at: node.start_byte(), message });
                continue;
            }
            if node.is_error() {
                let found = self.string(node).trim();
                let line: String = found.lines().next().unwrap_or_default().chars().take(40).collect();
                out.push(SyntaxError {
                    at: node.start_byte(),
                    message: format!("this is not Go that can be read: `{line}`"),
                });
                continue;
            }
            if !node.has_error() || matches!(node.kind(), "block" | "var_declaration") {
                continue;
            }
            let mut walk = node.walk();
            open.extend(node.children(&mut walk));
        }
        out.sort_by_key(|error| error.at);
        out.dedup();
    }
}
