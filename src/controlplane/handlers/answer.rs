//! Answers that are no objects: a document in the encoding that the client takes, and errors.

use crate::in_order;
use crate::negotiation::{self, Binary, Encoding, Forms, NotAcceptable};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Response, StatusCode};
use opdev_apimachinery::body::{Body, full};
use opdev_apimachinery::error::Status;
use serde_json::Value;

/// A `Status` as an answer, with what its code asks for in headers.
pub fn status(status: &Status) -> Response<Body> {
    in_encoding(status, Encoding::Json)
}

/// A `Status` in whatever encoding the client takes.
pub fn negotiated(headers: &HeaderMap, query: &str, status: &Status) -> Response<Body> {
    let agreed = negotiation::agree(headers, query, Forms::Plain, Binary::Never);
    in_encoding(status, agreed.map_or(Encoding::Json, |agreed| agreed.encoding))
}

fn in_encoding(status: &Status, encoding: Encoding) -> Response<Body> {
    let mut response = json_response(&status.to_value(), encoding);
    *response.status_mut() = StatusCode::from_u16(status.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    response
}

/// A 406 that says what there is.
pub(crate) fn not_acceptable(offered: &[&str]) -> Response<Body> {
    status(&Status::not_acceptable(offered))
}

/// A 401 for credentials that nobody here issued.
pub fn unauthorized(headers: &HeaderMap, query: &str) -> Response<Body> {
    negotiated(headers, query, &Status::new(401, "Unauthorized", "Unauthorized"))
}

/// A document in whatever encoding the client takes.
pub fn plain(headers: &HeaderMap, query: &str, document: &Value) -> Response<Body> {
    match negotiation::agree(headers, query, Forms::Plain, Binary::Never) {
        Ok(agreed) => json_response(document, agreed.encoding),
        Err(NotAcceptable) => not_acceptable(&["application/json", "application/yaml"]),
    }
}

fn json_response(document: &Value, encoding: Encoding) -> Response<Body> {
    let text = match encoding {
        // Protobuf is never agreed on for what is no object.
        Encoding::Json | Encoding::Protobuf => {
            in_order::text(document, false).unwrap_or_else(|| document.to_string())
        }
        Encoding::PrettyJson => in_order::text(document, true).unwrap_or_else(|| format!("{document:#}")),
        Encoding::Yaml => opdev_object::yaml::to_string(document),
    };
    let mut response = Response::new(full(text));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(encoding.content_type()));
    response
}
