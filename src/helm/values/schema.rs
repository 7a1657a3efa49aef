//! values.schema.json: a chart's values checked against it, then each subchart's against its own. The words
//! are those of the library Helm uses, in a fixed order. A reference to another file leads to a file of the
//! chart, or else by its absolute path to the disk, as in Helm; nothing is fetched.

pub use super::schema_error::{ChartSchemaError, SchemaError, SchemaErrors, Violation};

use super::plain_schema;
use super::schema_rules::{Rules, Written};
use crate::chart::{Chart, File, read};
use boon::{Compiler, ErrorKind, SchemaIndex, Schemas, UrlLoader, ValidationError};
use opdev_object::yaml::number::format_g;
use opdev_template::Compat;
use serde_json::{Number, Value};
use std::cell::RefCell;
use std::collections::HashMap;
use std::error::Error;
use std::fmt;
use std::path::Path;
use std::rc::Rc;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

const NAME: &str = "file:///values.schema.json";

/// Checks coalesced values; gives Helm's warnings.
///
/// # Errors
/// What each chart's schema says against its values; `Display` is Helm's text.
pub fn validate(chart: &Chart, values: &Value, options: &Options) -> Result<Vec<String>, SchemaErrors> {
    let (mut charts, mut warnings) = (Vec::new(), Vec::new());
    collect(chart, values, options, &mut charts, &mut warnings);
    if charts.is_empty() { Ok(warnings) } else { Err(SchemaErrors { charts }) }
}

fn collect(
    chart: &Chart,
    values: &Value,
    options: &Options,
    found: &mut Vec<ChartSchemaError>,
    warnings: &mut Vec<String>,
) {
    match chart.schema.as_ref().map(|schema| check(chart, schema, values, options)) {
        None => {}
        Some(Ok(said)) => warnings.extend(said),
        Some(Err(error)) => found.push(ChartSchemaError { chart: chart.name().to_owned(), error }),
    }
    for subchart in &chart.subcharts {
        match values.get(subchart.name()) {
            None | Some(Value::Null) => {}
            Some(section) => collect(subchart, section, options, found, warnings),
        }
    }
}

/// A schema read before.
struct CachedSchema {
    /// The schema, if it uses only common keywords.
    plain: Option<Value>,
    compiled: OnceLock<Result<Compiled, SchemaError>>,
}

struct Compiled {
    schemas: Schemas,
    index: SchemaIndex,
    written: Written,
    /// Helm's warnings about it.
    warnings: Vec<String>,
}

/// Reads JSON as Go does: bytes that are no text become U+FFFD, as they do in a description in Latin-1.
fn read_json(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_str(&opdev_template::text_of(bytes))
}

type Cache = HashMap<Box<[u8]>, Arc<CachedSchema>>;

/// A schema, read once: a chart is rendered often and its schema seldom changes.
fn cached(schema: &[u8]) -> Arc<CachedSchema> {
    const KEPT: usize = 64;
    static CACHE: OnceLock<Mutex<Cache>> = OnceLock::new();
    let cache = CACHE.get_or_init(Mutex::default);
    if let Some(found) = cache.lock().unwrap_or_else(PoisonError::into_inner).get(schema) {
        return found.clone();
    }
    let plain = read_json(schema).ok().filter(plain_schema::is_plain);
    let read = Arc::new(CachedSchema { plain, compiled: OnceLock::new() });
    let mut cache = cache.lock().unwrap_or_else(PoisonError::into_inner);
    if cache.len() >= KEPT {
        cache.clear();
    }
    cache.insert(schema.into(), read.clone());
    read
}

/// Returns true if a schema of a chart, or of one of its subcharts, refers to something outside itself: what
/// it says may change although the schema does not.
pub fn reaches_out(chart: &Chart) -> bool {
    chart.schema.as_ref().is_some_and(|schema| refers(schema))
        || chart.subcharts.iter().any(|subchart| reaches_out(subchart))
}

/// Returns true if a `$ref` of a schema does not begin with `#`.
fn refers(schema: &[u8]) -> bool {
    const KEY: &[u8] = b"\"$ref\"";
    let after = |at: usize| {
        let rest = schema[at + KEY.len()..].trim_ascii_start();
        let value = rest.strip_prefix(b":").map(<[u8]>::trim_ascii_start);
        value.and_then(|value| value.strip_prefix(b"\"")).is_some_and(|text| !text.starts_with(b"#"))
    };
    schema.windows(KEY.len()).enumerate().any(|(at, window)| window == KEY && after(at))
}

fn compile(schema: &[u8], files: Vec<File>, options: &Options) -> Result<Compiled, SchemaError> {
    let json = read_json(schema).map_err(|error| SchemaError::NotJson {
        line: error.line(),
        column: error.column(),
        message: error.to_string(),
    })?;
    let refused = |message: String| SchemaError::NotASchema { message };
    let mut schemas = Schemas::new();
    let mut compiler = Compiler::new();
    let rules = Rules::default();
    let json = rules.rewrite(json).map_err(|error| refused(error.to_string()))?;
    Rules::register(&mut compiler);
    let (fetch, warnings) = (options.fetch.clone(), Rc::<RefCell<Vec<String>>>::default());
    let loader = ChartFiles {
        files,
        rules: rules.clone(),
        fetch,
        compat: options.compat,
        warnings: Rc::clone(&warnings),
    };
    compiler.use_loader(Box::new(loader));
    compiler.add_resource(NAME, json).map_err(|error| refused(error.to_string()))?;
    let index = compiler.compile(NAME, &mut schemas).map_err(|error| refused(format!("{error:#}")))?;
    let warnings = warnings.take();
    Ok(Compiled { schemas, index, written: rules.written(), warnings })
}

/// Fetches a schema by its address.
pub type Fetch = dyn Fn(&str) -> Result<Vec<u8>, String> + Send + Sync;

/// The options for reading schemas.
#[derive(Clone, Default)]
pub struct Options {
    /// The Helm whose behaviour it has.
    pub compat: Compat,
    /// Fetches what a schema refers to by `https:` or `http:`; without it such a schema cannot be used.
    pub fetch: Option<Arc<Fetch>>,
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options").field("compat", &self.compat).field("fetch", &self.fetch.is_some()).finish()
    }
}

/// The files of a chart, to which its schema may refer, and what lies beyond them.
struct ChartFiles {
    files: Vec<File>,
    rules: Rules,
    fetch: Option<Arc<Fetch>>,
    compat: Compat,
    warnings: Rc<RefCell<Vec<String>>>,
}

impl UrlLoader for ChartFiles {
    fn load(&self, url: &str) -> Result<Value, Box<dyn Error>> {
        if let Some(schema) = self.rules.load(url) {
            return Ok(schema);
        }
        if url.starts_with("urn:") && self.compat != Compat::V3_19 {
            let level = if self.compat.is_three() { "WARNING: " } else { "" };
            let warning = format!("{level}unresolved URN reference ignored; using permissive schema: {url}");
            self.warnings.borrow_mut().push(warning);
            return Ok(Value::Bool(true));
        }
        let Some(path) = url.strip_prefix("file://") else {
            let fetch = self.fetch.as_ref().ok_or_else(|| {
                format!(
                    "{url} is not fetched: put the schema into the chart and refer to it there, let --fetch-schemas fetch \
                     it, or skip the check of values with --skip-schema-validation"
                )
            })?;
            let json = read_json(&fetch(url)?).map_err(|error| format!("{url}: {error}"))?;
            return Ok(self.rules.rewrite(json)?);
        };
        let inside = self.files.iter().find(|file| file.name == path.trim_start_matches('/'));
        let read = match inside {
            Some(file) => read_json(&file.data),
            None => {
                let data = read::schema(Path::new(path)).map_err(|error| {
                    format!("{path} is neither in the chart nor on this machine: {error}")
                })?;
                read_json(&data)
            }
        };
        Ok(self.rules.rewrite(read.map_err(|error| format!("{path}: {error}"))?)?)
    }
}

fn check(
    chart: &Chart,
    schema: &[u8],
    values: &Value,
    options: &Options,
) -> Result<Vec<String>, SchemaError> {
    if refers(schema) {
        let compiled = compile(schema, chart.files.clone(), options)?;
        compiled.check(values)?;
        return Ok(compiled.warnings);
    }
    let known = cached(schema);
    if known.plain.as_ref().is_some_and(|plain| plain_schema::surely_fits(plain, values)) {
        return Ok(Vec::new());
    }
    known.checked(schema, values)?;
    Ok(Vec::new())
}

/// The message of the library alone.
#[cfg(test)]
pub(super) fn by_library(schema: &[u8], values: &Value) -> Result<(), SchemaError> {
    CachedSchema { plain: None, compiled: OnceLock::new() }.checked(schema, values)
}

impl CachedSchema {
    fn checked(&self, schema: &[u8], values: &Value) -> Result<(), SchemaError> {
        let compiled = self.compiled.get_or_init(|| compile(schema, Vec::new(), &Options::default()));
        compiled.as_ref().map_err(SchemaError::clone)?.check(values)
    }
}

impl Compiled {
    fn check(&self, values: &Value) -> Result<(), SchemaError> {
        let found = self.written.during(|| self.schemas.validate(values, self.index).map_err(Box::new));
        let violation = |error: &ValidationError<'_, '_>| violation(error, &self.written);
        found.map_err(|error| SchemaError::Values(error.causes.iter().map(violation).collect()))
    }
}

fn violation(error: &ValidationError<'_, '_>, written: &Written) -> Violation {
    let transparent = matches!(error.kind, ErrorKind::Reference { .. } | ErrorKind::Group);
    match (error.causes.as_slice(), transparent) {
        ([only], true) => violation(only, written),
        // A divisor that stands alone is one of ours.
        ([only], _) if is_divisor(only, written) => violation(only, written),
        (causes, _) => Violation {
            path: error.instance_location.to_string(),
            message: words(&error.kind, written),
            causes: causes.iter().map(|cause| violation(cause, written)).collect(),
        },
    }
}

/// Returns true if all that an error says is that a number is no multiple of a fraction.
fn is_divisor(error: &ValidationError<'_, '_>, written: &Written) -> bool {
    match (&error.kind, error.causes.as_slice()) {
        (ErrorKind::Format { want, .. }, _) => written.divisor(want).is_some(),
        (ErrorKind::Reference { .. } | ErrorKind::Group, [only]) => is_divisor(only, written),
        _ => false,
    }
}

fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\\', "\\\\").replace('\'', "\\'"))
}

fn quoted<T: AsRef<str>>(items: &[T]) -> String {
    items.iter().map(|item| quote(item.as_ref())).collect::<Vec<_>>().join(", ")
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => quote(text),
        Value::Number(number) => plain(number),
        other => other.to_string(),
    }
}

fn plain(number: &Number) -> String {
    match number.as_f64() {
        Some(float) if number.is_f64() => format_g(float),
        _ => number.to_string(),
    }
}

fn is_primitive(value: &Value) -> bool {
    !matches!(value, Value::Array(_) | Value::Object(_))
}

fn words(kind: &ErrorKind<'_, '_>, written: &Written) -> String {
    let range = |name: &str, got: usize, want: usize| format!("{name}: got {got}, want {want}");
    let limit =
        |name: &str, got: &Number, want: &Number| format!("{name}: got {}, want {}", plain(got), plain(want));
    match kind {
        ErrorKind::Type { got, want } => {
            let want: Vec<_> = want.iter().map(|one| one.to_string()).collect();
            format!("got {got}, want {}", want.join(" or "))
        }
        ErrorKind::Enum { want } if want.iter().all(is_primitive) => match want.as_slice() {
            [only] => format!("value must be {}", shown(only)),
            many => {
                let many: Vec<_> = many.iter().map(shown).collect();
                format!("value must be one of {}", many.join(", "))
            }
        },
        ErrorKind::Enum { .. } => "'enum' failed".to_owned(),
        ErrorKind::Const { want } if is_primitive(want) => format!("value must be {}", shown(want)),
        ErrorKind::Const { .. } => "'const' failed".to_owned(),
        ErrorKind::Format { got, want, err } => match (got.as_ref(), written.divisor(want)) {
            (Value::Number(got), Some(divisor)) => limit("multipleOf", got, divisor),
            (got, _) => format!("{} is not valid {want}: {err}", shown(got)),
        },
        ErrorKind::MinProperties { got, want } => range("minProperties", *got, *want),
        ErrorKind::MaxProperties { got, want } => range("maxProperties", *got, *want),
        ErrorKind::AdditionalProperties { got } => {
            format!("additional properties {} not allowed", quoted(got))
        }
        ErrorKind::Required { want } => match want.as_slice() {
            [only] => format!("missing property {}", quote(only)),
            many => format!("missing properties {}", quoted(many)),
        },
        ErrorKind::Dependency { prop, missing } | ErrorKind::DependentRequired { prop, missing } => {
            format!("properties {} required, if {} exists", quoted(missing), quote(prop))
        }
        ErrorKind::MinItems { got, want } => range("minItems", *got, *want),
        ErrorKind::MaxItems { got, want } => range("maxItems", *got, *want),
        ErrorKind::Contains => "no items match contains schema".to_owned(),
        ErrorKind::UniqueItems { got: [a, b] } => format!("items at {a} and {b} are equal"),
        ErrorKind::AdditionalItems { got } => format!("last {got} additionalItem(s) not allowed"),
        ErrorKind::MinLength { got, want } => range("minLength", *got, *want),
        ErrorKind::MaxLength { got, want } => range("maxLength", *got, *want),
        ErrorKind::Pattern { got, want } => {
            format!("{} does not match pattern {}", quote(got), quote(written.pattern(want)))
        }
        ErrorKind::Minimum { got, want } => limit("minimum", got, want),
        ErrorKind::Maximum { got, want } => limit("maximum", got, want),
        ErrorKind::ExclusiveMinimum { got, want } => limit("exclusiveMinimum", got, want),
        ErrorKind::ExclusiveMaximum { got, want } => limit("exclusiveMaximum", got, want),
        ErrorKind::MultipleOf { got, want } => limit("multipleOf", got, want),
        ErrorKind::PropertyName { prop } => format!("invalid propertyName {}", quote(prop)),
        ErrorKind::Not => "'not' failed".to_owned(),
        ErrorKind::AllOf => "'allOf' failed".to_owned(),
        ErrorKind::AnyOf => "'anyOf' failed".to_owned(),
        ErrorKind::OneOf(None) => "'oneOf' failed, none matched".to_owned(),
        ErrorKind::OneOf(Some((a, b))) => format!("'oneOf' failed, subschemas {a}, {b} matched"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::chart::Metadata;
    use expect_test::expect;
    use serde_json::json;

    fn chart(name: &str, schema: &Value, subcharts: Vec<Chart>) -> Chart {
        Chart {
            metadata: Metadata { name: name.into(), ..Metadata::default() },
            schema: Some(schema.to_string().into_bytes().into()),
            subcharts: subcharts.into_iter().map(Arc::new).collect(),
            ..Chart::default()
        }
    }

    #[test]
    fn a_schema_in_latin_1_is_read_as_go_reads_it() {
        let latin: &[u8] =
            b"{\"description\":\"caf\xe9\",\"properties\":{\"a\":{\"enum\":[\"caf\xe9\",\"x\"]}}}";
        let chart = Chart { schema: Some(latin.to_vec().into()), ..chart("web", &json!({}), vec![]) };
        let said =
            |values: Value| validate(&chart, &values, &Options::default()).map_err(|error| error.to_string());
        assert!(said(json!({"a": "x"})).is_ok());
        // Helm 3.19, 4.1 and 4.3 show the character that stands for the byte.
        let refused = "web:\n- at '/a': value must be one of 'caf\u{fffd}', 'x'\n";
        assert_eq!(said(json!({"a": "y"})).unwrap_err(), refused);
    }

    #[test]
    fn speaks_as_helm_does() {
        let schema = json!({
            "$schema": "http://json-schema.org/draft-07/schema#",
            "required": ["name"],
            "properties": {
                "replicas": {"type": "integer", "minimum": 1},
                "mode": {"enum": ["a", "b", 3]},
                "one": {"oneOf": [{"type": "string"}, {"type": "integer"}]},
                "deep": {"properties": {"x": {"$ref": "#/definitions/flag"}}}
            },
            "definitions": {"flag": {"type": "boolean"}}
        });
        let said = |values: Value| {
            validate(&chart("web", &schema, vec![]), &values, &Options::default()).unwrap_err().to_string()
        };
        assert_eq!(said(json!({})), "web:\n- at '': missing property 'name'\n");
        assert_eq!(
            said(json!({"name": 1, "replicas": "x"})),
            "web:\n- at '/replicas': got string, want integer\n"
        );
        assert_eq!(
            said(json!({"name": 1, "replicas": 0.0})),
            "web:\n- at '/replicas': minimum: got 0, want 1\n"
        );
        assert_eq!(
            said(json!({"name": 1, "mode": "z"})),
            "web:\n- at '/mode': value must be one of 'a', 'b', 3\n"
        );
        assert_eq!(
            said(json!({"name": 1, "deep": {"x": 1}})),
            "web:\n- at '/deep/x': got number, want boolean\n"
        );
        assert!(
            validate(
                &chart("web", &schema, vec![]),
                &json!({"name": 1, "replicas": 3.0}),
                &Options::default()
            )
            .is_ok()
        );
    }

    #[test]
    fn checks_subcharts_against_their_own() {
        let sub = chart("db", &json!({"properties": {"size": {"type": "string"}}}), vec![]);
        let parent = chart("web", &json!({}), vec![sub]);
        assert!(validate(&parent, &json!({"db": {"size": "1Gi"}}), &Options::default()).is_ok());
        assert_eq!(
            validate(&parent, &json!({"db": {"size": 3}}), &Options::default()).unwrap_err().to_string(),
            "db:\n- at '/size': got number, want string\n"
        );
    }

    #[test]
    #[allow(clippy::disallowed_methods)]
    fn references_lead_into_the_chart_or_to_the_disk() {
        let outside = std::env::temp_dir().join(format!("opdev-port-{}.json", std::process::id()));
        std::fs::write(&outside, r#"{"type": "integer"}"#).unwrap();
        let schema = json!({"properties": {
            "size": {"$ref": "schemas/size.json#/definitions/size"},
            "same": {"$ref": "file:///schemas/size.json#/definitions/size"},
            "port": {"$ref": format!("file://{}", outside.display())},
        }});
        let mut web = chart("web", &schema, vec![]);
        let data = r#"{"definitions": {"size": {"type": "string"}}}"#.as_bytes().into();
        web.files.push(File { name: "schemas/size.json".to_owned(), data });
        assert!(reaches_out(&chart("parent", &json!({}), vec![web.clone()])));
        assert!(
            validate(&web, &json!({"size": "1Gi", "same": "x", "port": 80}), &Options::default()).is_ok()
        );
        for (field, want) in [("size", "string"), ("same", "string"), ("port", "integer")] {
            let said = validate(&web, &json!({field: [1]}), &Options::default()).unwrap_err().to_string();
            assert_eq!(said, format!("web:\n- at '/{field}': got array, want {want}\n"));
        }
        // Nothing is remembered of a file that may change.
        std::fs::write(&outside, r#"{"type": "string"}"#).unwrap();
        assert!(validate(&web, &json!({"port": 80}), &Options::default()).is_err());
        std::fs::remove_file(&outside).unwrap();
        let said = validate(
            &chart("web", &json!({"$ref": "nowhere.json"}), vec![]),
            &json!({}),
            &Options::default(),
        )
        .unwrap_err()
        .to_string();
        expect![[r#"
            web:
            error loading file:///nowhere.json: /nowhere.json is neither in the chart nor on this machine: No such file or directory (os error 2)
        "#]]
        .assert_eq(&said);
        let said = validate(
            &chart("web", &json!({"$ref": "file:///dev/null"}), vec![]),
            &json!({}),
            &Options::default(),
        )
        .unwrap_err()
        .to_string();
        expect![[r#"
            web:
            error loading file:///dev/null: /dev/null is neither in the chart nor on this machine: not a file
        "#]]
        .assert_eq(&said);
    }

    #[test]
    fn refuses_schemas_from_elsewhere() {
        let chart = chart("web", &json!({"$ref": "http://example.com/s.json"}), vec![]);
        assert!(
            validate(&chart, &json!({}), &Options::default())
                .unwrap_err()
                .to_string()
                .contains("is not fetched")
        );
    }
}
