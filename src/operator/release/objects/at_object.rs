//! An error that names the object at which something failed, so that its template can be found. Pure.

use opdev_object::meta::{self, Gvk, ObjectRef};
use serde_json::Value;
use std::fmt;

/// A failure at one object, in Helm's words. It is an error itself, or the context of one.
#[derive(Debug)]
pub(crate) struct AtObject {
    words: String,
    object: ObjectRef,
}

impl AtObject {
    /// The object.
    pub(crate) fn object(&self) -> &ObjectRef {
        &self.object
    }

    pub(crate) fn new(words: impl Into<String>, object: ObjectRef) -> AtObject {
        AtObject { words: words.into(), object }
    }

    /// About an object as a template gave it, which may lack its kind or its name.
    pub(crate) fn rendered(words: impl Into<String>, object: &Value) -> AtObject {
        let gvk = Gvk::of(object).unwrap_or_default();
        let name = meta::name(object).unwrap_or_default().to_owned();
        AtObject::new(words, ObjectRef { gvk, name, ..ObjectRef::default() })
    }
}

impl fmt::Display for AtObject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

impl std::error::Error for AtObject {}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::Context as _;
    use serde_json::json;

    #[test]
    fn what_failed_at_an_object_is_found_below_what_was_said_of_it() {
        let at = AtObject::rendered("it has no name", &json!({"apiVersion": "v1", "kind": "Service"}));
        let error = anyhow::Error::new(at).context("failed to get candidate release");
        assert_eq!(error.downcast_ref::<AtObject>().unwrap().object().gvk.kind, "Service");
        let refused: anyhow::Result<()> = Err(anyhow::anyhow!("immutable"));
        let error = refused.with_context(|| AtObject::new("cannot patch", ObjectRef::default())).unwrap_err();
        assert_eq!(format!("{:#}", error.context("outer")), "outer: cannot patch: immutable");
    }
}
