//! Builds trees from template text, with Go's grammar, checks and error texts.
//! Functions and variables are resolved here, so that execution looks nothing up by name. Read `exec` next.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::error::ParseError;
use super::funcs::{self, Language};
use super::lex::{Kind, Lexer, Token};
use super::node::{Branch, Command, Expr, ExprKind, Invocation, Node, Pipe, Source, Tree};
use super::number::parse_literal;
use super::scope::Scope;
use super::text::{Str, kept_bytes, without_kept};
use opdev_object::go::quote::{quote_bytes as quote, unquote};

/// Go allows 10,000; the machine's stack sets ours.
const MAX_NESTING: usize = 500;

/// The trees of one text: its own (under its name) and those it defines.
pub(super) fn parse(name: &str, text: &Arc<str>, language: Language) -> Parsed<BTreeMap<Str, Arc<Tree>>> {
    let source = Arc::new(Source { name: name.into(), text: Arc::clone(text) });
    let mut parser = Parser {
        source: Arc::clone(&source),
        language,
        lexer: Lexer::new(text),
        tokens: [Token { kind: Kind::Eof, pos: 0, text: "", line: 1, spaced: false }; 2],
        ahead: 0,
        scope: Scope::new(),
        trees: BTreeMap::new(),
        action_line: 0,
        nesting: 0,
        begun: Begun::default(),
    };
    let root = parser.top()?;
    parser.add(Str::from(name), root)?;
    Ok(parser.trees)
}

struct Parser<'a> {
    source: Arc<Source>,
    language: Language,
    lexer: Lexer<'a>,
    tokens: [Token<'a>; 2],
    ahead: usize,
    scope: Scope,
    trees: BTreeMap<Str, Arc<Tree>>,
    action_line: usize,
    nesting: usize,
    begun: Begun,
}

/// The lists that are not at their ends, the innermost last: each is taken off the end, in the room it needs.
#[derive(Default)]
struct Begun {
    nodes: Vec<Node>,
    commands: Vec<Command>,
    args: Vec<Expr>,
    fields: Vec<Str>,
}

/// An item of a list of statements.
enum Item {
    Node(Node),
    End,
    Else,
}

impl Item {
    fn name(&self) -> &'static str {
        if matches!(self, Item::End) { "{{end}}" } else { "{{else}}" }
    }
}

type Parsed<T> = Result<T, ParseError>;

impl<'a> Parser<'a> {
    fn next(&mut self) -> Token<'a> {
        if self.ahead > 0 {
            self.ahead -= 1;
        } else {
            self.tokens[0] = self.lexer.next_token();
        }
        self.tokens[self.ahead]
    }

    fn backup(&mut self) {
        self.ahead += 1;
    }

    fn backup2(&mut self, first: Token<'a>) {
        self.tokens[1] = first;
        self.ahead = 2;
    }

    fn peek(&mut self) -> Token<'a> {
        if self.ahead == 0 {
            self.ahead = 1;
            self.tokens[0] = self.lexer.next_token();
        }
        self.tokens[self.ahead - 1]
    }

    fn fail<T>(&self, reason: impl Into<String>) -> Parsed<T> {
        let token = &self.tokens[0];
        let before = &self.source.text[..token.pos.min(self.source.text.len())];
        let column = (token.kind != Kind::Error || token.pos > 0)
            .then(|| before.len() - before.rfind('\n').map_or(0, |i| i + 1) + 1);
        Err(ParseError {
            name: self.source.name.to_string(),
            line: token.line,
            column,
            reason: reason.into(),
        })
    }

    fn unexpected<T>(&self, token: Token<'_>, context: &str) -> Parsed<T> {
        if token.kind != Kind::Error {
            return self.fail(format!("unexpected {} in {context}", describe(token)));
        }
        let mut reason = self.lexer.error.clone();
        if self.action_line != 0 && self.action_line != token.line {
            let action = if reason.ends_with(" action") { "" } else { " in action" };
            reason.push_str(&format!("{action} started at {}:{}", self.source.name, self.action_line));
        }
        self.fail(reason)
    }

    fn expect(&mut self, kind: Kind, context: &str) -> Parsed<Token<'a>> {
        let token = self.next();
        if token.kind == kind { Ok(token) } else { self.unexpected(token, context) }
    }

    fn add(&mut self, name: Str, root: Box<[Node]>) -> Parsed<()> {
        let tree =
            Tree { name: name.clone(), source: Arc::clone(&self.source), root, slots: self.scope.slots };
        if self.trees.get(&name).is_none_or(|old| old.is_empty()) {
            self.trees.insert(name, Arc::new(tree));
            return Ok(());
        }
        if tree.is_empty() {
            return Ok(());
        }
        self.fail(format!("template: multiple definition of template {}", quote(&name)))
    }

    fn top(&mut self) -> Parsed<Box<[Node]>> {
        while self.peek().kind != Kind::Eof {
            if self.peek().kind == Kind::LeftDelim {
                let delim = self.next();
                if self.next().kind == Kind::Define {
                    self.definition()?;
                    continue;
                }
                self.backup2(delim);
            }
            match self.text_or_action()? {
                Item::Node(node) => self.begun.nodes.push(node),
                item => return self.fail(format!("unexpected {}", item.name())),
            }
        }
        Ok(self.begun.nodes.drain(..).collect())
    }

    fn definition(&mut self) -> Parsed<()> {
        const CONTEXT: &str = "define clause";
        let token = self.next();
        let name = self.template_name(token, CONTEXT)?;
        self.expect(Kind::RightDelim, CONTEXT)?;
        self.body(name, CONTEXT, None)
    }

    /// The body of `define` or `block`: a tree of its own.
    fn body(&mut self, name: Str, context: &str, begun: Option<usize>) -> Parsed<()> {
        let outer = std::mem::replace(&mut self.scope, Scope::new());
        let line = std::mem::take(&mut self.action_line);
        let (root, end) = self.item_list()?;
        if !matches!(end, Item::End) {
            let failure = self.fail(format!("unexpected {} in {context}", end.name()));
            // A block is read by a parser of its own, the mistake told by the one around it.
            return failure.map_err(|error| ParseError { line: begun.unwrap_or(error.line), ..error });
        }
        self.add(name, root)?;
        self.scope = outer;
        self.action_line = line;
        Ok(())
    }

    fn item_list(&mut self) -> Parsed<(Box<[Node]>, Item)> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.fail("max expression depth exceeded");
        }
        let first = self.begun.nodes.len();
        while self.peek().kind != Kind::Eof {
            match self.text_or_action()? {
                Item::Node(node) => self.begun.nodes.push(node),
                item => {
                    self.nesting -= 1;
                    return Ok((self.begun.nodes.drain(first..).collect(), item));
                }
            }
        }
        self.fail("unexpected EOF")
    }

    fn text_or_action(&mut self) -> Parsed<Item> {
        let token = self.next();
        match token.kind {
            Kind::Text => Ok(Item::Node(Node::Text(offset(token.pos), offset(token.pos + token.text.len())))),
            Kind::LeftDelim => {
                self.action_line = token.line;
                let item = self.action()?;
                self.action_line = 0;
                Ok(item)
            }
            _ => self.unexpected(token, "input"),
        }
    }

    fn action(&mut self) -> Parsed<Item> {
        let token = self.next();
        let node = match token.kind {
            Kind::Block => self.block()?,
            Kind::Break | Kind::Continue => self.leave_range(token.kind)?,
            Kind::Else => {
                let next = self.peek();
                if !matches!(next.kind, Kind::If | Kind::With) {
                    self.expect(Kind::RightDelim, "else")?;
                }
                return Ok(Item::Else);
            }
            Kind::End => {
                self.expect(Kind::RightDelim, "end")?;
                return Ok(Item::End);
            }
            Kind::If => Node::If(self.control("if")?),
            Kind::Range => Node::Range(self.control("range")?),
            Kind::With => Node::With(self.control("with")?),
            Kind::Template => self.template()?,
            _ => {
                self.backup();
                Node::Action(self.pipeline("command", Kind::RightDelim)?)
            }
        };
        Ok(Item::Node(node))
    }

    fn leave_range(&mut self, kind: Kind) -> Parsed<Node> {
        let name = if kind == Kind::Break { "{{break}}" } else { "{{continue}}" };
        let token = self.next();
        if token.kind != Kind::RightDelim {
            return self.unexpected(token, name);
        }
        if self.scope.range_depth == 0 {
            return self.fail(format!("{name} outside {{{{range}}}}"));
        }
        Ok(if kind == Kind::Break { Node::Break } else { Node::Continue })
    }

    fn control(&mut self, context: &str) -> Parsed<Branch> {
        let mark = self.scope.mark();
        let pipe = self.pipeline(context, Kind::RightDelim)?;
        let inside = self.scope.mark();
        let in_range = usize::from(context == "range");
        self.scope.range_depth += in_range;
        let (then, next) = self.item_list()?;
        self.scope.range_depth -= in_range;
        let mut otherwise: Option<Box<[Node]>> = None;
        if matches!(next, Item::Else) {
            self.scope.hide(inside);
            let following = self.peek().kind;
            if context == "if" && following == Kind::If {
                self.next();
                otherwise = Some(Box::new([Node::If(self.chained("if")?)]));
            } else if context == "with" && following == Kind::With {
                self.next();
                otherwise = Some(Box::new([Node::With(self.chained("with")?)]));
            } else {
                let (list, end) = self.item_list()?;
                if !matches!(end, Item::End) {
                    return self.fail(format!("expected end; found {}", end.name()));
                }
                otherwise = Some(list);
            }
        }
        self.scope.leave(mark);
        Ok(Branch { pipe, then, otherwise })
    }

    /// `else if`, `else with`: nested in the tree, so counted against the stack.
    fn chained(&mut self, context: &str) -> Parsed<Branch> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return self.fail("max expression depth exceeded");
        }
        let branch = self.control(context)?;
        self.nesting -= 1;
        Ok(branch)
    }

    fn block(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "block clause";
        let token = self.next();
        let name = self.template_name(token, CONTEXT)?;
        let pipe = self.pipeline(CONTEXT, Kind::RightDelim)?;
        let line = self.tokens[0].line;
        self.body(name.clone(), CONTEXT, Some(line))?;
        Ok(Node::Template(Invocation { pos: offset(token.pos), name, pipe: Some(pipe) }))
    }

    fn template(&mut self) -> Parsed<Node> {
        const CONTEXT: &str = "template clause";
        let token = self.next();
        let name = self.template_name(token, CONTEXT)?;
        let mut pipe = None;
        if self.next().kind != Kind::RightDelim {
            self.backup();
            pipe = Some(self.pipeline(CONTEXT, Kind::RightDelim)?);
        }
        Ok(Node::Template(Invocation { pos: offset(token.pos), name, pipe }))
    }

    fn template_name(&mut self, token: Token<'a>, context: &str) -> Parsed<Str> {
        match token.kind {
            Kind::String | Kind::RawString => self.unquote(token),
            _ => self.unexpected(token, context),
        }
    }

    fn unquote(&self, token: Token<'_>) -> Parsed<Str> {
        // Without escapes a constant in backquotes is what stands between these.
        if token.kind == Kind::RawString
            && let Some(raw) = unquote(token.text)
        {
            let text = std::str::from_utf8(&raw).map(kept_bytes);
            return Ok(Str::from(text.as_deref().unwrap_or(&raw)));
        }
        match unquote(&without_kept(token.text)) {
            Some(bytes) => Ok(Str::from(&*bytes)),
            None => self.fail("invalid syntax"),
        }
    }

    /// Variables before `:=` or `=`: how many, and whether they are assigned.
    fn declarations(&mut self, context: &str) -> Parsed<(usize, bool)> {
        let mut count = 0;
        loop {
            let variable = self.peek();
            if variable.kind != Kind::Variable {
                return Ok((count, false));
            }
            self.next();
            let next = self.peek();
            match next.kind {
                Kind::Assign | Kind::Declare => {
                    self.next();
                    self.scope.declare(variable.text);
                    return Ok((count + 1, next.kind == Kind::Assign));
                }
                Kind::Char if next.text == "," => {
                    self.next();
                    self.scope.declare(variable.text);
                    count += 1;
                    if context != "range" || count >= 2 {
                        return self.fail(format!("too many declarations in {context}"));
                    }
                    if !matches!(self.peek().kind, Kind::Variable | Kind::RightDelim | Kind::RightParen) {
                        return self.fail("range can only initialize variables");
                    }
                }
                _ => {
                    self.backup2(variable);
                    return Ok((count, false));
                }
            }
        }
    }

    fn pipeline(&mut self, context: &str, end: Kind) -> Parsed<Pipe> {
        let pos = offset(self.peek().pos);
        let first = self.scope.mark();
        let (count, assign) = self.declarations(context)?;
        let begun = self.begun.commands.len();
        loop {
            let token = self.next();
            match token.kind {
                kind if kind == end => {
                    self.check_pipeline(&self.begun.commands[begun..], context)?;
                    let decls = self.scope.settle(first, count, assign);
                    let commands = self.begun.commands.drain(begun..).collect();
                    return Ok(Pipe { pos, assign, decls, commands });
                }
                Kind::Bool
                | Kind::CharConstant
                | Kind::Complex
                | Kind::Dot
                | Kind::Field
                | Kind::Identifier
                | Kind::Number
                | Kind::Nil
                | Kind::RawString
                | Kind::String
                | Kind::Variable
                | Kind::LeftParen => {
                    self.backup();
                    let command = self.command()?;
                    self.begun.commands.push(command);
                }
                _ => return self.unexpected(token, context),
            }
        }
    }

    fn check_pipeline(&self, commands: &[Command], context: &str) -> Parsed<()> {
        if commands.is_empty() {
            return self.fail(format!("missing value for {context}"));
        }
        for (i, command) in commands.iter().enumerate().skip(1) {
            if matches!(
                command.args[0].kind,
                ExprKind::Bool(_) | ExprKind::Dot | ExprKind::Nil | ExprKind::Number(_) | ExprKind::Str(..)
            ) {
                return self.fail(format!("non executable command in pipeline stage {}", i + 1));
            }
        }
        Ok(())
    }

    fn command(&mut self) -> Parsed<Command> {
        let pos = offset(self.peek().pos);
        let first = self.begun.args.len();
        while let Some(operand) = self.operand()? {
            self.begun.args.push(operand);
            if !self.peek().spaced {
                break;
            }
        }
        let token = self.next();
        match token.kind {
            Kind::RightDelim | Kind::RightParen => self.backup(),
            Kind::Pipe => {}
            _ => return self.unexpected(token, "operand"),
        }
        if self.begun.args.len() == first {
            return self.fail("empty command");
        }
        Ok(Command { pos, args: self.begun.args.drain(first..).collect() })
    }

    fn operand(&mut self) -> Parsed<Option<Expr>> {
        let Some(term) = self.term()? else { return Ok(None) };
        let next = self.peek();
        if !continues(next) {
            return Ok(Some(term));
        }
        let pos = offset(next.pos);
        let kind = match term.kind {
            ExprKind::Variable { name, slot, .. } => ExprKind::Variable { name, slot, fields: self.fields() },
            ExprKind::Bool(_) | ExprKind::Str(..) | ExprKind::Number(_) | ExprKind::Nil | ExprKind::Dot => {
                self.fields();
                let shown = quote(term.to_string().as_bytes());
                return self.fail(format!("unexpected . after term {shown}"));
            }
            ExprKind::Field(_) | ExprKind::Chain(..) | ExprKind::Function(_) | ExprKind::Pipe(_) => {
                ExprKind::Chain(Box::new(term), self.fields())
            }
        };
        Ok(Some(Expr { pos, kind }))
    }

    /// The fields that follow, and those that are begun.
    fn fields(&mut self) -> Box<[Str]> {
        while continues(self.peek()) {
            let name = self.next().text;
            self.begun.fields.push(Str::from(&name[1..]));
        }
        self.begun.fields.drain(..).collect()
    }

    fn term(&mut self) -> Parsed<Option<Expr>> {
        let token = self.next();
        let kind = match token.kind {
            Kind::Identifier => match funcs::lookup(token.text, self.language) {
                Some(function) => ExprKind::Function(function),
                None => return self.fail(format!("function {} not defined", quote(token.text.as_bytes()))),
            },
            Kind::Dot => ExprKind::Dot,
            Kind::Nil => ExprKind::Nil,
            Kind::Variable => {
                let Some(name) = self.scope.name(token.text) else {
                    return self.fail(format!("undefined variable {}", quote(token.text.as_bytes())));
                };
                let slot = self.scope.slot_of(token.text);
                ExprKind::Variable { name, slot, fields: Box::default() }
            }
            Kind::Field => {
                // A chain of fields has the place of its second field.
                let next = self.peek();
                let pos = offset(if continues(next) { next.pos } else { token.pos });
                self.begun.fields.push(Str::from(&token.text[1..]));
                return Ok(Some(Expr { pos, kind: ExprKind::Field(self.fields()) }));
            }
            Kind::Bool => ExprKind::Bool(token.text == "true"),
            Kind::CharConstant | Kind::Complex | Kind::Number => match parse_literal(token.text) {
                Ok(number) => ExprKind::Number(number),
                Err(error) => return self.fail(error.to_string()),
            },
            Kind::LeftParen => {
                self.nesting += 1;
                if self.nesting > MAX_NESTING {
                    return self.fail("max expression depth exceeded");
                }
                let pipe = self.pipeline("parenthesized pipeline", Kind::RightParen)?;
                self.nesting -= 1;
                return Ok(Some(Expr { pos: pipe.pos, kind: ExprKind::Pipe(Box::new(pipe)) }));
            }
            Kind::String | Kind::RawString => {
                let value = self.unquote(token)?;
                ExprKind::Str(token.text.into(), value)
            }
            _ => {
                self.backup();
                return Ok(None);
            }
        };
        Ok(Some(Expr { pos: offset(token.pos), kind }))
    }
}

/// Returns true if the token is a field of what is before it.
fn continues(token: Token<'_>) -> bool {
    token.kind == Kind::Field && !token.spaced
}

fn offset(pos: usize) -> u32 {
    u32::try_from(pos).unwrap_or(u32::MAX)
}

/// A token as Go prints it.
fn describe(token: Token<'_>) -> String {
    if token.kind == Kind::Eof {
        return "EOF".to_owned();
    }
    if token.kind > Kind::Keyword {
        return format!("<{}>", token.text);
    }
    if token.text.len() > 10 {
        let cut: String = token.text.chars().take(10).collect();
        return format!("{}...", quote(cut.as_bytes()));
    }
    quote(token.text.as_bytes())
}
