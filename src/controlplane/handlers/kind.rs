//! Checks that a body is of the path's kind and version, in the words of the real server: of a create or an
//! update, of what a patch made, of an applied configuration. Never looks further than `apiVersion` and
//! `kind`.

use super::body::{self, Read, Unread};
use http::HeaderMap;
use opdev_apimachinery::error::{Cause, Status};
use opdev_apimachinery::protobuf;
use opdev_apimachinery::resource::{Resource, metadata};
use opdev_object::apply::compact;
use opdev_object::facts::facts;
use opdev_object::go::kind::kind as go_kind;
use opdev_object::meta::{Gvk, group_version};
use serde_json::Value;

/// How much of a body is shown where nothing of it could be read, in bytes.
const SHOWN: usize = 30;

/// The error of the kind of a body or of a patched object.
enum Wrong {
    /// Kind or version are no texts, or a custom resource has no kind.
    Unreadable(String),
    /// A custom resource without a version.
    Unversioned,
    /// A built-in kind of another version, or one that nobody knows.
    Unknown(String),
    /// Another kind or version of a custom resource.
    Differs,
}

/// The text of a field; `None` where it is missing or empty.
fn named<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    object[field].as_str().filter(|text| !text.is_empty())
}

fn gvk(object: &Value) -> Gvk {
    Gvk::from_api_version(
        named(object, "apiVersion").unwrap_or_default(),
        named(object, "kind").unwrap_or_default(),
    )
}

/// The package that holds a group's own types.
fn package(group: &str) -> &str {
    match group.split('.').next().unwrap_or_default() {
        "" => "core",
        first => first,
    }
}

fn unreadable(object: &Value) -> Option<String> {
    const TRIED: &str = "couldn't get version/kind; json parse error: json: cannot unmarshal";
    if !object.is_object() {
        return Some(format!(
            "{TRIED} {} into Go value of type struct {{ APIVersion string \"json:\\\"apiVersion,omitempty\\\"\"; \
             Kind string \"json:\\\"kind,omitempty\\\"\" }}",
            go_kind(object)
        ));
    }
    ["apiVersion", "kind"].into_iter().find_map(|field| {
        let value = &object[field];
        let fits = value.is_null() || value.is_string();
        (!fits).then(|| format!("{TRIED} {} into Go struct field .{field} of type string", go_kind(value)))
    })
}

/// Looks at a whole object; `text` is how it is shown.
fn examine(resource: &Resource, object: &Value, text: &str) -> Result<(), Wrong> {
    if let Some(why) = unreadable(object) {
        return Err(Wrong::Unreadable(why));
    }
    let expected = resource.api_version();
    let (version, kind) = (named(object, "apiVersion"), named(object, "kind"));
    if resource.custom.is_some() {
        return match (version, kind) {
            (_, None) => Err(Wrong::Unreadable(format!("Object 'Kind' is missing in '{text}'"))),
            (None, _) => Err(Wrong::Unversioned),
            (Some(version), Some(kind)) if version == expected && kind == resource.kind => Ok(()),
            _ => Err(Wrong::Differs),
        };
    }
    let (version, kind) = (version.unwrap_or(expected), kind.unwrap_or(&resource.kind));
    let own = Gvk::from_api_version(version, kind);
    if !protobuf::knows(version, kind) {
        return Err(Wrong::Unknown(format!(
            "no kind {kind:?} is registered for version {version:?} in scheme \"pkg/runtime/scheme.go:111\""
        )));
    }
    if kind != resource.kind {
        return Err(Wrong::Unknown(format!(
            "converting ({}.{kind}) to ({}.{}): unknown conversion",
            own.version,
            package(&resource.group),
            resource.kind
        )));
    }
    if version == expected { Ok(()) } else { Err(Wrong::Differs) }
}

/// The 422 of a custom resource of another kind or version.
fn differs(resource: &Resource, object: &Value) -> Status {
    let own = gvk(object);
    let expected = resource.api_version();
    let mut causes = Vec::new();
    if own.kind != resource.kind {
        causes.push(Cause::invalid("kind", &object["kind"], &format!("must be {}", resource.kind)));
    }
    if object["apiVersion"] != expected {
        causes.push(Cause::invalid("apiVersion", &object["apiVersion"], &format!("must be {expected}")));
    }
    Status::invalid(&own.group, &own.kind, metadata::text(object, "name"), causes)
}

fn other_version(resource: &Resource, object: &Value) -> Status {
    Status::bad_request(format!(
        "the API version in the data ({}) does not match the expected API version ({})",
        named(object, "apiVersion").unwrap_or_default(),
        resource.api_version()
    ))
}

/// A body as the real server shows it where it could not make out what it is.
fn shown(body: &[u8]) -> String {
    let more = if body.len() > SHOWN { " ..." } else { "" };
    let head = &body[..body.len().min(SHOWN)];
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(head)),
        Some(_) => format!("{}{more}", head.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Returns true if an object says that it is of the resource's kind and version, as nearly all do.
fn is_of(resource: &Resource, object: &Value) -> bool {
    object["kind"] == resource.kind.as_str() && object["apiVersion"] == resource.api_version()
}

/// The refusal of a body that is no object of any kind, where one of this kind belongs.
fn unrecognized(kind: &str, why: &str, body: &[u8]) -> Status {
    Status::bad_request(format!(
        "the object provided is unrecognized (must be of type {kind}): {why} ({})",
        shown(body)
    ))
}

/// Reads an object where one of this kind belongs, and notices whether it names anything twice.
pub(crate) fn read(headers: &HeaderMap, body: &[u8], kind: &str) -> Result<Read, Status> {
    body::read(headers, body).map_err(|unread| match unread {
        Unread::Undecoded(why) => unrecognized(kind, &why, body),
        Unread::Refused(status) => status,
    })
}

/// Reads the object of a subresource, whose kind and version nobody compares.
pub(crate) fn read_below(headers: &HeaderMap, body: &[u8], kind: &str) -> Result<Value, Status> {
    let object = read(headers, body, kind)?.value;
    match unreadable(&object) {
        Some(why) => Err(unrecognized(kind, &why, body)),
        None => Ok(object),
    }
}

/// Reads the options of a delete. Their errors do not say what was expected.
pub(crate) fn read_options(headers: &HeaderMap, body: &[u8]) -> Result<Value, Status> {
    let object = body::read(headers, body)?.value;
    match unreadable(&object) {
        Some(why) => Err(Status::bad_request(why)),
        None => Ok(object),
    }
}

/// Refuses a body that is of another kind or version than the path's.
pub(crate) fn of_body(resource: &Resource, object: &Value, body: &[u8]) -> Result<(), Status> {
    if is_of(resource, object) {
        return Ok(());
    }
    let text = String::from_utf8_lossy(body);
    let Err(wrong) = examine(resource, object, &text) else { return Ok(()) };
    let own = gvk(object);
    Err(match wrong {
        Wrong::Unreadable(why) => unrecognized(&resource.kind, &why, body),
        Wrong::Unknown(why) => Status::bad_request(format!(
            "{} in version {:?} cannot be handled as a {}: {why}",
            own.kind, own.version, resource.kind
        )),
        Wrong::Differs if resource.custom.is_some() && object["apiVersion"] == resource.api_version() => {
            differs(resource, object)
        }
        Wrong::Unversioned | Wrong::Differs => other_version(resource, object),
    })
}

/// Refuses what a patch made where it is of another kind or version than the path's.
pub(crate) fn of_patched(resource: &Resource, object: &Value) -> Result<(), Status> {
    if is_of(resource, object) {
        return Ok(());
    }
    let text = compact::expanded(object).to_string();
    let patch = |why: &str| {
        let value = Value::from(text.as_str());
        Status::invalid("", "", "", vec![Cause::invalid("patch", &value, why)])
    };
    let Err(wrong) = examine(resource, object, &text) else { return Ok(()) };
    Err(match wrong {
        Wrong::Unreadable(_) if !object.is_object() => {
            Status::new(422, "Invalid", "the server rejected our request due to an error in our request")
        }
        Wrong::Unreadable(why) | Wrong::Unknown(why) => patch(&why),
        Wrong::Unversioned if object.get("apiVersion").is_some_and(Value::is_null) => {
            patch(".apiVersion accessor error: <nil> is of the type <nil>, expected string")
        }
        Wrong::Unversioned => {
            let why = "Object 'apiVersion' is missing in 'object has no apiVersion field'";
            Status {
                causes: vec![Cause::text("", "", why.to_owned())],
                ..Status::new(500, "InternalError", format!("Internal error occurred: {why}"))
            }
        }
        Wrong::Differs if resource.custom.is_some() => differs(resource, object),
        Wrong::Differs => other_version(resource, object),
    })
}

/// Refuses a configuration of another kind; whether its version fits is for the merge to say.
pub(crate) fn of_applied(resource: &Resource, applied: &Value) -> Result<(), Status> {
    if applied["kind"] == resource.kind.as_str() && applied["apiVersion"] == resource.api_version() {
        return Ok(());
    }
    let own = gvk(applied);
    let known = match &resource.custom {
        Some(_) => own.group == resource.group,
        None => facts().definition_name(&own).is_some(),
    };
    if own.kind == resource.kind && known {
        return Ok(());
    }
    Err(other_type(applied))
}

/// Refuses an applied Scale of another kind.
pub(crate) fn of_applied_scale(applied: &Value) -> Result<(), Status> {
    let fits = applied["apiVersion"] == "autoscaling/v1" && applied["kind"] == "Scale";
    if fits { Ok(()) } else { Err(other_type(applied)) }
}

fn other_type(applied: &Value) -> Status {
    let text = |field: &str| named(applied, field).unwrap_or_default();
    Status::bad_request(format!(
        "invalid object type: {}, Kind={}",
        group_version(text("apiVersion")),
        text("kind")
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn resource(plural: &str) -> Resource {
        let all = opdev_registry::builtin_resources();
        all.into_iter().find(|found| found.plural == plural).unwrap()
    }

    /// A real server (1.36) answers a POST of each with these texts.
    #[test]
    fn bodies_of_another_kind_are_refused_in_the_words_of_a_real_server() {
        let told = |object: Value| {
            let body = object.to_string();
            of_body(&resource("configmaps"), &object, body.as_bytes()).unwrap_err().message
        };
        assert_eq!(
            told(json!({"apiVersion": 3, "kind": "ConfigMap"})),
            "the object provided is unrecognized (must be of type ConfigMap): couldn't get version/kind; json parse \
             error: json: cannot unmarshal number into Go struct field .apiVersion of type string \
             ({\"apiVersion\":3,\"kind\":\"Config ...)"
        );
        assert_eq!(
            told(json!({"apiVersion": "v1", "kind": "Pod"})),
            "Pod in version \"v1\" cannot be handled as a ConfigMap: converting (v1.Pod) to (core.ConfigMap): \
             unknown conversion"
        );
        // The real server distinguishes kinds that it knows, served or not, from kinds that it does not know.
        assert_eq!(
            told(json!({"apiVersion": "apps/v1beta1", "kind": "Deployment"})),
            "Deployment in version \"v1beta1\" cannot be handled as a ConfigMap: converting (v1beta1.Deployment) to \
             (core.ConfigMap): unknown conversion"
        );
        assert_eq!(
            told(json!({"apiVersion": "apps/v1beta9", "kind": "Deployment"})),
            "Deployment in version \"v1beta9\" cannot be handled as a ConfigMap: no kind \"Deployment\" is registered \
             for version \"apps/v1beta9\" in scheme \"pkg/runtime/scheme.go:111\""
        );
        let older = json!({"apiVersion": "extensions/v1beta1", "kind": "Deployment"});
        assert_eq!(
            of_body(&resource("deployments"), &older, b"").unwrap_err().message,
            "the API version in the data (extensions/v1beta1) does not match the expected API version (apps/v1)"
        );
        assert!(told(json!([])).ends_with("Kind string \"json:\\\"kind,omitempty\\\"\" } (5b5d)"));
        let bare = json!({"metadata": {"name": "a"}});
        assert!(of_body(&resource("configmaps"), &bare, b"{}").is_ok());
    }

    #[test]
    fn an_applied_configuration_names_its_kind() {
        let told = |object: Value| of_applied(&resource("ingresses"), &object).unwrap_err().message;
        let version = "networking.k8s.io/v1";
        assert_eq!(
            told(json!({"apiVersion": version, "kind": ""})),
            "invalid object type: networking.k8s.io/v1, Kind="
        );
        assert_eq!(told(json!({"kind": "Ingress"})), "invalid object type: /, Kind=Ingress");
        assert!(
            of_applied(&resource("ingresses"), &json!({"apiVersion": version, "kind": "Ingress"})).is_ok()
        );
    }

    #[test]
    fn a_patch_cannot_make_another_kind() {
        let maps = resource("configmaps");
        let told = |object: Value| of_patched(&maps, &object).unwrap_err();
        let status = told(json!({"apiVersion": "v1", "kind": "b"}));
        assert_eq!(status.code, 422);
        assert!(status.message.ends_with(
            "no kind \"b\" is registered for version \"v1\" in scheme \"pkg/runtime/scheme.go:111\""
        ));
        assert_eq!(told(json!(3)).message, "the server rejected our request due to an error in our request");
    }
}
