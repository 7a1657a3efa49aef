//! `.Files`: a chart's other files, with `Get`, `GetBytes`, `Glob`, `Lines`, `AsConfig` and `AsSecrets`.

use super::glob::Glob;
use crate::chart::{Content, File};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use opdev_object::yaml;
use opdev_template::{Compat, FuncError, Host, Kind, List, Map, MapType, Signature, Str, Ty, Value};
use std::any::Any;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

const TYPE: &str = "engine.files";

/// The host object.
pub(super) struct Files {
    files: Rc<BTreeMap<String, Content>>,
    compat: Compat,
}

impl Files {
    pub(super) fn new(files: &[File], compat: Compat) -> Files {
        let files = files.iter().map(|file| (file.name.clone(), file.data.clone()));
        Files { files: Rc::new(files.collect()), compat }
    }

    fn glob(&self, pattern: &str) -> Files {
        let glob = Glob::parse(pattern);
        let keep = |path: &str| glob.as_ref().is_none_or(|glob| glob.matches(path));
        let files = self.files.iter().filter(|(path, _)| keep(path));
        let files = files.map(|(path, data)| (path.clone(), data.clone())).collect();
        Files { files: Rc::new(files), compat: self.compat }
    }

    /// YAML of base names and contents.
    fn as_yaml(&self, content: impl Fn(&[u8]) -> String) -> Value {
        let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
        let map: serde_json::Map<String, serde_json::Value> =
            self.files.iter().map(|(path, data)| (base(path), content(data).into())).collect();
        let text = yaml::to_string(&map.into());
        Value::str(text.strip_suffix('\n').unwrap_or(&text))
    }

    fn lines(&self, path: &str) -> Result<Value, FuncError> {
        let Some(data) = self.files.get(path) else { return Ok(Value::List(List::strings::<Str>([]))) };
        if data.is_empty() {
            if matches!(self.compat, Compat::V3 | Compat::V4) {
                return Ok(Value::List(List::strings::<Str>([])));
            }
            return Err(FuncError::new("runtime error: index out of range [-1]"));
        }
        let data = data.strip_suffix(b"\n").unwrap_or(data);
        Ok(Value::List(List::strings(data.split(|b| *b == b'\n').map(Str::from))))
    }
}

impl Host for Files {
    fn type_name(&self) -> Cow<'static, str> {
        Cow::Borrowed(TYPE)
    }

    fn kind(&self) -> Kind {
        Kind::Map
    }

    fn method(&self, name: &str) -> Option<Signature> {
        match name {
            "Get" | "GetBytes" | "Glob" | "Lines" => Some(Signature::with_parameters(&[Ty::Str])),
            "AsConfig" | "AsSecrets" => Some(Signature::with_parameters(&[])),
            _ => None,
        }
    }

    fn call(&self, name: &str, args: &[Value]) -> Result<Value, FuncError> {
        let path = args.first().and_then(Value::as_str).map(|text| text.text().into_owned());
        let path = path.unwrap_or_default();
        let data =
            || self.files.get(&path).map(|data| Str::from(Arc::clone(data.bytes()))).unwrap_or_default();
        match name {
            "Get" => Ok(Value::Str(data())),
            "GetBytes" => Ok(Value::List(List::bytes(data()))),
            "Glob" => Ok(Value::host(self.glob(&path))),
            "Lines" => self.lines(&path),
            "AsConfig" => Ok(self.as_yaml(|data| String::from_utf8_lossy(data).into_owned())),
            "AsSecrets" => Ok(self.as_yaml(|data| STANDARD.encode(data))),
            _ => Err(FuncError::new(format!("{TYPE} has no method {name}"))),
        }
    }

    fn underlying(&self) -> Option<Value> {
        let entries = self.files.iter();
        let entries = entries.map(|(path, data)| {
            (Str::from(path.as_str()), Value::List(List::bytes(Arc::clone(data.bytes()))))
        });
        Some(Value::Map(Map::typed(MapType::Files, entries.collect())))
    }

    fn weight(&self) -> usize {
        self.files.iter().map(|(path, data)| path.len() + data.len()).sum()
    }

    fn to_json(&self) -> serde_json::Value {
        let files = self.files.iter().map(|(path, data)| (path.clone(), STANDARD.encode(&**data).into()));
        serde_json::Value::Object(files.collect())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
