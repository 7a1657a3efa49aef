//! Objects, lists and errors as responses, in the form and encoding that was agreed on.
//! Never decides what is answered.

use super::in_order;
use crate::negotiation::{Agreed, Encoding, Form};
use bytes::Bytes;
use futures::stream;
use http::header::{CONTENT_TYPE, HeaderValue, WARNING};
use http::{Response, StatusCode};
use opdev_apimachinery::body::{self, Body, InParts, full};
use opdev_apimachinery::error::Status;
use opdev_apimachinery::protobuf;
use opdev_apimachinery::resource::Resource;
use opdev_apis::table::Tables;
use opdev_apis::table::answer::{self, Include, Wanted, metadata_only};
use opdev_registry::{Registry, versions};
use opdev_storage::{Stored, text};
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::sync::Arc;

/// Turns objects of one resource into what the client asked for.
#[derive(Clone)]
pub(crate) struct Shape {
    pub registry: Arc<Registry>,
    pub resource: Arc<Resource>,
    pub tables: Arc<dyn Tables>,
    pub(crate) agreed: Agreed,
    pub include: Include,
}

impl Shape {
    /// The object as JSON text, in the form asked for.
    pub(crate) fn object_text(&self, stored: &Stored) -> Bytes {
        let turned = self.resource.custom.is_some() && versions::is_version_of(&self.resource, stored);
        if self.agreed.form == Form::Object && (turned || self.resource.is_stored_version()) {
            return stored.json();
        }
        let object = self.registry.served(&self.resource, stored);
        text(&self.object_value(&object))
    }

    /// One event of a watch in protobuf, in the form asked for.
    pub(crate) fn frame(&self, kind: &str, stored: &Stored) -> Result<Vec<u8>, protobuf::Error> {
        let object = self.registry.served(&self.resource, stored);
        protobuf::frame(kind, &self.object_value(&object))
    }

    fn object_value<'a>(&self, object: &'a Value) -> Cow<'a, Value> {
        match self.agreed.form {
            Form::Object | Form::MetadataList(_) => Cow::Borrowed(object),
            Form::Metadata(version) => Cow::Owned(metadata_only(object, version)),
            Form::Table(version) => {
                Cow::Owned(self.table(version, &object["metadata"], std::iter::once(object), true))
            }
        }
    }

    /// A Table; `headers` says whether the columns are described in it.
    pub(crate) fn table<'a>(
        &self,
        version: &'static str,
        meta: &Value,
        objects: impl Iterator<Item = &'a Value>,
        headers: bool,
    ) -> Value {
        answer::table(&*self.tables, &self.resource, objects, meta, self.wanted(version, headers))
    }

    fn wanted(&self, version: &'static str, headers: bool) -> Wanted {
        Wanted { version, include: self.include, headers, now: self.registry.now() }
    }

    /// One stored object as a response, at the version asked for.
    pub(crate) fn answer(&self, code: StatusCode, stored: &Arc<Stored>) -> Result<Response<Body>, Status> {
        Ok(self.object(code, &*self.registry.one_at(&self.resource, stored)?))
    }

    /// One object as a response.
    fn object(&self, code: StatusCode, stored: &Stored) -> Response<Body> {
        if self.agreed.encoding == Encoding::Protobuf {
            let object = self.registry.served(&self.resource, stored);
            return document(code, &self.object_value(&object), Encoding::Protobuf);
        }
        let text = self.object_text(stored);
        encoded(code, &text, self.agreed.encoding)
    }

    fn served(&self, items: &[Arc<Stored>]) -> Vec<Arc<Value>> {
        items.iter().map(|object| self.registry.served(&self.resource, object)).collect()
    }

    /// A list as a response.
    pub(crate) fn list(&self, meta: Map<String, Value>, items: &[Arc<Stored>]) -> Response<Body> {
        let text: Bytes = match self.agreed.form {
            Form::Object if self.agreed.encoding == Encoding::Protobuf => {
                let objects = self.served(items);
                let objects = objects.iter().map(AsRef::as_ref);
                let (version, kind) = (self.resource.api_version(), &self.resource.list_kind);
                let meta = Value::Object(meta.clone());
                match protobuf::encode_list(version, kind, &meta, objects) {
                    Ok(message) => return binary(StatusCode::OK, message),
                    Err(why) => return unencodable(kind, &why),
                }
            }
            _ if self.agreed.encoding == Encoding::Json => return self.list_text(meta, items),
            _ => Parts::new(self, meta, items).collect::<Vec<_>>().concat().into(),
        };
        encoded(StatusCode::OK, &text, self.agreed.encoding)
    }

    /// A list in JSON, whatever it holds of its objects: whole where they are short, and otherwise in parts,
    /// each made when the client takes it.
    fn list_text(&self, meta: Map<String, Value>, items: &[Arc<Stored>]) -> Response<Body> {
        let parts = Parts::new(self, meta, items);
        let size: usize = items.iter().map(|object| object.size()).sum();
        let mut response = if size < WHOLE {
            Response::new(full(parts.collect::<Vec<_>>().concat()))
        } else {
            let mut response = Response::new(body::stream(stream::iter(parts)));
            response.extensions_mut().insert(InParts);
            response
        };
        let kind = HeaderValue::from_static(self.agreed.encoding.content_type());
        response.headers_mut().insert(CONTENT_TYPE, kind);
        response
    }
}

/// Lists of fewer bytes are answered in one piece.
const WHOLE: usize = 256 * 1024;
/// About how many bytes each part of an answer has.
pub(super) const PART: usize = 64 * 1024;

/// The text of a list, part by part: a tree is made of one object at a time, if at all.
struct Parts {
    shape: Shape,
    items: std::vec::IntoIter<Arc<Stored>>,
    out: Vec<u8>,
    each: Each,
    first: bool,
    over: bool,
}

/// The form in which a list holds each of its objects.
enum Each {
    /// All of it; here, how the text of an object begins that a list does not repeat.
    Object(Option<String>),
    /// Its metadata, in this version of `meta.k8s.io`.
    Metadata(&'static str),
    /// A row.
    Row(Wanted),
}

impl Parts {
    fn new(shape: &Shape, meta: Map<String, Value>, items: &[Arc<Stored>]) -> Self {
        let (out, each) = match shape.agreed.form {
            Form::Object => Self::objects(shape, meta),
            Form::Metadata(version) | Form::MetadataList(version) => {
                (answer::metadata_list_head(&Value::Object(meta), version), Each::Metadata(version))
            }
            Form::Table(version) => {
                let wanted = shape.wanted(version, true);
                let head = answer::table_head(&*shape.tables, &shape.resource, &Value::Object(meta), wanted);
                (head, Each::Row(wanted))
            }
        };
        let items = Vec::from(items).into_iter();
        Parts { shape: shape.clone(), items, out: out.into(), each, first: true, over: false }
    }

    fn objects(shape: &Shape, meta: Map<String, Value>) -> (String, Each) {
        let resource = &shape.resource;
        let version = Value::from(resource.api_version());
        let kind = Value::from(resource.list_kind.as_str());
        let mut meta = Value::Object(meta);
        if resource.custom.is_some() && meta.get("continue").is_none() {
            meta["continue"] = Value::from("");
        }
        let out = format!("{{\"kind\":{kind},\"apiVersion\":{version},\"metadata\":{meta},\"items\":[");
        // A list says once what its items are, but custom resources say it each.
        let front = resource.custom.is_none().then(|| {
            let kind = Value::from(resource.kind.as_str());
            format!("{{\"kind\":{kind},\"apiVersion\":{version}")
        });
        (out, Each::Object(front))
    }

    fn item(&mut self, object: &Stored) {
        if !std::mem::take(&mut self.first) {
            self.out.push(b',');
        }
        let Shape { registry, resource, tables, .. } = &self.shape;
        let served = || registry.served(resource, object);
        let (text, front) = match &self.each {
            Each::Object(front) => (self.shape.object_text(object), front.as_ref()),
            Each::Metadata(version) => (text(&metadata_only(&served(), version)), None),
            Each::Row(wanted) => (text(&answer::row(&**tables, resource, &served(), *wanted)), None),
        };
        let Some(front) = front else { return self.out.extend_from_slice(&text) };
        match text.strip_prefix(front.as_bytes()) {
            Some(rest) => {
                self.out.push(b'{');
                self.out.extend_from_slice(rest.strip_prefix(b",").unwrap_or(rest));
            }
            None => self.out.extend_from_slice(&without_kind(&text)),
        }
    }
}

impl Iterator for Parts {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.over {
            return None;
        }
        while self.out.len() < PART
            && let Some(object) = self.items.next()
        {
            self.item(&object);
        }
        if self.items.len() == 0 {
            self.over = true;
            self.out.extend_from_slice(b"]}\n");
        }
        Some(std::mem::take(&mut self.out).into())
    }
}

/// The text of an object without its `apiVersion` and `kind`.
fn without_kind(text: &[u8]) -> Bytes {
    let mut out = Vec::with_capacity(text.len());
    let (mut depth, mut start, mut quoted, mut escaped) = (0_u32, 1, false, false);
    out.push(b'{');
    for (at, byte) in text.iter().enumerate() {
        if quoted {
            match byte {
                _ if escaped => escaped = false,
                b'\\' => escaped = true,
                b'"' => quoted = false,
                _ => {}
            }
            continue;
        }
        let ends = match byte {
            b'"' => {
                quoted = true;
                false
            }
            b'{' | b'[' => {
                depth += 1;
                false
            }
            b'}' | b']' => {
                depth -= 1;
                depth == 0
            }
            b',' => depth == 1,
            _ => false,
        };
        if ends {
            let field = &text[start..at];
            if !field.is_empty() && !field.starts_with(b"\"apiVersion\":") && !field.starts_with(b"\"kind\":")
            {
                if out.len() > 1 {
                    out.push(b',');
                }
                out.extend_from_slice(field);
            }
            start = at + 1;
        }
    }
    out.push(b'}');
    out.into()
}

/// A protobuf message in its envelope as a response.
fn binary(code: StatusCode, message: Vec<u8>) -> Response<Body> {
    let mut response = Response::new(full(message));
    *response.status_mut() = code;
    let kind = HeaderValue::from_static(Encoding::Protobuf.content_type());
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Answers that an object cannot be encoded. The object itself is left out of the message.
fn unencodable(kind: &str, why: &protobuf::Error) -> Response<Body> {
    tracing::error!(kind, %why, "an answer cannot be written in protobuf");
    failure(&Status::internal(&format!("{kind} cannot be written in protobuf: {why}")), Encoding::Json)
}

/// JSON text as a response.
pub(crate) fn encoded(code: StatusCode, text: &[u8], encoding: Encoding) -> Response<Body> {
    let body = match encoding {
        Encoding::Protobuf => {
            let value: Value = serde_json::from_slice(text).unwrap_or_default();
            return document(code, &value, encoding);
        }
        Encoding::Json => {
            let mut line = Vec::with_capacity(text.len() + 1);
            line.extend_from_slice(text);
            line.push(b'\n');
            Bytes::from(line)
        }
        Encoding::PrettyJson | Encoding::Yaml => {
            let value: Value = serde_json::from_slice(text).unwrap_or_default();
            match encoding {
                Encoding::Yaml => opdev_object::yaml::to_string(&value).into(),
                Encoding::Json | Encoding::PrettyJson | Encoding::Protobuf => {
                    let status = in_order::text(&value, true);
                    status.map_or_else(|| format!("{value:#}\n"), |text| text + "\n").into()
                }
            }
        }
    };
    let mut response = Response::new(full(body));
    *response.status_mut() = code;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    response
}

/// Any document as a response.
pub(crate) fn document(code: StatusCode, value: &Value, encoding: Encoding) -> Response<Body> {
    if encoding == Encoding::Protobuf {
        return match protobuf::encode(value) {
            Ok(message) => binary(code, message),
            Err(why) => unencodable(value["kind"].as_str().unwrap_or_default(), &why),
        };
    }
    let text = in_order::text(value, false).unwrap_or_else(|| value.to_string());
    encoded(code, text.as_bytes(), encoding)
}

/// A failure as a response.
pub(crate) fn failure(status: &Status, encoding: Encoding) -> Response<Body> {
    let code = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = document(code, &status.to_value(), encoding);
    if let Some(seconds) = status.details.get("retryAfterSeconds").and_then(Value::as_u64) {
        response.headers_mut().insert(http::header::RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Nothing is served at this path.
pub(crate) fn no_such_path() -> Response<Body> {
    let mut response = Response::new(full("404 page not found\n"));
    *response.status_mut() = StatusCode::NOT_FOUND;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response
}

/// Adds `Warning` headers.
pub(crate) fn warn(response: &mut Response<Body>, warnings: &[String]) {
    for text in warnings {
        let clean: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
        let quoted = clean.replace('\\', "\\\\").replace('"', "\\\"");
        if let Ok(value) = HeaderValue::from_bytes(format!("299 - \"{quoted}\"").as_bytes()) {
            response.headers_mut().append(WARNING, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::without_kind;

    #[test]
    fn items_of_lists_have_no_kind() {
        for (whole, bare) in [
            (
                r#"{"apiVersion":"v1","kind":"A","metadata":{"kind":"x","name":"a"}}"#,
                r#"{"metadata":{"kind":"x","name":"a"}}"#,
            ),
            (
                r#"{"a":["},{"],"apiVersion":"v1","data":{"kind":"\","},"kind":"A"}"#,
                r#"{"a":["},{"],"data":{"kind":"\","}}"#,
            ),
            (r#"{"apiVersion":"v1","kind":"A"}"#, "{}"),
        ] {
            assert_eq!(without_kind(whole.as_bytes()), bare.as_bytes(), "{whole}");
        }
    }
}
