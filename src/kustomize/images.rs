//! `images`: other names, tags and digests for containers' images.

use crate::error::{ErrorKind, FieldError, KustomizationError};
use crate::fields::{CreateMissing, FieldSpec, visit};
use crate::kustomization::Image;
use crate::resource::Resource;
use regex::Regex;
use serde_json::Value;

/// One entry of `images`. Its name is a regular expression.
pub(crate) fn images(
    resources: &mut [Resource],
    image: &Image,
    specs: &[FieldSpec],
) -> Result<(), ErrorKind> {
    let pattern = format!("^{}(:[a-zA-Z0-9_.{{}}-]*)?(@sha256:[a-zA-Z0-9_.{{}}-]*)?$", image.name);
    let pattern = Regex::new(&pattern).map_err(|error| KustomizationError::ImagePattern {
        name: image.name.clone(),
        message: error.to_string(),
    })?;
    for resource in resources.iter_mut().filter(|resource| resource.kind() != "CustomResourceDefinition") {
        anywhere(&mut resource.object, &mut |text| pattern.is_match(text).then(|| changed(text, image)));
        for spec in specs {
            visit(&mut resource.object, spec, CreateMissing::Nothing, &mut |place| {
                let Some(text) = place.as_str() else {
                    return if place.is_array() || place.is_object() {
                        Err(FieldError::Image.into())
                    } else {
                        Ok(())
                    };
                };
                if pattern.is_match(text) {
                    *place = Value::from(changed(text, image));
                }
                Ok(())
            })
            .map_err(|why| why.in_object(resource.id().show()))?;
        }
    }
    Ok(())
}

/// Images of containers at any depth, such as those of a CronJob, or in a custom resource.
fn anywhere(value: &mut Value, change: &mut dyn FnMut(&str) -> Option<String>) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| anywhere(item, change)),
        Value::Object(map) => {
            for (key, field) in map {
                anywhere(field, change);
                if !matches!(key.as_str(), "containers" | "initContainers") {
                    continue;
                }
                for container in field.as_array_mut().into_iter().flatten() {
                    let new = container.get("image").and_then(Value::as_str).and_then(&mut *change);
                    if let Some(new) = new {
                        container["image"] = Value::from(new);
                    }
                }
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

fn changed(text: &str, image: &Image) -> String {
    let (name, tag, digest) = split(text);
    let mut name = if image.new_name.is_empty() { name.to_owned() } else { image.new_name.clone() };
    let (tag, digest) = match (image.new_tag.as_str(), image.digest.as_str()) {
        ("", "") if !image.tag_suffix.is_empty() => (format!("{tag}{}", image.tag_suffix), ""),
        ("", "") => (tag.to_owned(), digest),
        (tag, digest) => (tag.to_owned(), digest),
    };
    if !tag.is_empty() {
        name = format!("{name}:{tag}");
    }
    if !digest.is_empty() {
        name = format!("{name}@{digest}");
    }
    name
}

/// Name, tag and digest. A colon before the first slash belongs to a registry's port.
fn split(image: &str) -> (&str, &str, &str) {
    let from = image.find('/').unwrap_or(0);
    let (before_digest, digest) = match image[from..].find('@') {
        Some(at) => (&image[..from + at], &image[from + at + 1..]),
        None => (image, ""),
    };
    match before_digest[from..].find(':') {
        Some(at) => (&before_digest[..from + at], &before_digest[from + at + 1..], digest),
        None => (before_digest, "", digest),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn images_are_taken_apart_and_put_together() {
        assert_eq!(split("host:5000/a/b:1.2@sha256:ff"), ("host:5000/a/b", "1.2", "sha256:ff"));
        assert_eq!(split("a"), ("a", "", ""));
        let image = |new_tag: &str, digest: &str| Image {
            new_tag: new_tag.to_owned(),
            digest: digest.to_owned(),
            ..Image::default()
        };
        assert_eq!(changed("a:1@sha256:ff", &image("2", "")), "a:2");
        assert_eq!(changed("a:1", &image("", "sha256:00")), "a@sha256:00");
        assert_eq!(changed("a:1", &image("2", "sha256:00")), "a:2@sha256:00");
        assert_eq!(changed("a:1", &image("", "")), "a:1");
    }
}
