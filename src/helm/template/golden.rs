//! Runs `tests/golden/template/*.txt`: template text, then `=> "output"` or `=> error "message"` as Helm 3.19 gave it
//! (Helm 4.1 in `helm4.txt`).
//! A template may take several lines; the values are in `values.yaml` beside the cases.

#![allow(clippy::disallowed_methods)]

use std::fmt::Write as _;
use std::path::Path;

use super::{Compat, Context, Environment, FuncError, Map, MapType, TemplateSet, Value};
use opdev_object::go::quote::{quote_bytes as quote, unquote};

/// A world that stands still.
pub(super) struct Still;

impl Environment for Still {
    fn now(&self) -> jiff::Timestamp {
        jiff::Timestamp::from_second(1_700_000_000).unwrap()
    }

    fn random(&self, buffer: &mut [u8]) {
        for (i, byte) in buffer.iter_mut().enumerate() {
            *byte = u8::try_from(i * 37 % 256).unwrap();
        }
    }

    fn lookup(&self, _: &str, _: &str, _: &str, _: &str) -> Result<serde_json::Value, FuncError> {
        Ok(serde_json::json!({}))
    }
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../tests/golden/template")
}

/// The data of every case.
pub(super) fn data(compat: Compat) -> Value {
    let ty = if compat.is_four() { MapType::CommonValues } else { MapType::ChartutilValues };
    let values = std::fs::read_to_string(folder().join("values.yaml")).unwrap();
    let values = opdev_object::yaml::values_from_str(&values).unwrap();
    let Value::Map(values) = Value::from_json(&values) else { panic!("values are a map") };
    Value::Map(Map::from_entries([("Values", Value::Map(values.with_type(ty)))]))
}

/// One template rendered alone.
pub(super) fn render(text: &str, compat: Compat) -> Result<Vec<u8>, String> {
    const NAME: &str = "probe/templates/case.yaml";
    let mut set = TemplateSet::new(compat);
    let mut context = Context::new(&Still, compat);
    set.add(NAME, text).map_err(|e| e.helm_text())?;
    set.execute(NAME, data(compat), &mut context)
        .map(super::without_no_value)
        .map_err(|e| e.helm_text(compat))
}

#[test]
fn templates_give_what_helm_gives() {
    let mut files: Vec<_> = std::fs::read_dir(folder()).unwrap().map(|f| f.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "txt"));
    files.sort();
    assert!(!files.is_empty());
    let mut wrong = String::new();
    let mut count = 0;
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let mut case = String::new();
        let helm4 = file.file_stem().is_some_and(|name| name == "helm4");
        let compat = if helm4 { Compat::V4_1 } else { Compat::V3_19 };
        for (i, line) in text.lines().enumerate() {
            let Some(want) = line.strip_prefix("=> ") else {
                if !case.is_empty() {
                    case.push('\n');
                }
                case.push_str(line);
                continue;
            };
            let got = match render(&case, compat) {
                Ok(output) => quote(&output),
                Err(error) => format!("error {}", quote(error.as_bytes())),
            };
            let literal = want.strip_prefix("error ").unwrap_or(want);
            assert!(unquote(literal).is_some(), "{}:{}: not a Go string", file.display(), i + 1);
            if got != want {
                let _ =
                    writeln!(wrong, "{}:{}\n  {case}\n  want {want}\n  got  {got}", file.display(), i + 1);
            }
            count += 1;
            case.clear();
        }
    }
    assert!(count > 10, "only {count} cases found");
    assert!(wrong.is_empty(), "{wrong}");
}
