//! The form that a client will take: reads `Accept` into a form (the object, a Table, only metadata), an
//! encoding (JSON, YAML, pretty JSON, protobuf). Never renders anything; `table` does.

use http::HeaderMap;
use http::header::{ACCEPT, USER_AGENT};

/// The shape a client asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// The object or list as it is.
    Object,
    /// `meta.k8s.io` Table at this version.
    Table(&'static str),
    /// `PartialObjectMetadata` at this version.
    Metadata(&'static str),
    /// `PartialObjectMetadataList` at this version.
    MetadataList(&'static str),
}

/// The encoding of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// One line of JSON.
    Json,
    /// Indented JSON, for people.
    PrettyJson,
    /// YAML.
    Yaml,
    /// The envelope of Kubernetes around a protobuf message.
    Protobuf,
}

impl Encoding {
    /// The media type of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self {
            Encoding::Json | Encoding::PrettyJson => "application/json",
            Encoding::Yaml => "application/yaml",
            Encoding::Protobuf => "application/vnd.kubernetes.protobuf",
        }
    }
}

/// The result of the negotiation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Agreed {
    /// The shape.
    pub(crate) form: Form,
    /// The encoding.
    pub(crate) encoding: Encoding,
}

/// Nothing in `Accept` can be served: 406.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct NotAcceptable;

/// The forms that a place can answer in besides the object itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Forms {
    /// Only the object: discovery, status of a delete, scale.
    Plain,
    /// Table and metadata too: get, list, watch, create, update, patch.
    All,
}

/// The answers that an endpoint can give in protobuf. A Table never is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Binary {
    /// Nothing: documents that are no objects.
    Never,
    /// Only metadata: custom resources have no messages of their own.
    Metadata,
    /// Objects too.
    Objects,
}

impl Binary {
    fn has(self, form: Option<Form>) -> bool {
        match form {
            Some(Form::Object) => self == Binary::Objects,
            Some(Form::Metadata(_) | Form::MetadataList(_)) => self != Binary::Never,
            Some(Form::Table(_)) | None => false,
        }
    }
}

/// One entry of an `Accept` list.
pub(crate) struct Clause<'a> {
    /// `application`
    pub kind: &'a str,
    /// `json`
    pub(crate) subtype: &'a str,
    quality: f32,
    parameters: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let mut parts = text.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let mut quality = 1.0;
        let mut parameters = Vec::new();
        for part in parts {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let value = value.trim_matches('"');
            if name == "q" {
                quality = value.parse().unwrap_or(0.0);
            } else {
                parameters.push((name, value));
            }
        }
        Some(Clause { kind, subtype, quality, parameters })
    }

    /// The value of a parameter such as `as`, empty where it is missing.
    pub(crate) fn parameter(&self, name: &str) -> &'a str {
        self.parameters.iter().find(|(at, _)| *at == name).map_or("", |(_, value)| value)
    }

    /// Returns true if the clause takes this media type of `application`.
    pub(crate) fn takes(&self, subtype: &str) -> bool {
        match (self.kind, self.subtype) {
            ("*" | "application", "*") => true,
            ("application", named) => named == subtype,
            _ => false,
        }
    }

    fn form(&self) -> Option<Form> {
        let kind = self.parameter("as");
        if kind.is_empty() {
            return Some(Form::Object);
        }
        let version = match (self.parameter("g"), self.parameter("v")) {
            ("meta.k8s.io", "v1") => "v1",
            ("meta.k8s.io", "v1beta1") => "v1beta1",
            _ => return None,
        };
        match kind {
            "Table" => Some(Form::Table(version)),
            "PartialObjectMetadata" => Some(Form::Metadata(version)),
            "PartialObjectMetadataList" => Some(Form::MetadataList(version)),
            _ => None,
        }
    }
}

/// The entries of all `Accept` headers, best quality first, in the order written among equals.
/// An absent or empty header is `*/*`.
pub(crate) fn clauses(headers: &HeaderMap) -> Vec<Clause<'_>> {
    let mut clauses: Vec<Clause<'_>> = headers
        .get_all(ACCEPT)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|text| Clause::parse(text.trim()))
        .collect();
    if clauses.is_empty() && headers.get_all(ACCEPT).iter().all(http::HeaderValue::is_empty) {
        clauses.extend(Clause::parse("*/*"));
    }
    clauses.sort_by(|a, b| b.quality.total_cmp(&a.quality));
    clauses
}

/// Agrees on form and encoding. `query` is the raw query string, for `pretty`.
pub(crate) fn agree(
    headers: &HeaderMap,
    query: &str,
    forms: Forms,
    binary: Binary,
) -> Result<Agreed, NotAcceptable> {
    for clause in clauses(headers) {
        let encoding = if (clause.kind, clause.subtype) == ("application", "vnd.kubernetes.protobuf") {
            if !binary.has(clause.form()) {
                continue;
            }
            Encoding::Protobuf
        } else if clause.takes("json") {
            if pretty(headers, query, &clause) { Encoding::PrettyJson } else { Encoding::Json }
        } else if clause.takes("yaml") {
            Encoding::Yaml
        } else {
            continue;
        };
        match (clause.form(), forms) {
            (Some(form), Forms::All) => return Ok(Agreed { form, encoding }),
            (Some(Form::Object), Forms::Plain) => return Ok(Agreed { form: Form::Object, encoding }),
            (Some(_) | None, _) => {}
        }
    }
    Err(NotAcceptable)
}

fn pretty(headers: &HeaderMap, query: &str, clause: &Clause<'_>) -> bool {
    let said = query
        .split('&')
        .filter_map(|pair| pair.split_once('=').or(Some((pair, ""))))
        .find(|(name, _)| *name == "pretty")
        .map(|(_, value)| value);
    match said {
        Some(value) => !matches!(value, "0" | "false"),
        None if clause.parameter("pretty") == "1" => true,
        None => headers
            .get(USER_AGENT)
            .and_then(|agent| agent.to_str().ok())
            .is_some_and(|agent| ["curl", "Wget", "Mozilla/5.0"].iter().any(|name| agent.starts_with(name))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn form(accept: &str) -> Result<Form, NotAcceptable> {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, accept.parse().unwrap());
        agree(&headers, "", Forms::All, Binary::Never).map(|agreed| agreed.form)
    }

    #[test]
    fn nothing_said_is_json() {
        let agreed = agree(&HeaderMap::new(), "", Forms::All, Binary::Objects).unwrap();
        assert_eq!(agreed, Agreed { form: Form::Object, encoding: Encoding::Json });
    }

    #[test]
    fn kubectl_gets_a_table() {
        let accept = "application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        assert_eq!(form(accept), Ok(Form::Table("v1")));
    }

    #[test]
    fn protobuf_is_skipped_where_json_stands_beside_it() {
        let accept = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json";
        assert_eq!(form(accept), Ok(Form::Metadata("v1")));
        assert_eq!(form("application/vnd.kubernetes.protobuf, */*"), Ok(Form::Object));
        assert_eq!(form("application/vnd.kubernetes.protobuf"), Err(NotAcceptable));
    }

    #[test]
    fn protobuf_is_spoken_where_there_are_messages() {
        let agreed = |accept: &str, binary| {
            let mut headers = HeaderMap::new();
            headers.insert(ACCEPT, accept.parse().unwrap());
            agree(&headers, "", Forms::All, binary).map(|agreed| (agreed.form, agreed.encoding))
        };
        let typed = "application/vnd.kubernetes.protobuf,application/json";
        assert_eq!(agreed(typed, Binary::Objects), Ok((Form::Object, Encoding::Protobuf)));
        assert_eq!(agreed(typed, Binary::Metadata), Ok((Form::Object, Encoding::Json)));
        let metadata = "application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";
        assert_eq!(agreed(metadata, Binary::Metadata), Ok((Form::MetadataList("v1"), Encoding::Protobuf)));
        let table = "application/vnd.kubernetes.protobuf;as=Table;g=meta.k8s.io;v=v1";
        assert_eq!(agreed(table, Binary::Objects), Err(NotAcceptable));
        assert_eq!(agreed("*/*", Binary::Objects), Ok((Form::Object, Encoding::Json)));
    }

    #[test]
    fn an_unknown_form_falls_through_to_the_next() {
        assert_eq!(form("application/json;as=Chair;v=v1;g=meta.k8s.io, application/json"), Ok(Form::Object));
        assert_eq!(form("application/json;as=Table;v=v9;g=meta.k8s.io"), Err(NotAcceptable));
        assert_eq!(form("text/html"), Err(NotAcceptable));
    }

    #[test]
    fn quality_orders() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/json;q=0.5, application/yaml".parse().unwrap());
        assert_eq!(agree(&headers, "", Forms::All, Binary::Objects).unwrap().encoding, Encoding::Yaml);
    }

    #[test]
    fn people_get_it_pretty() {
        let mut headers = HeaderMap::new();
        headers.insert(USER_AGENT, "curl/8.5.0".parse().unwrap());
        assert_eq!(agree(&headers, "", Forms::All, Binary::Objects).unwrap().encoding, Encoding::PrettyJson);
        assert_eq!(
            agree(&headers, "pretty=false", Forms::All, Binary::Objects).unwrap().encoding,
            Encoding::Json
        );
        assert_eq!(
            agree(&HeaderMap::new(), "a=b&pretty", Forms::All, Binary::Objects).unwrap().encoding,
            Encoding::PrettyJson
        );
    }

    #[test]
    fn discovery_has_no_table() {
        let mut headers = HeaderMap::new();
        headers.insert(ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io".parse().unwrap());
        assert_eq!(agree(&headers, "", Forms::Plain, Binary::Never), Err(NotAcceptable));
    }
}
