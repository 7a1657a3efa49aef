//! Conflicts: two patches of one object that touch one place with different intent.

use super::terms::{DIRECTIVE, Object, RETAIN_KEYS, field, items};
use crate::schema::{PatchRule, SchemaRef};
use serde_json::Value;

pub(super) fn objects(ours: &Object, theirs: &Object, schema: &SchemaRef) -> bool {
    ours.iter().filter(|(key, _)| !matches!(key.as_str(), DIRECTIVE | RETAIN_KEYS)).any(|(key, our)| {
        let (rule, inner) = field(schema, key);
        theirs.get(key).is_some_and(|their| values(our, their, &rule, &inner))
    })
}

fn values(ours: &Value, theirs: &Value, rule: &PatchRule, schema: &SchemaRef) -> bool {
    match (ours, theirs) {
        (Value::Object(a), Value::Object(b)) => {
            a.get(DIRECTIVE) != b.get(DIRECTIVE) || (!rule.replace && objects(a, b, schema))
        }
        (Value::Array(a), Value::Array(b)) => lists(a, b, rule, &items(schema)),
        _ => ours != theirs,
    }
}

fn lists(ours: &[Value], theirs: &[Value], rule: &PatchRule, schema: &SchemaRef) -> bool {
    let inner = PatchRule::default();
    if rule.merge {
        let Some(key) = rule.merge_key.as_deref() else { return false };
        return ours.iter().any(|our| {
            let same = theirs.iter().find(|their| their.get(key) == our.get(key));
            same.is_some_and(|their| values(our, their, &inner, schema))
        });
    }
    if ours.len() != theirs.len() {
        return true;
    }
    if ours.iter().any(Value::is_object) {
        return ours.iter().zip(theirs).any(|(our, their)| values(our, their, &inner, schema));
    }
    let sorted = |list: &[Value]| {
        let mut texts: Vec<String> = list.iter().map(Value::to_string).collect();
        texts.sort();
        texts.dedup();
        texts
    };
    sorted(ours) != sorted(theirs)
}
