//! Where in a text the API server's refusals belong: fields of errors become lines. Pure.

use kube::core::response::StatusDetails;
use opdev_object::yaml::Node;

/// A line of a refusal: where in the text, and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    /// Counted from 1; 0 where unknown.
    pub(crate) line: u32,
    /// Counted from 1; 0 where unknown.
    pub(crate) column: u32,
    pub(crate) message: String,
}

/// Begins what strict decoding says.
const STRICT: &str = "strict decoding error: ";

/// Refusals in an answer, one for each field it names.
pub(crate) fn refusals(message: &str, details: Option<&StatusDetails>, document: &Node) -> Vec<Refusal> {
    let causes = details.into_iter().flat_map(|details| &details.causes);
    let named: Vec<Refusal> = causes
        .filter(|cause| !cause.field.is_empty() && cause.field != "<nil>")
        // That one is about the whole object; the fields are in its text.
        .filter(|cause| !cause.message.contains(STRICT))
        .map(|cause| {
            let (line, column) = place(document, &cause.field);
            Refusal { line, column, message: format!("{}: {}", cause.field, cause.message) }
        })
        .collect();
    if !named.is_empty() {
        return named;
    }
    // Strict decoding names its fields in the text only: unknown field "spec.foo".
    let mut found: Vec<Refusal> = Vec::new();
    for part in message.split(", ") {
        let Some((_, rest)) = part.split_once("field \"") else { continue };
        let Some((field, _)) = rest.split_once('"') else { continue };
        let (line, column) = place(document, field);
        let message = part.rsplit_once(STRICT).map_or(part, |(_, rest)| rest);
        found.push(Refusal { line, column, message: message.to_owned() });
    }
    if found.is_empty() {
        found.push(Refusal { line: 0, column: 0, message: message.to_owned() });
    }
    found
}

/// The place of a field such as `spec.containers[0].image`, or of what is there of the way to it.
pub(crate) fn place(document: &Node, field: &str) -> (u32, u32) {
    let mut at = document;
    let mut found = (0, 0);
    let separated = field.replace('[', ".[").replace(']', "");
    for part in separated.split('.').filter(|part| !part.is_empty()) {
        let index = part.strip_prefix('[').map(|text| text.trim_matches('"'));
        let next = match index {
            Some(text) => match text.parse::<usize>() {
                Ok(index) => at.items().get(index).map(|item| ((item.line, item.column), item)),
                Err(_) => at.entry(text).map(|(key, value)| ((key.line, key.column), value)),
            },
            None => at.entry(part).map(|(key, value)| ((key.line, key.column), value)),
        };
        let Some((place, node)) = next else { break };
        (found, at) = (place, node);
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use opdev_object::yaml;
    use serde_json::json;

    const TEXT: &str = "kind: Web\nspec:\n  size: -1\n  pods:\n  - name: a\n  - name: b\n    image: \"\"\n";

    #[test]
    fn fields_have_places_and_missing_ones_that_of_their_parent() {
        let node = yaml::parse(TEXT).unwrap();
        for (field, wanted) in [
            ("spec.size", (3, 3)),
            (".spec.pods[1].image", (7, 5)),
            ("spec.pods[1].tag", (6, 5)),
            ("spec.tier", (2, 1)),
            ("nope", (0, 0)),
        ] {
            assert_eq!(place(&node, field), wanted, "{field}");
        }
    }

    #[test]
    fn each_cause_is_a_line_and_strict_decoding_is_read_from_its_text() {
        let node = yaml::parse(TEXT).unwrap();
        let details = json!({"causes": [
            {"reason": "FieldValueInvalid", "field": "spec.size", "message": "Invalid value: -1"}]});
        let details: StatusDetails = serde_json::from_value(details).unwrap();
        let wanted = Refusal { line: 3, column: 3, message: "spec.size: Invalid value: -1".to_owned() };
        assert_eq!(refusals("Web \"a\" is invalid: …", Some(&details), &node), [wanted]);
        let strict = "strict decoding error: unknown field \"spec.sizes\", unknown field \"spec.pods[0].x\"";
        let found = refusals(strict, None, &node);
        assert_eq!(found.iter().map(|f| f.line).collect::<Vec<_>>(), [2, 5]);
        assert_eq!(found[0].message, "unknown field \"spec.sizes\"");
        let details =
            json!({"causes": [{"reason": "FieldValueInvalid", "field": "patch", "message": strict}]});
        let details: StatusDetails = serde_json::from_value(details).unwrap();
        assert_eq!(refusals(strict, Some(&details), &node), found);
        let other = refusals("admission webhook denied the request", None, &node);
        assert_eq!((other[0].line, other.len()), (0, 1));
    }
}
