//! What the Kubernetes API says about its built-in definitions and their fields, in the words of `kubectl explain`.
//! Apart from the facts, for hardly anybody asks: they are decoded for each who does, and not kept.

use crate::facts::inflate;
use std::collections::HashMap;

static DESCRIPTIONS: &[u8] = include_bytes!("assets/descriptions.tsv.gz");

/// All descriptions.
#[derive(Debug)]
pub struct Descriptions {
    by_definition: HashMap<String, HashMap<String, String>>,
}

impl Descriptions {
    /// Decodes them: a megabyte, some milliseconds.
    pub fn read() -> Descriptions {
        let text = String::from_utf8(inflate(DESCRIPTIONS)).expect("embedded descriptions are UTF-8");
        let mut by_definition: HashMap<String, HashMap<String, String>> = HashMap::new();
        for line in text.lines() {
            let mut parts = line.splitn(3, '\t');
            let (Some(definition), Some(field), Some(text)) = (parts.next(), parts.next(), parts.next())
            else {
                continue;
            };
            let text = serde_json::from_str(text).expect("embedded descriptions are JSON texts");
            by_definition.entry(definition.to_owned()).or_default().insert(field.to_owned(), text);
        }
        Descriptions { by_definition }
    }

    /// Of a definition, such as `io.k8s.api.core.v1.Pod`.
    pub fn definition(&self, name: &str) -> Option<&str> {
        self.field(name, "")
    }

    /// Of a field of a definition.
    pub fn field(&self, definition: &str, field: &str) -> Option<&str> {
        self.by_definition.get(definition)?.get(field).map(String::as_str)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::facts;

    #[test]
    fn every_definition_of_a_kind_says_what_it_is() {
        let descriptions = Descriptions::read();
        let kinds =
            facts().resources().iter().filter_map(|resource| facts().definition_name(&resource.gvk()));
        let silent: Vec<&str> = kinds.filter(|name| descriptions.definition(name).is_none()).collect();
        assert_eq!(silent, [""; 0]);
        let pod = "io.k8s.api.core.v1.Pod";
        assert!(descriptions.field(pod, "spec").is_some() && descriptions.field(pod, "no").is_none());
    }
}
