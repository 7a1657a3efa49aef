//! The webhooks that a program serves, as its project describes them in `config/webhook` and `config/crd/patches`, made
//! over so that an API server on this machine reaches the program by URL. Reads files; writes nothing.

use super::manager_manifest::documents;
use super::small_file::small_text;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use std::path::Path;

/// The label of a configuration that opdev made over; its value is the project's name.
pub const LABEL: &str = "opdev.dev/process";
/// Where controller-runtime's webhook server listens unless it is told otherwise.
pub const PORT: u16 = 9443;

/// The kinds of configurations and the paths of their lists.
pub const CONFIGURATIONS: [(&str, &str); 2] = [
    ("MutatingWebhookConfiguration", "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations"),
    (
        "ValidatingWebhookConfiguration",
        "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations",
    ),
];

/// What a project says about its webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Webhooks {
    /// Admission configurations, as they stand in the files.
    admission: Vec<Value>,
    /// Names of CRDs whose versions the program converts.
    pub conversion: Vec<String>,
}

impl Webhooks {
    /// Reads `config/webhook` and the patches of CRDs.
    pub fn read(root: &Path) -> Webhooks {
        let is_configuration =
            |object: &Value| CONFIGURATIONS.iter().any(|(kind, _)| object["kind"].as_str() == Some(*kind));
        let converts = |object: &Value| {
            object["kind"] == "CustomResourceDefinition"
                && object["spec"]["conversion"]["strategy"] == "Webhook"
        };
        let name = |object: Value| object["metadata"]["name"].as_str().map(str::to_owned);
        let mut conversion: Vec<String> = ["config/crd/patches", "config/crd/bases"]
            .iter()
            .flat_map(|folder| objects(&root.join(folder)))
            .filter(converts)
            .filter_map(name)
            .collect();
        conversion.sort();
        conversion.dedup();
        Webhooks {
            admission: objects(&root.join("config/webhook")).into_iter().filter(is_configuration).collect(),
            conversion,
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.conversion.is_empty()
    }

    /// The admission configurations for a program on `port`, whose certificate is of `authority` (PEM).
    pub fn configurations(&self, project: &str, port: u16, authority: &str) -> Vec<Value> {
        self.admission.iter().map(|object| by_url(object, project, port, authority)).collect()
    }

    /// What a CRD says about its conversion by a program on `port`.
    pub fn conversion_by_url(port: u16, authority: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    "url": format!("https://127.0.0.1:{port}/convert"),
                    "caBundle": STANDARD.encode(authority),
                },
            },
        })
    }
}

fn by_url(object: &Value, project: &str, port: u16, authority: &str) -> Value {
    let mut made = object.clone();
    let name = object["metadata"]["name"].as_str().unwrap_or("webhooks");
    made["metadata"] = json!({ "name": format!("{project}-{name}"), "labels": { LABEL: project } });
    for webhook in made["webhooks"].as_array_mut().into_iter().flatten() {
        let config = &mut webhook["clientConfig"];
        if let Some(path) = config["service"].as_object().map(|service| service.get("path").cloned()) {
            let path = path.as_ref().and_then(Value::as_str).unwrap_or("/").to_owned();
            *config = json!({
                "url": format!("https://127.0.0.1:{port}{path}"),
                "caBundle": STANDARD.encode(authority),
            });
        }
    }
    made
}

fn objects(folder: &Path) -> Vec<Value> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().filter_map(Result::ok);
    let mut files: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"))
        .collect();
    files.sort();
    let texts = files.iter().filter_map(|path| small_text(path));
    texts.flat_map(|text| documents(&text).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn services_become_urls_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(Webhooks::read(folder.path()).is_empty());
        write(
            "config/webhook/manifests.yaml",
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
             metadata: { name: mutating-webhook-configuration, annotations: { a: b } }\nwebhooks:\n\
             - name: m.kb.io\n  clientConfig: { service: { name: webhook-service, namespace: system, path: /mutate } }\n\
             - name: far.kb.io\n  clientConfig: { url: https://example.com }\n",
        );
        write(
            "config/crd/patches/webhook_in_a.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: as.b.c }\n\
             spec: { conversion: { strategy: Webhook } }\n",
        );
        let found = Webhooks::read(folder.path());
        assert_eq!(found.conversion, ["as.b.c"]);
        let made = found.configurations("demo", 9443, "PEM");
        assert_eq!(
            made[0]["metadata"],
            json!({ "name": "demo-mutating-webhook-configuration", "labels": { LABEL: "demo" } })
        );
        let configs: Vec<&Value> =
            made[0]["webhooks"].as_array().unwrap().iter().map(|webhook| &webhook["clientConfig"]).collect();
        assert_eq!(*configs[0], json!({ "url": "https://127.0.0.1:9443/mutate", "caBundle": "UEVN" }));
        assert_eq!(*configs[1], json!({ "url": "https://example.com" }));
    }
}
