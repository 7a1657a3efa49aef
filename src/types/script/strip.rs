//! Takes the types out of TypeScript by writing blanks over them, so that every line and column stays true
//! and no source map is needed. Syntax that types cannot be taken from (enums, namespaces with values,
//! parameter properties, decorators) is an error that says what to write instead. Never changes what is left;
//! where a blank would join two statements, a semicolon takes its first place.

use super::syntax::{Source, Tree};
use opdev_types::diagnostic::Diagnostic;
use tree_sitter::Node;

/// An edit of a stretch of text.
#[derive(Clone, Copy)]
enum Edit {
    /// Blanks.
    Blank(usize, usize),
    /// One ASCII character at a place, over whatever stands there.
    Put(usize, u8),
}

/// The text without its types.
///
/// # Errors
/// Syntax that has no meaning without types being compiled, with its place.
pub(super) fn strip(source: &Source<'_>, tree: &Tree) -> Result<String, Box<Diagnostic>> {
    let mut walk = Walk { text: source.text, source, edits: Vec::new(), gone: Vec::new(), open: Vec::new() };
    walk.run(tree.root())?;
    Ok(apply(source.text, &walk.edits, &walk.gone))
}

fn apply(text: &str, edits: &[Edit], gone: &[Edit]) -> String {
    let mut out = Vec::with_capacity(text.len());
    // The mark of each byte: 0 keeps it, a blank or another character replaces the whole character there.
    let mut marks = vec![0_u8; text.len()];
    let puts = |edit: &&Edit| matches!(edit, Edit::Put(..));
    let (put, blank): (Vec<&Edit>, Vec<&Edit>) = edits.iter().partition(puts);
    let (put_last, blank_last): (Vec<&Edit>, Vec<&Edit>) = gone.iter().partition(puts);
    for edit in [blank, put, blank_last, put_last].into_iter().flatten() {
        match *edit {
            Edit::Blank(from, to) => marks[from..to].iter_mut().for_each(|mark| *mark = b' '),
            Edit::Put(at, character) => marks[at] = character,
        }
    }
    let mut buffer = [0; 4];
    for (at, character) in text.char_indices() {
        match marks[at] {
            0 => out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes()),
            b' ' if matches!(character, '\n' | '\r' | '\u{2028}' | '\u{2029}') => {
                out.extend_from_slice(character.encode_utf8(&mut buffer).as_bytes());
            }
            mark => out.push(mark),
        }
    }
    String::from_utf8(out).unwrap_or_default()
}

struct Walk<'a, 's> {
    text: &'a str,
    source: &'a Source<'s>,
    edits: Vec<Edit>,
    /// Blanks over what the grammar took for values; they come last, over all that was done inside them.
    gone: Vec<Edit>,
    /// The nodes around the one at hand, outermost first.
    open: Vec<Node<'a>>,
}

type Step = Result<Down, Box<Diagnostic>>;

/// The decision whether to look into the children of a node.
enum Down {
    Yes,
    No,
}

impl<'a> Walk<'a, '_> {
    /// Goes through all nodes without recursion, because nesting is the user's.
    fn run(&mut self, root: Node<'a>) -> Result<(), Box<Diagnostic>> {
        let mut cursor = root.walk();
        loop {
            let node = cursor.node();
            let down = matches!(self.visit(node)?, Down::Yes);
            if down && cursor.goto_first_child() {
                self.open.push(node);
                continue;
            }
            while !cursor.goto_next_sibling() {
                if !cursor.goto_parent() {
                    return Ok(());
                }
                self.open.pop();
            }
        }
    }

    fn visit(&mut self, node: Node<'a>) -> Step {
        if !node.is_named() {
            return Ok(Down::Yes);
        }
        match node.kind() {
            "comment" | "string" | "regex" => Ok(Down::No),
            "type_annotation" | "asserts_annotation" | "type_predicate_annotation" => self.annotation(node),
            "type_parameters" => self.type_parameters(node),
            "type_arguments" => {
                self.blank(node);
                self.guard_end(node);
                Ok(Down::No)
            }
            "as_expression" | "satisfies_expression" => self.type_operator(node),
            "binary_expression" => self.comparison(node),
            "non_null_expression" => self.last_token(node, "!"),
            "type_assertion" => {
                self.refuse(node, "a type in angle brackets before a value", "write `value as Type`")
            }
            "interface_declaration"
            | "type_alias_declaration"
            | "ambient_declaration"
            | "function_signature" => self.statement(node),
            "import_statement" => self.import(node),
            "export_statement" => self.export(node),
            "import_specifier" | "export_specifier" => self.specifier(node),
            "import_alias" => self.refuse(node, "import =", "write `import … from \"…\"`"),
            "enum_declaration" => self.refuse(
                node,
                "an enum, which is more than a type",
                "write `const Name = { A: \"A\" } as const`, or a union of strings as a type",
            ),
            "internal_module" | "module" => self.namespace(node),
            "decorator" => self.refuse(node, "a decorator", "call the function yourself"),
            "abstract_class_declaration" => self.token(node, "abstract"),
            "implements_clause" => {
                self.blank(node);
                Ok(Down::No)
            }
            "public_field_definition" => self.field(node),
            "method_definition" => {
                self.modifiers(node);
                self.token(node, "?")
            }
            "method_signature" | "abstract_method_signature" | "index_signature" => self.statement(node),
            "required_parameter" | "optional_parameter" => self.parameter(node),
            "variable_declarator" => self.token(node, "!"),
            _ => Ok(Down::Yes),
        }
    }

    fn blank(&mut self, node: Node<'_>) {
        self.edits.push(Edit::Blank(node.start_byte(), node.end_byte()));
    }

    fn refuse(&self, node: Node<'_>, what: &str, instead: &str) -> Step {
        let place = self.source.place(node.start_byte());
        Err(Box::new(
            Diagnostic::error(
                format!("{what} cannot be run: only types are taken out of a script"),
                Some(place),
            )
            .with_hint(instead),
        ))
    }

    /// A whole statement or class member goes; a semicolon stays, so that its neighbours do not become one.
    fn statement(&mut self, node: Node<'_>) -> Step {
        self.blank(node);
        self.edits.push(Edit::Put(node.start_byte(), b';'));
        Ok(Down::No)
    }

    /// Blanks the first token of that text among the children.
    fn token(&mut self, node: Node<'a>, text: &str) -> Step {
        if let Some(child) = children(node).into_iter().find(|child| child.kind() == text) {
            self.blank(child);
        }
        Ok(Down::Yes)
    }

    fn last_token(&mut self, node: Node<'a>, text: &str) -> Step {
        if let Some(child) = children(node).into_iter().rev().find(|child| child.kind() == text) {
            self.blank(child);
        }
        Ok(Down::Yes)
    }

    /// `: T`. Where it is the return type of an arrow function and has line breaks, the closing parenthesis
    /// moves to its end, because no line break may stand before `=>`.
    fn annotation(&mut self, node: Node<'a>) -> Step {
        self.blank(node);
        let arrow = self.open.last().filter(|parent| parent.kind() == "arrow_function");
        let parameters = arrow.and_then(|arrow| arrow.child_by_field_name("parameters"));
        if let Some(parameters) = parameters.filter(|p| p.end_byte() <= node.start_byte()) {
            let close = parameters.end_byte() - 1;
            if self.text[close..node.end_byte()].contains(['\n', '\r', '\u{2028}', '\u{2029}'])
                && let Some((last, _)) = self.text[..node.end_byte()].char_indices().next_back()
            {
                self.edits.push(Edit::Blank(close, close + 1));
                self.edits.push(Edit::Put(last, b')'));
            }
        }
        Ok(Down::No)
    }

    /// `<T>` of a declaration. Before the parameters of an arrow function, the opening parenthesis moves to
    /// its start where line breaks lie between them, because `return` and `async` end at a line break.
    fn type_parameters(&mut self, node: Node<'a>) -> Step {
        self.blank(node);
        let arrow = self.open.last().filter(|parent| parent.kind() == "arrow_function");
        if let Some(parameters) = arrow.and_then(|arrow| arrow.child_by_field_name("parameters")) {
            let open = parameters.start_byte();
            if node.start_byte() < open && self.text[node.start_byte()..open].contains(['\n', '\r']) {
                self.edits.push(Edit::Put(node.start_byte(), b'('));
                self.edits.push(Edit::Blank(open, open + 1));
            }
        }
        Ok(Down::No)
    }

    /// `value as T`, `value satisfies T`: the value stays.
    fn type_operator(&mut self, node: Node<'a>) -> Step {
        let Some(value) = node.named_child(0) else { return Ok(Down::Yes) };
        // The operator, not a comment before it, is where the type begins.
        let operator = children(node).into_iter().find(|child| matches!(child.kind(), "as" | "satisfies"));
        let from = operator.map_or(value.end_byte(), |operator| operator.start_byte());
        // In `value as a.b.c` the grammar takes `.c` for a member of the whole, and in
        // `value as T` before a line that begins with `(` or `[`, that for a call or an index.
        let mut last = node;
        let mut next_line = false;
        for around in self.open.iter().rev().filter(|around| around.kind() != "arguments") {
            let goes_on =
                matches!(around.kind(), "member_expression" | "subscript_expression" | "call_expression");
            if !goes_on || around.start_byte() != node.start_byte() {
                break;
            }
            let rest = &self.text[last.end_byte()..around.end_byte()];
            let breaks = rest[..rest.len() - rest.trim_start().len()].contains(['\n', '\r']);
            if around.kind() == "call_expression" || (around.kind() == "subscript_expression" && breaks) {
                next_line = breaks;
                break;
            }
            last = *around;
        }
        let mut end = last.end_byte();
        if let Some(broken) = line_that_indexes(&self.text[from..end]) {
            (end, next_line) = (from + broken, true);
        }
        self.gone.push(Edit::Blank(from, end));
        if next_line || (self.ends_statement(last) && self.continues(last.end_byte())) {
            self.gone.push(Edit::Put(from, b';'));
        }
        Ok(Down::Yes)
    }

    /// `` tag<T>`…` `` and `f<T>` at the end of a line, which the grammar takes for two comparisons.
    fn comparison(&mut self, node: Node<'a>) -> Step {
        let (left, right) = (node.child_by_field_name("left"), node.child_by_field_name("right"));
        let operator = |node: Node<'a>| node.child_by_field_name("operator");
        if let (Some(left), Some(right), Some(close)) = (left, right, operator(node))
            && close.kind() == ">"
            && (leftmost(right).kind() == "template_string"
                || right.kind() != "unary_expression"
                    && self.text[close.end_byte()..right.start_byte()].contains(['\n', '\r']))
            && left.kind() == "binary_expression"
            && let Some(open) = operator(left).filter(|open| open.kind() == "<")
        {
            self.gone.push(Edit::Blank(open.start_byte(), close.end_byte()));
        }
        Ok(Down::Yes)
    }

    /// A semicolon where blanks at the end of a statement would let the next line continue it.
    fn guard_end(&mut self, node: Node<'a>) {
        let instantiation =
            self.open.last().is_some_and(|parent| parent.kind() == "instantiation_expression");
        if instantiation && self.ends_statement(node) && self.continues(node.end_byte()) {
            self.edits.push(Edit::Put(node.start_byte(), b';'));
        }
    }

    /// Returns true if a statement or class member ends with this node, without a semicolon of its own.
    fn ends_statement(&self, node: Node<'a>) -> bool {
        let end = node.end_byte();
        self.open.iter().rev().take_while(|around| around.end_byte() == end).any(|around| {
            matches!(
                around.kind(),
                "expression_statement"
                    | "lexical_declaration"
                    | "variable_declaration"
                    | "return_statement"
                    | "throw_statement"
                    | "export_statement"
                    | "public_field_definition"
            )
        })
    }

    /// Returns true if what follows could be read as a continuation.
    fn continues(&self, end: usize) -> bool {
        let rest = after_trivia(&self.text[end..]);
        rest.starts_with(['(', '[', '`', '+', '-', '/', '*', '<'])
            || rest.starts_with("in ")
            || rest.starts_with("instanceof ")
    }

    fn import(&mut self, node: Node<'a>) -> Step {
        let parts = children(node);
        if parts.iter().any(|child| child.kind() == "import_require_clause") {
            return self.refuse(node, "import … = require(…)", "write `import … from \"…\"`");
        }
        let types_only = parts.get(1).is_some_and(|child| matches!(child.kind(), "type" | "typeof"));
        let source = node.child_by_field_name("source");
        let from_types = source.is_some_and(|s| {
            let text = &self.text[s.start_byte()..s.end_byte()];
            text.trim_matches(['"', '\'']) == super::modules::TYPES
        });
        if types_only || from_types { self.statement(node) } else { Ok(Down::Yes) }
    }

    fn export(&mut self, node: Node<'a>) -> Step {
        for child in children(node) {
            match child.kind() {
                "type"
                | "namespace"
                | "interface_declaration"
                | "type_alias_declaration"
                | "ambient_declaration"
                | "function_signature" => return self.statement(node),
                "=" => return self.refuse(node, "export =", "write `export default …`"),
                "import_alias" => return self.refuse(node, "import =", "write `import … from \"…\"`"),
                "internal_module" | "module" if self.only_types(child) => return self.statement(node),
                _ => {}
            }
        }
        Ok(Down::Yes)
    }

    /// `type X` among the names of an import or export, with the comma that follows.
    fn specifier(&mut self, node: Node<'a>) -> Step {
        let parts = children(node);
        let types_only = parts.len() > 1 && matches!(parts[0].kind(), "type" | "typeof");
        if !types_only {
            return Ok(Down::Yes);
        }
        self.blank(node);
        self.blank_comma(node);
        Ok(Down::No)
    }

    fn blank_comma(&mut self, node: Node<'a>) {
        let end = node.end_byte();
        let rest = after_trivia(&self.text[end..]);
        if rest.starts_with(',') {
            let comma = self.text.len() - rest.len();
            self.edits.push(Edit::Blank(comma, comma + 1));
        }
    }

    /// A namespace that holds only types goes; one with values cannot.
    fn namespace(&mut self, node: Node<'a>) -> Step {
        if self.only_types(node) {
            return self.statement(node);
        }
        self.refuse(node, "a namespace with values", "write a module of its own and import it, or an object")
    }

    fn only_types(&self, namespace: Node<'a>) -> bool {
        let mut left = vec![namespace];
        while let Some(node) = left.pop() {
            let Some(body) = node.child_by_field_name("body") else { return true };
            for statement in children(body) {
                let inner = if matches!(statement.kind(), "export_statement" | "expression_statement") {
                    children(statement)
                        .into_iter()
                        .find(|child| child.is_named() && child.kind() != "comment")
                } else {
                    Some(statement)
                };
                match inner {
                    Some(node) if !node.is_named() => {}
                    Some(node) => match node.kind() {
                        "comment"
                        | "interface_declaration"
                        | "type_alias_declaration"
                        | "ambient_declaration" => {}
                        "internal_module" | "module" => left.push(node),
                        _ => return false,
                    },
                    None => return false,
                }
            }
        }
        true
    }

    /// Modifiers of a class member; what they hide from the line before is kept apart by a semicolon.
    fn modifiers(&mut self, node: Node<'a>) {
        let parts = children(node);
        let is_modifier = |child: &Node<'_>| {
            matches!(
                child.kind(),
                "accessibility_modifier" | "override_modifier" | "readonly" | "abstract" | "declare"
            )
        };
        let name = node.child_by_field_name("name").map_or(usize::MAX, |name| name.start_byte());
        let found: Vec<Node<'_>> =
            parts.iter().filter(|child| is_modifier(child) && child.start_byte() < name).copied().collect();
        for child in &found {
            self.blank(*child);
        }
        let (Some(first), Some(kept)) =
            (parts.first(), parts.iter().find(|child| !is_modifier(child) && child.kind() != "comment"))
        else {
            return;
        };
        let rest = &self.text[kept.start_byte()..];
        if is_modifier(first) && (rest.starts_with(['[', '*', '(']) || rest.starts_with("in")) {
            self.edits.push(Edit::Put(first.start_byte(), b';'));
        }
    }

    fn field(&mut self, node: Node<'a>) -> Step {
        let parts = children(node);
        if parts.iter().any(|child| matches!(child.kind(), "declare" | "abstract")) {
            return self.statement(node);
        }
        self.modifiers(node);
        for child in &parts {
            if matches!(child.kind(), "?" | "!") {
                self.blank(*child);
            }
        }
        // A field called `get` must not make a getter of the next line.
        let name = node.child_by_field_name("name");
        let word = name.map_or("", |name| &self.text[name.start_byte()..name.end_byte()]);
        if let Some(annotation) = node.child_by_field_name("type")
            && matches!(word, "get" | "set" | "static" | "async" | "accessor")
            && node.child_by_field_name("value").is_none()
        {
            self.edits.push(Edit::Put(annotation.start_byte(), b';'));
        }
        Ok(Down::Yes)
    }

    fn parameter(&mut self, node: Node<'a>) -> Step {
        for child in children(node) {
            match child.kind() {
                "accessibility_modifier" | "override_modifier" | "readonly" => {
                    return self.refuse(
                        node,
                        "a parameter that is also a property",
                        "declare the field in the class and assign it in the constructor",
                    );
                }
                "this" => {
                    self.blank(node);
                    self.blank_comma(node);
                    return Ok(Down::No);
                }
                "?" => self.blank(child),
                _ => {}
            }
        }
        Ok(Down::Yes)
    }
}

/// The operand that a chain of members, indexes and calls begins with.
fn leftmost(mut node: Node<'_>) -> Node<'_> {
    while let Some(inner) =
        node.child_by_field_name("object").or_else(|| node.child_by_field_name("function"))
    {
        node = inner;
    }
    node
}

/// Where a type ends because a line begins with `[` or a template: neither goes on with a type.
fn line_that_indexes(text: &str) -> Option<usize> {
    let mut depth = 0_i32;
    let (mut last, mut breaks, mut before) = (0, false, ' ');
    for (at, character) in text.char_indices() {
        match character {
            '[' | '`' if depth == 0 && breaks && !matches!(before, '|' | '&' | ',' | ':' | '?' | '=') => {
                return Some(last);
            }
            '(' | '[' | '{' | '<' => depth += 1,
            ')' | ']' | '}' => depth -= 1,
            '>' if before != '=' => depth -= 1,
            '\n' | '\r' => breaks = true,
            _ => {}
        }
        if !character.is_whitespace() {
            (last, breaks, before) = (at + character.len_utf8(), false, character);
        }
    }
    None
}

fn children(node: Node<'_>) -> Vec<Node<'_>> {
    let mut cursor = node.walk();
    node.children(&mut cursor).collect()
}

/// The text behind blanks and comments.
fn after_trivia(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        if let Some(rest) = text.strip_prefix("//") {
            text = rest.find('\n').map_or("", |at| &rest[at..]);
        } else if let Some(rest) = text.strip_prefix("/*") {
            text = rest.find("*/").map_or("", |at| &rest[at + 2..]);
        } else {
            return text;
        }
    }
}

#[cfg(test)]
mod tests;
