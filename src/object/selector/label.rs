//! Label selectors as text (`app=web,tier in (a,b),!old`) and as JSON (`matchLabels`, `matchExpressions`).

use super::{Labels, SelectorError};
use crate::names;
use crate::schema::FieldError;
use serde_json::Value;
use std::fmt;

/// The operator of a requirement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operator {
    /// `=` and `==`
    Equals,
    /// `!=`
    NotEquals,
    /// `in`
    In,
    /// `notin`
    NotIn,
    /// `key`
    Exists,
    /// `!key`
    DoesNotExist,
    /// `>`
    GreaterThan,
    /// `<`
    LessThan,
}

/// One requirement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Requirement {
    /// The label's key.
    pub key: String,
    /// The operator.
    pub operator: Operator,
    /// The values, sorted.
    pub values: Vec<String>,
}

/// Requirements that must all be met.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LabelSelector {
    /// The requirements, by key.
    pub requirements: Vec<Requirement>,
    nothing: bool,
}

impl LabelSelector {
    /// Reads a selector; the empty text selects everything.
    pub fn parse(text: &str) -> Result<Self, SelectorError> {
        let mut parser = Parser { tokens: lex(text), at: 0 };
        let mut requirements = parser.selector()?;
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements, nothing: false })
    }

    /// Reads the JSON form. `null` selects nothing, `{}` everything.
    pub fn from_json(selector: &Value) -> Result<Self, SelectorError> {
        if selector.is_null() {
            return Ok(LabelSelector { requirements: Vec::new(), nothing: true });
        }
        let mut requirements = Vec::new();
        for (key, value) in selector.get("matchLabels").and_then(Value::as_object).into_iter().flatten() {
            let value = value.as_str().unwrap_or_default().to_owned();
            requirements.push(Requirement::new(key, Operator::Equals, vec![value])?);
        }
        for expression in selector.get("matchExpressions").and_then(Value::as_array).into_iter().flatten() {
            let text = |key: &str| expression.get(key).and_then(Value::as_str).unwrap_or_default();
            let operator = match text("operator") {
                "In" => Operator::In,
                "NotIn" => Operator::NotIn,
                "Exists" => Operator::Exists,
                "DoesNotExist" => Operator::DoesNotExist,
                other => return Err(SelectorError::Operator { operator: other.to_owned() }),
            };
            let values = expression.get("values").and_then(Value::as_array);
            let values = values.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect();
            requirements.push(Requirement::new(text("key"), operator, values)?);
        }
        requirements.sort_by(|a, b| a.key.cmp(&b.key));
        Ok(LabelSelector { requirements, nothing: false })
    }

    /// Returns true if everything is selected.
    pub fn is_empty(&self) -> bool {
        self.requirements.is_empty() && !self.nothing
    }

    /// The labels that everything selected has with one certain value.
    pub fn required(&self) -> impl Iterator<Item = (&str, &str)> {
        self.requirements.iter().filter_map(|requirement| match requirement.operator {
            Operator::Equals | Operator::In if requirement.values.len() == 1 => {
                Some((requirement.key.as_str(), requirement.values[0].as_str()))
            }
            _ => None,
        })
    }

    /// Returns true if all requirements are met.
    pub fn matches<L: Labels + ?Sized>(&self, labels: &L) -> bool {
        !self.nothing && self.requirements.iter().all(|r| r.matches(labels.label(&r.key)))
    }
}

impl fmt::Display for LabelSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all: Vec<String> = self.requirements.iter().map(ToString::to_string).collect();
        f.write_str(&all.join(","))
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, values) = (&self.key, self.values.join(","));
        match self.operator {
            Operator::Equals => write!(f, "{key}={values}"),
            Operator::NotEquals => write!(f, "{key}!={values}"),
            Operator::In => write!(f, "{key} in ({values})"),
            Operator::NotIn => write!(f, "{key} notin ({values})"),
            Operator::Exists => f.write_str(key),
            Operator::DoesNotExist => write!(f, "!{key}"),
            Operator::GreaterThan => write!(f, "{key}>{values}"),
            Operator::LessThan => write!(f, "{key}<{values}"),
        }
    }
}

impl Requirement {
    fn new(key: &str, operator: Operator, mut values: Vec<String>) -> Result<Self, SelectorError> {
        let mut errors = Vec::new();
        let wrong_key = names::label_key(key);
        if !wrong_key.is_empty() {
            errors.push(FieldError::invalid("key", &Value::from(key), &wrong_key.join("; ")));
        }
        let shown = || Value::from(values.clone());
        let invalid = |text: &str| FieldError::invalid("values", &shown(), text);
        match operator {
            Operator::In | Operator::NotIn if values.is_empty() => {
                errors.push(invalid("for 'in', 'notin' operators, values set can't be empty"));
            }
            Operator::Equals | Operator::NotEquals if values.len() != 1 => {
                errors.push(invalid("exact-match compatibility requires one single value"));
            }
            Operator::Exists | Operator::DoesNotExist if !values.is_empty() => {
                errors.push(invalid("values set must be empty for exists and does not exist"));
            }
            Operator::GreaterThan | Operator::LessThan => {
                for (i, value) in values.iter().enumerate().filter(|(_, value)| value.parse::<i64>().is_err())
                {
                    let text = "for 'Gt', 'Lt' operators, the value must be an integer";
                    errors.push(FieldError::invalid(
                        format!("values[{i}]"),
                        &Value::from(value.as_str()),
                        text,
                    ));
                }
            }
            Operator::In
            | Operator::NotIn
            | Operator::Equals
            | Operator::NotEquals
            | Operator::Exists
            | Operator::DoesNotExist => {}
        }
        for (i, value) in values.iter().enumerate() {
            let wrong = names::label_value(value);
            if !wrong.is_empty() {
                let path = format!("values[{i}][{key}]");
                errors.push(FieldError::invalid(path, &Value::from(value.as_str()), &wrong.join("; ")));
            }
        }
        match errors.as_slice() {
            [] => {
                values.sort();
                values.dedup();
                Ok(Requirement { key: key.to_owned(), operator, values })
            }
            _ => Err(SelectorError::Fields(errors)),
        }
    }

    fn matches(&self, value: Option<&str>) -> bool {
        let listed = value.is_some_and(|value| self.values.iter().any(|v| v == value));
        let number = |text: Option<&str>| text.and_then(|text| text.parse::<i64>().ok());
        let bound = number(self.values.first().map(String::as_str));
        match self.operator {
            Operator::Equals | Operator::In => listed,
            Operator::NotEquals | Operator::NotIn => !listed,
            Operator::Exists => value.is_some(),
            Operator::DoesNotExist => value.is_none(),
            Operator::GreaterThan => number(value).zip(bound).is_some_and(|(value, bound)| value > bound),
            Operator::LessThan => number(value).zip(bound).is_some_and(|(value, bound)| value < bound),
        }
    }
}

#[derive(Clone, Debug, PartialEq)]
enum Token {
    Word(String),
    Sign(&'static str),
    End,
}

impl Token {
    fn text(&self) -> &str {
        match self {
            Token::Word(word) => word,
            Token::Sign(sign) => sign,
            Token::End => "",
        }
    }

    fn unexpected(&self, expected: &'static str) -> SelectorError {
        SelectorError::Unexpected { found: self.text().to_owned(), expected }
    }
}

fn lex(text: &str) -> Vec<Token> {
    const SIGNS: [&str; 9] = ["==", "!=", "=", "!", ",", "(", ")", ">", "<"];
    let special = |c: char| "=!(),><".contains(c);
    let mut tokens = Vec::new();
    let mut rest = text.trim_start_matches([' ', '\t', '\r', '\n']);
    while !rest.is_empty() {
        if let Some(sign) = SIGNS.into_iter().find(|sign| rest.starts_with(*sign)) {
            tokens.push(Token::Sign(sign));
            rest = &rest[sign.len()..];
        } else {
            let end = rest.find(|c: char| special(c) || c.is_ascii_whitespace()).unwrap_or(rest.len());
            tokens.push(Token::Word(rest[..end].to_owned()));
            rest = &rest[end..];
        }
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
    }
    tokens.push(Token::End);
    tokens
}

struct Parser {
    tokens: Vec<Token>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> &Token {
        self.tokens.get(self.at).unwrap_or(&Token::End)
    }

    fn next(&mut self) -> Token {
        let token = self.peek().clone();
        self.at += 1;
        token
    }

    fn selector(&mut self) -> Result<Vec<Requirement>, SelectorError> {
        let mut requirements = Vec::new();
        loop {
            match self.peek() {
                Token::Word(_) | Token::Sign("!") => {
                    let requirement = self.requirement();
                    requirements.push(requirement.map_err(|e| SelectorError::Requirement(Box::new(e)))?);
                    match self.next() {
                        Token::End => return Ok(requirements),
                        Token::Sign(",") => {
                            if !matches!(self.peek(), Token::Word(_) | Token::Sign("!")) {
                                return Err(self.peek().unexpected("identifier after ','"));
                            }
                        }
                        other => return Err(other.unexpected("',' or 'end of string'")),
                    }
                }
                Token::End => return Ok(requirements),
                sign @ Token::Sign(_) => {
                    return Err(sign.unexpected("!, identifier, or 'end of string'"));
                }
            }
        }
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let mut token = self.next();
        let negated = token == Token::Sign("!");
        if negated {
            token = self.next();
        }
        let Token::Word(key) = token else {
            return Err(token.unexpected("identifier"));
        };
        let wrong = names::label_key(&key);
        if !wrong.is_empty() {
            let error = FieldError::invalid("<nil>", &Value::from(key), &wrong.join("; "));
            return Err(SelectorError::Fields(vec![error]));
        }
        let ends = matches!(self.peek(), Token::End | Token::Sign(","));
        let (operator, values) = if negated {
            (Operator::DoesNotExist, Vec::new())
        } else if ends {
            (Operator::Exists, Vec::new())
        } else {
            let operator = self.operator()?;
            let values = match operator {
                Operator::In | Operator::NotIn => self.values()?,
                _ => vec![self.exact()?],
            };
            (operator, values)
        };
        Requirement::new(&key, operator, values)
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let token = self.next();
        Ok(match &token {
            Token::Word(word) if word == "in" => Operator::In,
            Token::Word(word) if word == "notin" => Operator::NotIn,
            Token::Sign("=" | "==") => Operator::Equals,
            Token::Sign("!=") => Operator::NotEquals,
            Token::Sign(">") => Operator::GreaterThan,
            Token::Sign("<") => Operator::LessThan,
            other => return Err(other.unexpected("in, notin, =, ==, !=, gt, lt")),
        })
    }

    fn exact(&mut self) -> Result<String, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Sign(",")) {
            return Ok(String::new());
        }
        match self.next() {
            Token::Word(word) => Ok(word),
            other => Err(other.unexpected("identifier")),
        }
    }

    fn values(&mut self) -> Result<Vec<String>, SelectorError> {
        let open = self.next();
        if open != Token::Sign("(") {
            return Err(SelectorError::NoParenthesis { found: open.text().to_owned() });
        }
        let mut values = Vec::new();
        let mut pending = true;
        loop {
            match self.next() {
                Token::Word(word) => {
                    values.push(word);
                    pending = false;
                    if !matches!(self.peek(), Token::Sign("," | ")")) {
                        return Err(self.peek().unexpected("',' or ')'"));
                    }
                }
                Token::Sign(",") => {
                    if pending {
                        values.push(String::new());
                    }
                    pending = true;
                }
                Token::Sign(")") => {
                    if pending {
                        values.push(String::new());
                    }
                    return Ok(values);
                }
                other => return Err(other.unexpected("',', or identifier")),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn text_selectors() {
        let labels = json!({"app": "web", "tier": "a", "n": "5"});
        let cases = [
            ("", true),
            ("app=web", true),
            ("app==web,tier=a", true),
            ("app!=web", false),
            ("missing!=x", true),
            ("app in (web, db)", true),
            ("app notin (web)", false),
            ("missing notin (x)", true),
            ("app", true),
            ("!app", false),
            ("!missing , app", true),
            ("n>4,n<6", true),
            ("n>5", false),
            ("app in ()", false),
            ("app=", false),
        ];
        for (text, expected) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap().matches(&labels), expected, "{text}");
        }
        let selector = LabelSelector::parse("z notin (b,a),a=1,!x").unwrap();
        assert_eq!(selector.to_string(), "a=1,!x,z notin (a,b)");
    }

    #[test]
    fn wrong_selectors() {
        let cases = [
            ("app=web,", "found '', expected: identifier after ','"),
            ("a b", "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt"),
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            (
                "n>x",
                "unable to parse requirement: values[0]: Invalid value: \"x\": for 'Gt', 'Lt' operators, the value must be an integer",
            ),
        ];
        for (text, error) in cases {
            assert_eq!(LabelSelector::parse(text).unwrap_err().to_string(), error, "{text}");
        }
        assert!(
            LabelSelector::parse("a=-x")
                .unwrap_err()
                .to_string()
                .contains("a valid label must be an empty string")
        );
    }

    #[test]
    fn json_selectors() {
        let selector = LabelSelector::from_json(&json!({
            "matchLabels": {"app": "web"},
            "matchExpressions": [
                {"key": "tier", "operator": "In", "values": ["b", "a"]},
                {"key": "old", "operator": "DoesNotExist"},
            ],
        }))
        .unwrap();
        assert_eq!(selector.to_string(), "app=web,!old,tier in (a,b)");
        assert!(selector.matches(&json!({"app": "web", "tier": "a"})));
        assert!(!selector.matches(&json!({"app": "web", "tier": "a", "old": "1"})));
        assert!(LabelSelector::from_json(&json!({})).unwrap().matches(&json!({})));
        assert!(!LabelSelector::from_json(&Value::Null).unwrap().matches(&json!({})));
        let wrong = json!({"matchExpressions": [{"key": "a", "operator": "Foo"}]});
        assert_eq!(
            LabelSelector::from_json(&wrong).unwrap_err().to_string(),
            "\"Foo\" is not a valid label selector operator"
        );
    }
}
