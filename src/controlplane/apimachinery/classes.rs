//! Default classes: the class of an object that names none, such as the StorageClass of a claim or the
//! IngressClass of an Ingress.

use opdev_object::meta;
use serde_json::Value;
use std::cmp::Reverse;
use std::sync::Arc;

/// The annotations that make a StorageClass the default one; the second is from before 1.6 and still counts.
pub const DEFAULT_STORAGE_CLASS: [&str; 2] =
    ["storageclass.kubernetes.io/is-default-class", "storageclass.beta.kubernetes.io/is-default-class"];
/// The annotation that makes an IngressClass the default one.
pub const DEFAULT_INGRESS_CLASS: [&str; 1] = ["ingressclass.kubernetes.io/is-default-class"];

/// Returns true if one of these annotations makes a class the default one.
pub fn is_default(class: &Value, annotations: &[&str]) -> bool {
    annotations.iter().any(|name| meta::annotation(class, name) == Some("true"))
}

/// The default one of some classes: the newest that has one of these annotations, and of several that were
/// created in one second the first by name.
pub fn default_class(mut classes: Vec<Arc<Value>>, annotations: &[&str]) -> Option<Arc<Value>> {
    classes.retain(|class| is_default(class, annotations));
    let text = |class: &Value, field: &str| class["metadata"][field].as_str().unwrap_or_default().to_owned();
    classes.into_iter().min_by_key(|class| (Reverse(text(class, "creationTimestamp")), text(class, "name")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_newest_class_that_is_marked_is_the_default_one() {
        let class = |name: &str, second: u32, annotation: &str| {
            Arc::new(
                json!({"metadata": {"name": name, "creationTimestamp": format!("2026-01-01T00:00:0{second}Z"),
                "annotations": {annotation: "true"}}}),
            )
        };
        let [now, before] = DEFAULT_STORAGE_CLASS;
        let named = |classes: &[&Arc<Value>]| {
            let classes = classes.iter().map(|class| Arc::clone(class)).collect();
            default_class(classes, &DEFAULT_STORAGE_CLASS).map(|class| class["metadata"]["name"].clone())
        };
        let (old, a, b) = (class("old", 1, now), class("a", 2, before), class("b", 2, now));
        assert_eq!(named(&[&old, &b, &a]), Some(json!("a")), "the first by name");
        assert_eq!(named(&[&old, &class("other", 3, "example.com/default")]), Some(json!("old")));
        assert_eq!(named(&[]), None);
    }
}
