//! CEL text to expressions, macros included, with the places errors point at. Bounded in depth; never panics.

use super::ast::{Expr, Macro, MacroKind, MessageField, Node};
use super::lex::{Fault, Lexed, Token, lex};

/// Deepest nesting of an expression.
const DEEPEST: usize = 120;
/// Longest text of an expression, in characters.
const LONGEST: usize = 100_000;
const OPERANDS: &str = "{'[', '{', '(', '.', '-', '!', 'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}";
const RESERVED: [&str; 18] = [
    "as",
    "break",
    "const",
    "continue",
    "else",
    "for",
    "function",
    "if",
    "import",
    "let",
    "loop",
    "package",
    "namespace",
    "return",
    "var",
    "void",
    "while",
    "in",
];

/// Returns true if a word means something of its own, so that no field or variable may be called it.
pub fn is_reserved(word: &str) -> bool {
    matches!(word, "true" | "false" | "null") || RESERVED.contains(&word)
}

/// Parses an expression.
pub(super) fn parse(text: &str) -> Result<Expr, Vec<Fault>> {
    if text.chars().count() > LONGEST {
        return Err(vec![Fault::new(0, format!("expression code point size exceeds limit: {LONGEST}"))]);
    }
    let (tokens, mut faults) = lex(text);
    let mut parser = Parser { tokens, at: 0, depth: 0 };
    let expr = parser.expr().and_then(|expr| match parser.peek() {
        Token::End => Ok(expr),
        _ => {
            let next = &parser.tokens[parser.at];
            // One token too many is passed over, several are not.
            let kind = if parser.at + 2 >= parser.tokens.len() { "extraneous" } else { "mismatched" };
            let text = format!("Syntax error: {kind} input '{}' expecting <EOF>", next.text);
            Err(Fault::new(next.at, text))
        }
    });
    match expr {
        Ok(expr) if faults.is_empty() => Ok(expr),
        Ok(_) => Err(faults),
        Err(fault) => {
            faults.push(fault);
            Err(faults)
        }
    }
}

struct Parser {
    tokens: Vec<Lexed>,
    at: usize,
    depth: usize,
}

type Parsed = Result<Expr, Fault>;

fn call(at: usize, function: &str, args: Vec<Expr>) -> Expr {
    Expr::new(at, Node::Call { target: None, function: function.to_owned(), args })
}

fn too_deep(at: usize) -> Fault {
    Fault::new(at, "expression recursion limit exceeded: it is nested too deep")
}

impl Parser {
    fn peek(&self) -> &Token {
        &self.tokens[self.at].token
    }

    fn place(&self) -> usize {
        self.tokens[self.at].at
    }

    fn next(&mut self) -> Lexed {
        let token = self.tokens[self.at].clone();
        if self.at + 1 < self.tokens.len() {
            self.at += 1;
        }
        token
    }

    fn sign(&mut self, sign: &str) -> Option<usize> {
        if matches!(self.peek(), Token::Sign(found) if *found == sign) {
            return Some(self.next().at);
        }
        None
    }

    fn unexpected(&self, wanted: &str) -> Fault {
        let next = &self.tokens[self.at];
        let text = if next.token == Token::End { "<EOF>" } else { &next.text };
        Fault::new(next.at, format!("Syntax error: mismatched input '{text}' expecting {wanted}"))
    }

    fn expect(&mut self, sign: &str) -> Result<usize, Fault> {
        self.sign(sign).ok_or_else(|| {
            let next = &self.tokens[self.at];
            if next.token == Token::End && sign == ")" {
                return Fault::new(next.at, "Syntax error: missing ')' at '<EOF>'");
            }
            self.unexpected(&format!("'{sign}'"))
        })
    }

    fn expr(&mut self) -> Parsed {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err(too_deep(self.place()));
        }
        let test = self.logic(true)?;
        let result = if let Some(at) = self.sign("?") {
            let yes = self.logic(true)?;
            self.expect(":")?;
            let no = self.expr()?;
            Expr::new(at, Node::Cond { test: Box::new(test), yes: Box::new(yes), no: Box::new(no) })
        } else {
            test
        };
        self.depth -= 1;
        Ok(result)
    }

    /// Terms joined by `||` (or) or `&&`.
    fn logic(&mut self, or: bool) -> Parsed {
        let first = if or { self.logic(false)? } else { self.relation()? };
        let sign = if or { "||" } else { "&&" };
        let Some(at) = self.sign(sign) else { return Ok(first) };
        let mut terms = vec![first, if or { self.logic(false)? } else { self.relation()? }];
        while self.sign(sign).is_some() {
            terms.push(if or { self.logic(false)? } else { self.relation()? });
        }
        Ok(Expr::new(at, Node::Logic { or, terms }))
    }

    fn chain(&mut self, operators: &[&'static str], operand: fn(&mut Parser) -> Parsed) -> Parsed {
        let mut left = operand(self)?;
        let mut length = 0;
        loop {
            let found = operators.iter().find(|op| match self.peek() {
                Token::Sign(sign) => sign == *op,
                Token::Name(name) => name == *op,
                _ => false,
            });
            let Some(operator) = found else { return Ok(left) };
            length += 1;
            if length > DEEPEST {
                return Err(too_deep(self.place()));
            }
            let at = self.next().at;
            let right = operand(self)?;
            let name = if *operator == "in" { "@in".to_owned() } else { format!("_{operator}_") };
            left = call(at, &name, vec![left, right]);
        }
    }

    fn relation(&mut self) -> Parsed {
        self.chain(&["<", "<=", ">=", ">", "==", "!=", "in"], Parser::sum)
    }

    fn sum(&mut self) -> Parsed {
        self.chain(&["+", "-"], Parser::product)
    }

    fn product(&mut self) -> Parsed {
        self.chain(&["*", "/", "%"], Parser::unary)
    }

    fn unary(&mut self) -> Parsed {
        let start = self.place();
        let mut count = 0;
        if self.sign("!").is_some() {
            count += 1;
            while self.sign("!").is_some() {
                count += 1;
            }
            let operand = self.member()?;
            return Ok(if count % 2 == 1 { call(start, "!_", vec![operand]) } else { operand });
        }
        if !matches!(self.peek(), Token::Sign("-")) {
            return self.member();
        }
        while self.sign("-").is_some() {
            count += 1;
        }
        // The sign is part of a number, so that the smallest one can be written.
        if count == 1 && matches!(self.peek(), Token::Int(_) | Token::Double(_)) {
            let next = self.next();
            let number = match &next.token {
                Token::Int(text) => integer(&format!("-{text}")).map(Node::Int),
                Token::Double(float) => Some(Node::Double(-float)),
                _ => None,
            };
            let number = number.ok_or_else(|| Fault::new(start, "invalid int literal"))?;
            return self.postfix(Expr::new(start, number));
        }
        let operand = self.member()?;
        Ok(if count % 2 == 1 { call(start, "-_", vec![operand]) } else { operand })
    }

    fn member(&mut self) -> Parsed {
        let primary = self.primary()?;
        self.postfix(primary)
    }

    fn postfix(&mut self, mut operand: Expr) -> Parsed {
        let mut length = 0;
        loop {
            length += 1;
            if length > DEEPEST {
                return Err(too_deep(self.place()));
            }
            if let Some(at) = self.sign(".") {
                let optional = self.sign("?").is_some();
                let next = self.next();
                let name = match next.token {
                    Token::Name(name) => name,
                    Token::Quoted(_) => return Err(Fault::new(next.at, "unsupported syntax: '`'")),
                    Token::End => {
                        return Err(Fault::new(next.at, "Syntax error: no viable alternative at input '.'"));
                    }
                    _ => {
                        let text = format!("Syntax error: no viable alternative at input '.{}'", next.text);
                        return Err(Fault::new(next.at, text));
                    }
                };
                if !optional && matches!(self.peek(), Token::Sign("(")) {
                    let open = self.next().at;
                    let args = self.arguments(")")?;
                    operand = method(open, operand, name, args)?;
                } else if optional {
                    operand = Expr::new(at, Node::OptSelect { operand: Box::new(operand), field: name });
                } else {
                    operand = Expr::new(at, Node::Select { operand: Box::new(operand), field: name });
                }
            } else if let Some(at) = self.sign("[") {
                let optional = self.sign("?").is_some();
                if !optional && matches!(self.peek(), Token::End) {
                    return Err(self.unexpected(&OPERANDS.replacen("'!', ", "'!', '?', ", 1)));
                }
                let index = self.expr()?;
                self.expect("]")?;
                operand = call(at, if optional { "_[?_]" } else { "_[_]" }, vec![operand, index]);
            } else if matches!(self.peek(), Token::Sign("{")) && operand.qualified().is_some() {
                let at = self.place();
                let name = operand.qualified().unwrap_or_default();
                let fields = self.message_fields()?;
                operand = Expr::new(at, Node::Message { name, fields });
            } else {
                return Ok(operand);
            }
        }
    }

    /// The fields of an object that is built, with the braces around them.
    fn message_fields(&mut self) -> Result<Vec<MessageField>, Fault> {
        self.expect("{")?;
        let mut fields = Vec::new();
        loop {
            if self.sign("}").is_some() {
                return Ok(fields);
            }
            let optional = self.sign("?").is_some();
            let Token::Name(name) = self.peek().clone() else {
                return Err(self.unexpected("{'}', ',', IDENTIFIER}"));
            };
            self.next();
            let Some(at) = self.sign(":") else {
                let next = &self.tokens[self.at];
                let text = if next.token == Token::End { "<EOF>" } else { &next.text };
                return Err(Fault::new(next.at, format!("Syntax error: missing ':' at '{text}'")));
            };
            let value = self.expr()?;
            fields.push(MessageField { at, name, value, optional });
            if self.sign(",").is_none() {
                self.expect("}")?;
                return Ok(fields);
            }
        }
    }

    fn arguments(&mut self, close: &str) -> Result<Vec<Expr>, Fault> {
        let mut args = Vec::new();
        if self.sign(close).is_some() {
            return Ok(args);
        }
        loop {
            args.push(self.expr()?);
            if self.sign(",").is_some() {
                continue;
            }
            self.expect(close)?;
            return Ok(args);
        }
    }

    fn primary(&mut self) -> Parsed {
        let next = self.tokens[self.at].clone();
        let at = next.at;
        let node = match next.token {
            Token::Int(text) => {
                Node::Int(integer(&text).ok_or_else(|| Fault::new(at, "invalid int literal"))?)
            }
            Token::Uint(text) => {
                Node::Uint(unsigned(&text).ok_or_else(|| Fault::new(at, "invalid uint literal"))?)
            }
            Token::Double(float) => Node::Double(float),
            Token::Text(text) => Node::Text(text),
            Token::Bytes(bytes) => Node::Bytes(bytes),
            Token::Name(name) => {
                self.next();
                return self.named(at, name);
            }
            Token::Sign("(") => {
                self.next();
                let inner = self.expr()?;
                self.expect(")")?;
                return Ok(inner);
            }
            Token::Sign("[") => return self.list(),
            Token::Sign("{") => return self.map(),
            Token::Sign(".") => {
                self.next();
                let name = self.next();
                let Token::Name(name) = name.token else { return Err(self.unexpected("IDENTIFIER")) };
                return self.named(at, name);
            }
            Token::Sign(_) | Token::Quoted(_) | Token::End => return Err(self.unexpected(OPERANDS)),
        };
        self.next();
        Ok(Expr::new(at, node))
    }

    fn named(&mut self, at: usize, name: String) -> Parsed {
        let node = match name.as_str() {
            "true" => Node::Bool(true),
            "false" => Node::Bool(false),
            "null" => Node::Null,
            _ if RESERVED.contains(&name.as_str()) => {
                return Err(Fault::new(at, format!("reserved identifier: {name}")));
            }
            _ => {
                if matches!(self.peek(), Token::Sign("(")) {
                    let open = self.next().at;
                    let args = self.arguments(")")?;
                    return global(open, name, args);
                }
                Node::Name(name)
            }
        };
        Ok(Expr::new(at, node))
    }

    fn list(&mut self) -> Parsed {
        let at = self.next().at;
        let mut items = Vec::new();
        loop {
            if self.sign("]").is_some() {
                return Ok(Expr::new(at, Node::List(items)));
            }
            let optional = self.sign("?").is_some();
            items.push((self.expr()?, optional));
            if self.sign(",").is_none() {
                self.expect("]")?;
                return Ok(Expr::new(at, Node::List(items)));
            }
        }
    }

    fn map(&mut self) -> Parsed {
        let at = self.next().at;
        let mut entries = Vec::new();
        loop {
            if self.sign("}").is_some() {
                return Ok(Expr::new(at, Node::Map(entries)));
            }
            let optional = self.sign("?").is_some();
            let key = self.expr()?;
            self.expect(":")?;
            entries.push((key, self.expr()?, optional));
            if self.sign(",").is_none() {
                self.expect("}")?;
                return Ok(Expr::new(at, Node::Map(entries)));
            }
        }
    }
}

fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
        Some(hex) => i64::from_str_radix(&format!("{sign}{hex}"), 16).ok(),
        None => text.parse().ok(),
    }
}

fn unsigned(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hex) => u64::from_str_radix(hex, 16).ok(),
        None => text.parse().ok(),
    }
}

fn global(at: usize, name: String, mut args: Vec<Expr>) -> Parsed {
    if name == "has" && args.len() == 1 {
        let arg = args.remove(0);
        return match arg.node {
            Node::Select { operand, field } => Ok(Expr::new(at, Node::Has { operand, field })),
            _ => Err(Fault::new(arg.at, "invalid argument to has() macro")),
        };
    }
    Ok(Expr::new(at, Node::Call { target: None, function: name, args }))
}

fn variable(expr: &Expr) -> Result<String, Fault> {
    match &expr.node {
        Node::Name(name) if !name.starts_with("__result__") && name != "@result" => Ok(name.clone()),
        _ => Err(Fault::new(expr.at, "argument must be a simple name")),
    }
}

/// A method, or a macro written as one.
fn method(at: usize, target: Expr, name: String, args: Vec<Expr>) -> Parsed {
    use MacroKind::{
        All, Exists, ExistsOne, Filter, Map, OptFlatMap, OptMap, SortBy, TransformList, TransformMap,
        TransformMapEntry,
    };
    // Kind, count of variables, with a filter before the body.
    let found = match (name.as_str(), args.len()) {
        ("all", 2) => Some((All, 1, false)),
        ("all", 3) => Some((All, 2, false)),
        ("exists", 2) => Some((Exists, 1, false)),
        ("exists", 3) => Some((Exists, 2, false)),
        ("exists_one", 2) => Some((ExistsOne, 1, false)),
        ("existsOne", 3) => Some((ExistsOne, 2, false)),
        ("map", 2) => Some((Map, 1, false)),
        ("map", 3) => Some((Map, 1, true)),
        ("filter", 2) => Some((Filter, 1, false)),
        ("transformList", 3) => Some((TransformList, 2, false)),
        ("transformList", 4) => Some((TransformList, 2, true)),
        ("transformMap", 3) => Some((TransformMap, 2, false)),
        ("transformMap", 4) => Some((TransformMap, 2, true)),
        ("transformMapEntry", 3) => Some((TransformMapEntry, 2, false)),
        ("transformMapEntry", 4) => Some((TransformMapEntry, 2, true)),
        ("sortBy", 2) => Some((SortBy, 1, false)),
        ("optMap", 2) => Some((OptMap, 1, false)),
        ("optFlatMap", 2) => Some((OptFlatMap, 1, false)),
        _ => None,
    };
    let Some((kind, variables, filtered)) = found else {
        let target = Some(Box::new(target));
        return Ok(Expr::new(at, Node::Call { target, function: name, args }));
    };
    let first = variable(&args[0])?;
    let second = if variables == 2 { Some(variable(&args[1])?) } else { None };
    if second.as_ref() == Some(&first) {
        return Err(Fault::new(args[1].at, format!("duplicate variable name: {first}")));
    }
    let mut rest = args.into_iter().skip(variables);
    let filter = if filtered { rest.next() } else { None };
    let Some(body) = rest.next() else { return Err(Fault::new(at, "argument missing")) };
    let inner = Macro { kind, range: target, first, second, filter, body };
    Ok(Expr::new(at, Node::Macro(Box::new(inner))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_is_bounded() {
        for text in [
            "(".repeat(5000),
            "[".repeat(5000),
            "-".repeat(50_000),
            format!("{}1", "1+".repeat(5000)),
            format!("a{}", ".b".repeat(5000)),
            format!("a{}", "[0]".repeat(5000)),
            format!("{}1", "true ? 1 : ".repeat(5000)),
        ] {
            assert!(parse(&text).is_err());
        }
        assert!(parse(&format!("{}true", "true || ".repeat(5000))).is_ok());
        assert!(parse(&format!("{}true", "!".repeat(50_000))).is_ok());
    }

    #[test]
    fn errors_have_a_place() {
        assert_eq!(parse("1 +").unwrap_err()[0].at, 3);
        assert_eq!(
            parse("a b").unwrap_err()[0].message,
            "Syntax error: extraneous input 'b' expecting <EOF>"
        );
        assert_eq!(parse("a = b").unwrap_err()[0].message, "Syntax error: token recognition error at: '= '");
    }
}
