//! Manifests as kustomize reads them: go-yaml v3 gives `yes` and `on` as text, dates as times, and refuses
//! keys that are no text. `opdev_object::yaml` reads YAML 1.1, so what a plain scalar was is looked up in the
//! text.

use opdev_object::yaml::{self, Kind, Node, Scalar};
use serde_json::{Map, Number, Value};

/// One document of a manifest.
pub(crate) struct Document {
    pub(crate) value: Value,
    /// Paths of fields with nothing behind the colon. A strategic merge drops them; `null` that is written
    /// out stays.
    pub(crate) empty: Vec<Vec<String>>,
}

/// Why a text cannot be read, and its line.
pub(crate) struct Unreadable {
    pub(crate) line: u32,
    pub(crate) message: String,
}

/// The documents of a text.
pub(crate) fn documents(text: &str) -> Result<Vec<Document>, Unreadable> {
    let nodes =
        yaml::documents(text).map_err(|error| Unreadable { line: error.line, message: error.message })?;
    let lines: Vec<&str> = text.lines().collect();
    nodes
        .iter()
        .map(|node| {
            let mut reader = Reader { lines: &lines, path: Vec::new(), empty: Vec::new() };
            let value = reader.value(node)?;
            Ok(Document { value, empty: reader.empty })
        })
        .collect()
}

struct Reader<'t> {
    lines: &'t [&'t str],
    path: Vec<String>,
    empty: Vec<Vec<String>>,
}

impl Reader<'_> {
    /// The text from a node's first character to the end of its line.
    fn rest(&self, node: &Node) -> &str {
        let line = (node.line as usize)
            .checked_sub(1)
            .and_then(|at| self.lines.get(at))
            .copied()
            .unwrap_or_default();
        let skipped = (node.column as usize).saturating_sub(1);
        let rest = line.char_indices().nth(skipped).map_or("", |(at, _)| &line[at..]);
        // An anchor stands before its value.
        match rest.strip_prefix('&') {
            Some(anchored) => anchored.split_once(' ').map_or("", |(_, value)| value.trim_start()),
            None => rest,
        }
    }

    /// The word of a boolean that go-yaml v3 takes for text.
    fn word(&self, node: &Node) -> Option<String> {
        let rest = self.rest(node);
        let word: String = rest.chars().take_while(char::is_ascii_alphabetic).collect();
        let is_text = !word.is_empty() && !matches!(word.to_ascii_lowercase().as_str(), "true" | "false");
        is_text.then_some(word)
    }

    fn value(&mut self, node: &Node) -> Result<Value, Unreadable> {
        Ok(match &node.kind {
            Kind::Null => {
                let rest = self.rest(node);
                if !(rest.starts_with("null")
                    || rest.starts_with("Null")
                    || rest.starts_with("NULL")
                    || rest.starts_with('~'))
                {
                    self.empty.push(self.path.clone());
                }
                Value::Null
            }
            Kind::Bool(value) => match self.word(node) {
                Some(word) => Value::String(word),
                None => Value::Bool(*value),
            },
            Kind::Int(value) => Value::from(*value),
            Kind::Uint(value) => Value::from(*value),
            Kind::Float(value) if value.fract() == 0.0 && value.abs() < 9.2e18 => Value::from(*value as i64),
            Kind::Float(value) => match Number::from_f64(*value) {
                Some(number) => Value::Number(number),
                None => {
                    return Err(unreadable(
                        node,
                        "a number that is infinite, or none, has no place in an object",
                    ));
                }
            },
            Kind::String(text) => Value::String(self.string(node, text)),
            Kind::Sequence(items) => {
                // An empty value in a list stays, for no strategic merge looks into it.
                let before = self.empty.len();
                let items = items.iter().map(|item| self.value(item)).collect::<Result<_, _>>()?;
                self.empty.truncate(before);
                Value::Array(items)
            }
            Kind::Mapping(pairs) => {
                let mut map = Map::new();
                for (key, value) in pairs {
                    let name = match &key.kind {
                        Kind::String(text) => text.clone(),
                        Kind::Bool(_) if self.word(key).is_some() => self.word(key).unwrap_or_default(),
                        Kind::Null
                        | Kind::Bool(_)
                        | Kind::Int(_)
                        | Kind::Uint(_)
                        | Kind::Float(_)
                        | Kind::Sequence(_)
                        | Kind::Mapping(_) => {
                            return Err(unreadable(key, "the key is no text; put it in quotes"));
                        }
                    };
                    self.path.push(name.clone());
                    let value = self.value(value)?;
                    self.path.pop();
                    map.insert(name, value);
                }
                Value::Object(map)
            }
        })
    }

    /// A plain date or time becomes the time that Go prints.
    fn string(&self, node: &Node, text: &str) -> String {
        let is_date =
            text.len() >= 8 && text.as_bytes()[4..5] == *b"-" && yaml::resolve(text) == Scalar::Timestamp;
        if !is_date || !self.rest(node).starts_with(|first: char| first.is_ascii_digit()) {
            return text.to_owned();
        }
        time(text).unwrap_or_else(|| text.to_owned())
    }
}

fn unreadable(node: &Node, message: &str) -> Unreadable {
    Unreadable { line: node.line, message: message.to_owned() }
}

/// A YAML time as RFC 3339 with the fraction that Go prints.
fn time(text: &str) -> Option<String> {
    let (date, clock) = match text.find(['T', 't', ' ']) {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, ""),
    };
    let mut parts = date.splitn(3, '-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let (clock, zone) = match clock.find(['Z', '+', '-']) {
        Some(at) => clock.split_at(at),
        None => (clock, "Z"),
    };
    let mut times = clock.splitn(3, ':').map(|part| part.trim().replace(',', "."));
    let mut next = || times.next().unwrap_or_default();
    let (hour, minute, second) = (next(), next(), next());
    let (second, fraction) = second.split_once('.').unwrap_or((&second, ""));
    let fraction = fraction.trim_end_matches('0');
    let point = if fraction.is_empty() { "" } else { "." };
    Some(format!("{year}-{month:0>2}-{day:0>2}T{hour:0>2}:{minute:0>2}:{second:0>2}{point}{fraction}{zone}"))
}

/// A scalar as the text that stands in a YAML node.
pub(crate) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Number(number) if number.is_f64() => {
            yaml::number::format_g(number.as_f64().unwrap_or_default())
        }
        Value::Number(number) => number.to_string(),
        Value::Array(_) | Value::Object(_) => String::new(),
    }
}

/// The value that go-yaml v3 gives a plain scalar without a tag.
pub(crate) fn untagged(text: &str) -> Value {
    match yaml::resolve(text) {
        Scalar::Null => Value::Null,
        Scalar::Bool(value) if matches!(text.to_ascii_lowercase().as_str(), "true" | "false") => {
            Value::Bool(value)
        }
        Scalar::Int(value) => Value::from(value),
        Scalar::Uint(value) => Value::from(value),
        Scalar::Float(value) => Number::from_f64(value).map_or_else(|| Value::from(text), Value::Number),
        Scalar::Bool(_) | Scalar::Timestamp | Scalar::String => Value::from(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn plain_scalars_are_what_go_yaml_v3_makes_of_them() {
        let text = "a: yes\nb: 2020-01-01\nc: 017\nd: true\ne: 'no'\nf: y\non: off\ng: [n, no]\nh: &x yes\ni: *x\n\
                    j: 2001-12-14t21:59:43.10-05:00\nk: '2020-01-01'\nl:\nm: null\nn: {o: }\n";
        let read = documents(text).ok().unwrap().remove(0);
        assert_eq!(
            read.value,
            json!({"a": "yes", "b": "2020-01-01T00:00:00Z", "c": 15, "d": true, "e": "no", "f": "y", "on": "off",
                   "g": ["n", "no"], "h": "yes", "i": "yes", "j": "2001-12-14T21:59:43.1-05:00", "k": "2020-01-01",
                   "l": null, "m": null, "n": {"o": null}})
        );
        assert_eq!(read.empty, [vec!["l".to_owned()], vec!["n".to_owned(), "o".to_owned()]]);
        assert_eq!(documents("a:\n  1: x\n").err().unwrap().line, 2);
    }
}
