//! JSONPath as printer columns use it: fields, quoted fields, indexes, slices, wildcards, unions, recursive
//! descent and filters, in client-go's dialect. A path that leads nowhere finds nothing; it is never an
//! error.

use serde_json::Value;

/// A parsed path.
#[derive(Clone, Debug, PartialEq)]
pub struct JsonPath {
    steps: Vec<PathStep>,
}

#[derive(Clone, Debug, PartialEq)]
enum PathStep {
    Field(String),
    Wildcard,
    Descend,
    Slice(Option<i64>, Option<i64>, Option<i64>),
    Union(Vec<PathStep>),
    Filter(Operand, Option<(Comparison, Operand)>),
}

#[derive(Clone, Debug, PartialEq)]
enum Operand {
    Path(JsonPath),
    Literal(Value),
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Comparison {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

const OPERATORS: [(&str, Comparison); 6] = [
    ("==", Comparison::Equal),
    ("!=", Comparison::NotEqual),
    ("<=", Comparison::LessOrEqual),
    (">=", Comparison::GreaterOrEqual),
    ("<", Comparison::Less),
    (">", Comparison::Greater),
];

impl JsonPath {
    /// Parses a path such as `.status.conditions[?(@.type=="Ready")].status`; `None` where it is malformed.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        let text = text.strip_prefix('{').and_then(|text| text.strip_suffix('}')).unwrap_or(text);
        let mut rest = text.strip_prefix(['$', '@']).unwrap_or(text);
        let mut steps = Vec::new();
        while !rest.is_empty() {
            rest = step(rest, &mut steps)?;
        }
        Some(JsonPath { steps })
    }

    /// Everything the path leads to, in document order.
    pub fn find<'a>(&self, root: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![root];
        for step in &self.steps {
            let mut next = Vec::new();
            for value in found {
                step.walk(value, &mut next);
            }
            found = next;
        }
        found
    }
}

/// Parses one step off the front.
fn step<'a>(text: &'a str, steps: &mut Vec<PathStep>) -> Option<&'a str> {
    if let Some(rest) = text.strip_prefix("..") {
        steps.push(PathStep::Descend);
        return if rest.starts_with('[') || rest.is_empty() { Some(rest) } else { field(rest, steps) };
    }
    if let Some(rest) = text.strip_prefix('.') {
        return if rest.starts_with('[') || rest.is_empty() { Some(rest) } else { field(rest, steps) };
    }
    if let Some(rest) = text.strip_prefix('[') {
        let end = closing(rest)?;
        steps.push(bracket(rest[..end].trim())?);
        return Some(&rest[end + 1..]);
    }
    field(text, steps)
}

fn field<'a>(text: &'a str, steps: &mut Vec<PathStep>) -> Option<&'a str> {
    let mut name = String::new();
    let mut letters = text.char_indices();
    let mut end = text.len();
    while let Some((at, letter)) = letters.next() {
        match letter {
            '\\' => name.push(letters.next()?.1),
            '.' | '[' => {
                end = at;
                break;
            }
            ' ' | ']' | ')' | '(' | '{' | '}' => return None,
            _ => name.push(letter),
        }
    }
    if name.is_empty() {
        return None;
    }
    steps.push(if name == "*" { PathStep::Wildcard } else { PathStep::Field(name) });
    Some(&text[end..])
}

/// Where the bracket that is open at the start closes.
fn closing(text: &str) -> Option<usize> {
    let mut depth = 0;
    let mut quote = None;
    let mut escaped = false;
    for (at, letter) in text.char_indices() {
        match (quote, letter) {
            _ if escaped => escaped = false,
            (_, '\\') => escaped = true,
            (Some(open), _) => {
                if letter == open {
                    quote = None;
                }
            }
            (None, '\'' | '"') => quote = Some(letter),
            (None, '[') => depth += 1,
            (None, ']') if depth == 0 => return Some(at),
            (None, ']') => depth -= 1,
            (None, _) => {}
        }
    }
    None
}

/// The step that stands between brackets.
fn bracket(text: &str) -> Option<PathStep> {
    if let Some(filter) = text.strip_prefix("?(") {
        return filter_step(filter.strip_suffix(')')?.trim());
    }
    let parts = outside_quotes(text, ',');
    if parts.len() > 1 {
        return Some(PathStep::Union(parts.iter().map(|part| bracket(part.trim())).collect::<Option<_>>()?));
    }
    if text == "*" {
        return Some(PathStep::Wildcard);
    }
    if let Some(name) = unquoted(text) {
        return Some(PathStep::Field(name));
    }
    let number = |text: &str| match text.trim() {
        "" => Some(None),
        digits => digits.parse::<i64>().ok().map(Some),
    };
    match text.split(':').collect::<Vec<_>>().as_slice() {
        [index] => {
            let index: i64 = index.trim().parse().ok()?;
            // One element: from it to the next, or to the end for the last one.
            let end = if index == -1 { None } else { Some(index + 1) };
            Some(PathStep::Slice(Some(index), end, None))
        }
        [from, to] => Some(PathStep::Slice(number(from)?, number(to)?, None)),
        [from, to, by] => Some(PathStep::Slice(number(from)?, number(to)?, number(by)?)),
        _ => None,
    }
}

fn filter_step(text: &str) -> Option<PathStep> {
    for at in positions_outside_quotes(text) {
        if let Some((sign, operator)) = OPERATORS.iter().find(|(sign, _)| text[at..].starts_with(sign)) {
            let right = operand(text[at + sign.len()..].trim())?;
            return Some(PathStep::Filter(operand(text[..at].trim())?, Some((*operator, right))));
        }
    }
    Some(PathStep::Filter(operand(text)?, None))
}

fn operand(text: &str) -> Option<Operand> {
    if let Some(name) = unquoted(text) {
        return Some(Operand::Literal(Value::String(name)));
    }
    if text.starts_with(['@', '.', '$']) {
        return Some(Operand::Path(JsonPath::parse(text)?));
    }
    serde_json::from_str(text).ok().map(Operand::Literal)
}

/// The text between quotes, escapes resolved; `None` where there are no quotes around it.
fn unquoted(text: &str) -> Option<String> {
    let quote = text.chars().next().filter(|c| matches!(c, '\'' | '"'))?;
    let inner = text[1..].strip_suffix(quote)?;
    let mut out = String::new();
    let mut letters = inner.chars();
    while let Some(letter) = letters.next() {
        out.push(if letter == '\\' { letters.next()? } else { letter });
    }
    Some(out)
}

fn positions_outside_quotes(text: &str) -> Vec<usize> {
    let mut quote = None;
    let mut positions = Vec::new();
    for (at, letter) in text.char_indices() {
        match quote {
            Some(open) if letter == open => quote = None,
            Some(_) => {}
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None => positions.push(at),
        }
    }
    positions
}

fn outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut start = 0;
    for at in positions_outside_quotes(text) {
        if text[at..].starts_with(separator) {
            parts.push(&text[start..at]);
            start = at + separator.len_utf8();
        }
    }
    parts.push(&text[start..]);
    parts
}

impl PathStep {
    fn walk<'a>(&self, value: &'a Value, found: &mut Vec<&'a Value>) {
        match self {
            PathStep::Field(name) => found.extend(value.get(name.as_str())),
            PathStep::Wildcard => found.extend(children(value)),
            PathStep::Descend => descend(value, found),
            PathStep::Slice(from, to, by) => {
                if let Value::Array(items) = value {
                    slice(items, *from, *to, *by, found);
                }
            }
            PathStep::Union(steps) => steps.iter().for_each(|step| step.walk(value, found)),
            PathStep::Filter(left, comparison) => {
                if let Value::Array(items) = value {
                    found.extend(items.iter().filter(|item| holds(item, left, comparison.as_ref())));
                }
            }
        }
    }
}

fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(fields) => fields.values().collect(),
        _ => Vec::new(),
    }
}

fn descend<'a>(value: &'a Value, found: &mut Vec<&'a Value>) {
    found.push(value);
    for child in children(value) {
        descend(child, found);
    }
}

fn slice<'a>(
    items: &'a [Value],
    from: Option<i64>,
    to: Option<i64>,
    by: Option<i64>,
    found: &mut Vec<&'a Value>,
) {
    let length = i64::try_from(items.len()).unwrap_or(i64::MAX);
    let from_end = |at: i64| if at < 0 { at + length } else { at };
    let from = from_end(from.unwrap_or(0)).max(0);
    let to = from_end(to.unwrap_or(length)).min(length);
    let step = usize::try_from(by.unwrap_or(1).max(1)).unwrap_or(1);
    if from < to {
        let range = usize::try_from(from).unwrap_or(0)..usize::try_from(to).unwrap_or(0);
        found.extend(items[range].iter().step_by(step));
    }
}

fn holds(item: &Value, left: &Operand, comparison: Option<&(Comparison, Operand)>) -> bool {
    let value = |operand: &Operand| match operand {
        Operand::Literal(value) => Some(value.clone()),
        Operand::Path(path) => path.find(item).first().map(|value| (*value).clone()),
    };
    let Some(left) = value(left) else { return false };
    let Some((operator, right)) = comparison else { return true };
    let Some(right) = value(right) else { return false };
    let order = match (&left, &right) {
        (Value::Number(a), Value::Number(b)) => {
            a.as_f64().and_then(|a| b.as_f64().and_then(|b| a.partial_cmp(&b)))
        }
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        (a, b) if a == b => Some(std::cmp::Ordering::Equal),
        _ => None,
    };
    match (operator, order) {
        (Comparison::Equal, order) => order.is_some_and(std::cmp::Ordering::is_eq),
        (Comparison::NotEqual, order) => !order.is_some_and(std::cmp::Ordering::is_eq),
        (Comparison::Less, Some(order)) => order.is_lt(),
        (Comparison::LessOrEqual, Some(order)) => order.is_le(),
        (Comparison::Greater, Some(order)) => order.is_gt(),
        (Comparison::GreaterOrEqual, Some(order)) => order.is_ge(),
        (_, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn find(path: &str) -> Value {
        let object = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "web", "a'b": 1}},
            "spec": {"replicas": 3, "items": [{"n": 1}, {"n": 2}, {"n": 3}]},
            "status": {"conditions": [
                {"type": "Ready", "status": "True", "weight": 2},
                {"type": "Synced", "status": "False", "weight": 5},
            ]},
        });
        JsonPath::parse(path).unwrap().find(&object).into_iter().cloned().collect()
    }

    #[test]
    fn paths_find_what_client_go_finds() {
        assert_eq!(find(".spec.replicas"), json!([3]));
        assert_eq!(find("{.spec.replicas}"), json!([3]));
        assert_eq!(find(".spec.none.deeper"), json!([]));
        assert_eq!(find(r".metadata.labels.app\.kubernetes\.io/name"), json!(["web"]));
        assert_eq!(find(".metadata.labels['app.kubernetes.io/name']"), json!(["web"]));
        assert_eq!(find(r".metadata.labels['app\.kubernetes\.io/name']"), json!(["web"]));
        assert_eq!(find(r".metadata.labels['a\'b']"), json!([1]));
        assert_eq!(find(r#".status.conditions[?(@.type=="Ready")].status"#), json!(["True"]));
        assert_eq!(find(".status.conditions[?(@.type == 'Synced')].status"), json!(["False"]));
        assert_eq!(find(".status.conditions[?(@.weight>3)].type"), json!(["Synced"]));
        assert_eq!(find(".status.conditions[?(@.none)].type"), json!([]));
        assert_eq!(find(".spec.items[*].n"), json!([1, 2, 3]));
        assert_eq!(find(".spec.items[0].n"), json!([1]));
        assert_eq!(find(".spec.items[-1].n"), json!([3]));
        assert_eq!(find(".spec.items[-1:].n"), json!([3]));
        assert_eq!(find(".spec.items[0:2].n"), json!([1, 2]));
        assert_eq!(find(".spec.items[0,2].n"), json!([1, 3]));
        assert_eq!(find("..n"), json!([1, 2, 3]));
        assert_eq!(find(".spec.items[9].n"), json!([]));
    }

    #[test]
    fn malformed_paths_are_no_paths() {
        for path in [".spec[", ".spec[?(@.a=='b']", ".a b", ".spec[x]"] {
            assert_eq!(JsonPath::parse(path), None, "{path}");
        }
    }
}
