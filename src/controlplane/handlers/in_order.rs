//! A `Status` or a document of discovery as JSON text, with its fields in the order of the real server's own
//! types. People read them, and tests of other projects compare them.

use serde::ser::{Serialize, SerializeMap as _, SerializeSeq as _, Serializer};
use serde_json::Value;

const STATUS: &[&str] = &["kind", "apiVersion", "metadata", "status", "message", "reason", "details", "code"];
const DETAILS: &[&str] = &["name", "group", "kind", "uid", "causes", "retryAfterSeconds"];
const CAUSE: &[&str] = &["reason", "message", "field"];
const RESOURCES: &[&str] = &["kind", "apiVersion", "groupVersion", "resources"];
const RESOURCE: &[&str] = &[
    "name",
    "singularName",
    "namespaced",
    "group",
    "version",
    "kind",
    "verbs",
    "shortNames",
    "categories",
    "storageVersionHash",
];
const GROUP: &[&str] = &["kind", "apiVersion", "groups", "name", "versions", "preferredVersion"];

const VERSIONS: &[&str] = &["kind", "versions", "serverAddressByClientCIDRs"];

/// A value whose fields come in this order, and the others behind.
struct Ordered<'a>(&'a Value, &'static [&'static str]);

impl Serialize for Ordered<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Ordered(value, order) = *self;
        match value {
            Value::Object(fields) => {
                let first = order.iter().filter_map(|name| fields.get_key_value(*name));
                let rest = fields.iter().filter(|(name, _)| !order.contains(&name.as_str()));
                let mut map = serializer.serialize_map(Some(fields.len()))?;
                for (name, value) in first.chain(rest) {
                    let order = match name.as_str() {
                        "details" => DETAILS,
                        "causes" => CAUSE,
                        "resources" => RESOURCE,
                        "groups" => GROUP,
                        _ => &[],
                    };
                    map.serialize_entry(name, &Ordered(value, order))?;
                }
                map.end()
            }
            Value::Array(items) => {
                let mut list = serializer.serialize_seq(Some(items.len()))?;
                for item in items {
                    list.serialize_element(&Ordered(item, order))?;
                }
                list.end()
            }
            other => other.serialize(serializer),
        }
    }
}

/// The text of a `Status` or a document of discovery, on one line or for people; `None` for any other
/// document.
pub(super) fn text(document: &Value, pretty: bool) -> Option<String> {
    let order = match document["kind"].as_str()? {
        "Status" => STATUS,
        "APIResourceList" => RESOURCES,
        "APIGroupList" | "APIGroup" => GROUP,
        "APIVersions" => VERSIONS,
        _ => return None,
    };
    // The resources of the core group come without a version.
    if !matches!(document["apiVersion"].as_str(), None | Some("v1")) {
        return None;
    }
    let ordered = Ordered(document, order);
    let text = if pretty { serde_json::to_string_pretty(&ordered) } else { serde_json::to_string(&ordered) };
    text.ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_status_has_the_order_of_the_real_server() {
        let status = json!({"apiVersion": "v1", "code": 422, "details": {"causes": [
            {"field": "spec.a", "message": "m", "reason": "FieldValueInvalid"}], "group": "g", "kind": "K",
            "name": "n"}, "kind": "Status", "message": "m", "metadata": {}, "reason": "Invalid",
            "status": "Failure"});
        let expected = r#"{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"m","reason":"Invalid","details":{"name":"n","group":"g","kind":"K","causes":[{"reason":"FieldValueInvalid","message":"m","field":"spec.a"}]},"code":422}"#;
        assert_eq!(text(&status, false).as_deref(), Some(expected));
        let pretty = text(&status, true).unwrap();
        assert!(pretty.starts_with("{\n  \"kind\": \"Status\",\n  \"apiVersion\": \"v1\","), "{pretty}");
        assert_eq!(serde_json::from_str::<Value>(&pretty).unwrap(), status);
        assert_eq!(text(&json!({"kind": "Pod", "apiVersion": "v1"}), false), None);
        assert_eq!(text(&json!({"kind": "Status", "apiVersion": "example.com/v1"}), false), None);
    }

    #[test]
    fn discovery_has_the_order_of_the_real_server() {
        let list = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"categories": ["all"],
            "kind": "Pod", "name": "pods", "namespaced": true, "shortNames": ["po"], "singularName": "pod",
            "storageVersionHash": "x", "verbs": ["get"]}]});
        let expected = r#"{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"pods","singularName":"pod","namespaced":true,"kind":"Pod","verbs":["get"],"shortNames":["po"],"categories":["all"],"storageVersionHash":"x"}]}"#;
        assert_eq!(text(&list, false).as_deref(), Some(expected));
        let versions = json!([{"groupVersion": "apps/v1", "version": "v1"}]);
        let groups = json!({"apiVersion": "v1", "groups": [{"name": "apps", "preferredVersion": versions[0],
            "versions": versions}], "kind": "APIGroupList"});
        let expected = r#"{"kind":"APIGroupList","apiVersion":"v1","groups":[{"name":"apps","versions":[{"groupVersion":"apps/v1","version":"v1"}],"preferredVersion":{"groupVersion":"apps/v1","version":"v1"}}]}"#;
        assert_eq!(text(&groups, false).as_deref(), Some(expected));
    }
}
