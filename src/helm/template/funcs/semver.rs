//! `semver` and `semverCompare`, and the version object with its methods.

use std::any::Any;
use std::borrow::Cow;
use std::cmp::Ordering;

use super::super::error::FuncError;
use super::super::host::{Host, Signature, Ty};
use super::super::text::Str;
use super::super::value::{Kind, UintKind, Value};
use super::{Function, Outcome, fixed, string};
use crate::semver::{Constraint, Version};

pub(super) const FUNCTIONS: &[Function] = &[
    fixed("semver", &[Ty::Str], |_, args| {
        let version = Version::parse(&string(args, 0))?;
        Ok(Value::host(VersionObject { version, pointer: true }))
    }),
    fixed("semverCompare", &[Ty::Str, Ty::Str], |_, args| {
        let constraint = Constraint::parse(&string(args, 0))?;
        Ok(Value::Bool(constraint.check(&Version::parse(&string(args, 1))?)))
    }),
];

struct VersionObject {
    version: Version,
    pointer: bool,
}

const OTHER: Signature = Signature::with_parameters(&[Ty::Host("*semver.Version")]);

impl Host for VersionObject {
    fn type_name(&self) -> Cow<'static, str> {
        if self.pointer { "*semver.Version" } else { "semver.Version" }.into()
    }

    fn kind(&self) -> Kind {
        if self.pointer { Kind::Ptr } else { Kind::Struct }
    }

    fn method(&self, name: &str) -> Option<Signature> {
        Some(match name {
            "Major" | "Minor" | "Patch" | "Prerelease" | "Metadata" | "Original" | "String" | "IncMajor"
            | "IncMinor" | "IncPatch" => Signature::with_parameters(&[]),
            "Compare" | "Equal" | "LessThan" | "LessThanEqual" | "GreaterThan" | "GreaterThanEqual" => OTHER,
            "SetPrerelease" | "SetMetadata" => Signature::with_parameters(&[Ty::Str]),
            _ => return None,
        })
    }

    fn call(&self, name: &str, args: &[Value]) -> Outcome {
        let v = &self.version;
        let object = |version: Version| Value::host(VersionObject { version, pointer: false });
        let number = |n: u64| Value::Uint(UintKind::U64, n);
        Ok(match name {
            "Major" => number(v.major),
            "Minor" => number(v.minor),
            "Patch" => number(v.patch),
            "Prerelease" => v.pre.clone().into(),
            "Metadata" => v.metadata.clone().into(),
            "Original" => v.original.clone().into(),
            "String" => v.to_string().into(),
            "IncMajor" => object(v.increment(2)),
            "IncMinor" => object(v.increment(1)),
            "IncPatch" => object(v.increment(0)),
            "SetPrerelease" => object(Version { pre: string(args, 0), ..v.clone() }.renamed(&v.original)),
            "SetMetadata" => object(Version { metadata: string(args, 0), ..v.clone() }.renamed(&v.original)),
            _ => {
                let order = self.order(args)?;
                match name {
                    "Equal" => Value::Bool(order == Ordering::Equal),
                    "LessThan" => Value::Bool(order == Ordering::Less),
                    "LessThanEqual" => Value::Bool(order != Ordering::Greater),
                    "GreaterThan" => Value::Bool(order == Ordering::Greater),
                    "GreaterThanEqual" => Value::Bool(order != Ordering::Less),
                    _ => Value::Int(order as i64),
                }
            }
        })
    }

    fn text(&self) -> Option<Str> {
        Some(self.version.to_string().into())
    }

    fn to_json(&self) -> serde_json::Value {
        self.version.to_string().into()
    }

    fn equals(&self, other: &dyn Host) -> bool {
        other.as_any().downcast_ref::<VersionObject>().is_some_and(|o| o.version == self.version)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The version that a copy of any version is: 0.0.0.
pub(super) fn nothing() -> Value {
    let version = Version {
        major: 0,
        minor: 0,
        patch: 0,
        pre: String::new(),
        metadata: String::new(),
        original: String::new(),
    };
    Value::host(VersionObject { version, pointer: true })
}

impl VersionObject {
    fn order(&self, args: &[Value]) -> Result<Ordering, FuncError> {
        let Some(Value::Host(host)) = args.first() else {
            return Err("runtime error: invalid memory address or nil pointer dereference".into());
        };
        let other = host.as_any().downcast_ref::<VersionObject>().ok_or("not a version")?;
        Ok(self.version.compare(&other.version))
    }
}
