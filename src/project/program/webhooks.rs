//! The webhooks that a program serves, as its project describes them in its kustomization, or else in
//! `config/webhook`, and in `config/crd/patches`, made over so that an API server on this machine reaches the
//! program: by URL, or, where the program makes its certificate itself, by its Service. Reads files; writes
//! nothing.

use super::conversion;
use super::kustomization::{Kustomized, documents};
use super::manager_manifest;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use opdev_object::meta;
use opdev_os::read;
use opdev_os::small_file::small_text;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

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

/// A project's settings of its webhooks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Webhooks {
    /// Admission configurations, as they stand in the files.
    admission: Vec<Value>,
    /// Names of CRDs whose versions the program converts.
    pub conversion: Vec<String>,
    /// The prefix that names still lack, where the kustomization sets one.
    prefix: Option<String>,
    /// Where the program makes its certificate itself.
    pub own: Option<OwnCertificate>,
    /// True if they are among what the project deploys, or nobody knows what that is.
    deployed: bool,
    /// Why the CRDs that it converts are read from patches alone, where they are.
    pub unbuilt: Option<String>,
}

/// A program that makes its certificate itself: it keeps it in a Secret, waits until the Secret is mounted,
/// and writes its authority into the webhook configurations, which lead to its Service.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnCertificate {
    /// The namespace of Secret and Service; `None` where the kustomization names none.
    pub namespace: Option<String>,
    /// The Secret's name.
    pub secret: String,
    /// Where the Deployment mounts it.
    pub folder: PathBuf,
    /// Names of its Services as the files write them, and their targets.
    services: Vec<Value>,
}

impl OwnCertificate {
    /// Where the manager's Deployment mounts a Secret that the same kustomization deploys, without content.
    fn find(kustomized: &Kustomized) -> Option<OwnCertificate> {
        let manager = &manager_manifest::manager(kustomized, None)?.object;
        let container = manager_manifest::container(manager)?;
        let (mount, secret) = manager_manifest::mounts(manager, container).find_map(|(mount, volume)| {
            let name = volume["secret"]["secretName"].as_str()?;
            let is_empty = |secret: &&Value| secret["data"].is_null() && secret["stringData"].is_null();
            let deployed = kustomized.of_kind("Secret").filter(is_empty);
            deployed.into_iter().any(|secret| secret["metadata"]["name"] == name).then_some((mount, name))
        })?;
        Some(OwnCertificate {
            namespace: kustomized.namespace.clone(),
            secret: secret.to_owned(),
            folder: PathBuf::from(mount["mountPath"].as_str()?),
            services: kustomized.of_kind("Service").cloned().collect(),
        })
    }
}

impl Webhooks {
    /// Reads `config/webhook` and the CRDs with their patches.
    pub fn read(root: &Path, manifests: Option<&Path>, kustomized: &Kustomized) -> Webhooks {
        let is_configuration =
            |object: &Value| CONFIGURATIONS.iter().any(|(kind, _)| object["kind"].as_str() == Some(*kind));
        let (conversion, unbuilt) = conversion::names(root, manifests);
        let mut admission: Vec<Value> =
            CONFIGURATIONS.iter().flat_map(|(kind, _)| kustomized.of_kind(kind)).cloned().collect();
        let own = OwnCertificate::find(kustomized).filter(|_| !admission.is_empty());
        // Objects of a kustomization have their final names.
        let is_named = !admission.is_empty();
        let deployed = is_named || kustomized.parts.is_empty() || !conversion.is_empty();
        let prefix = Some(&kustomized.prefix).filter(|prefix| !prefix.is_empty());
        let prefix = prefix.map(|prefix| if is_named { String::new() } else { prefix.clone() });
        if admission.is_empty() {
            admission = objects(&root.join("config/webhook")).into_iter().filter(is_configuration).collect();
        }
        Webhooks { admission, conversion, prefix, own, deployed, unbuilt }
    }

    /// Asks if the project's files have admission configurations.
    pub fn has_admission(&self) -> bool {
        !self.admission.is_empty()
    }

    /// These webhooks with admission configurations that markers ask for.
    pub fn with_admission(self, admission: Vec<Value>) -> Webhooks {
        Webhooks { admission, ..self }
    }

    /// Returns true if the project deploys them: their files may lie beside a kustomization that leaves
    /// them out.
    pub fn are_deployed(&self) -> bool {
        self.deployed && !self.is_empty()
    }

    /// Returns true if there is none.
    pub fn is_empty(&self) -> bool {
        self.admission.is_empty() && self.conversion.is_empty()
    }

    /// The admission configurations for a program on `port`, whose certificate is of `authority` (PEM).
    pub fn configurations(&self, project: &str, port: u16, authority: &str) -> Vec<Value> {
        let prefix = self.prefix.clone().unwrap_or_else(|| format!("{project}-"));
        self.admission.iter().map(|object| by_url(object, (&prefix, project), port, authority)).collect()
    }

    /// The objects that a program that makes its certificate itself needs before it starts: its namespace,
    /// the empty Secret, its Services, and the admission configurations that lead to them. `namespace` counts
    /// where the project names none.
    pub fn beside(&self, own: &OwnCertificate, project: &str, namespace: &str, port: u16) -> Vec<Value> {
        let namespace = own.namespace.as_deref().unwrap_or(namespace);
        let named = |name: &str| json!({ "name": name, "namespace": namespace });
        let mut found = vec![
            json!({ "apiVersion": "v1", "kind": "Namespace", "metadata": { "name": namespace } }),
            json!({ "apiVersion": "v1", "kind": "Secret", "metadata": named(&own.secret) }),
        ];
        for service in &own.services {
            let mut metadata = named(service["metadata"]["name"].as_str().unwrap_or_default());
            meta::put(&mut metadata, &["annotations"], json!({ "opdev.dev/local-port": port.to_string() }));
            // There are no pods that a selector could find.
            let spec = json!({ "ports": service["spec"]["ports"] });
            found.push(json!({ "apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec }));
        }
        for object in &self.admission {
            let mut made = object.clone();
            meta::put(&mut made, &["metadata"], metadata(object, "", project));
            for service in client_configs(&mut made).filter_map(|config| config.get_mut("service")) {
                if service["name"].is_string() {
                    meta::put(service, &["namespace"], namespace);
                }
            }
            found.push(made);
        }
        found
    }

    /// The conversion of a CRD by a program on `port`.
    pub fn conversion_by_url(port: u16, authority: &str) -> Value {
        json!({
            "strategy": "Webhook",
            "webhook": {
                "conversionReviewVersions": ["v1"],
                "clientConfig": {
                    // A merge takes away what the definition's own file says; both together are refused.
                    "service": null,
                    "url": format!("https://127.0.0.1:{port}/convert"),
                    "caBundle": STANDARD.encode(authority),
                },
            },
        })
    }
}

/// The name that an admission configuration has in the cluster, and the label that it is found by.
fn metadata(object: &Value, prefix: &str, project: &str) -> Value {
    let name = object["metadata"]["name"].as_str().unwrap_or("webhooks");
    json!({ "name": format!("{prefix}{name}"), "labels": { LABEL: project } })
}

/// Where the webhooks of a configuration are reached.
fn client_configs(configuration: &mut Value) -> impl Iterator<Item = &mut Value> {
    let webhooks = configuration.get_mut("webhooks").and_then(Value::as_array_mut);
    webhooks.into_iter().flatten().filter_map(|webhook| webhook.get_mut("clientConfig"))
}

fn by_url(object: &Value, (prefix, project): (&str, &str), port: u16, authority: &str) -> Value {
    let mut made = object.clone();
    meta::put(&mut made, &["metadata"], metadata(object, prefix, project));
    for config in client_configs(&mut made) {
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

pub(super) fn objects(folder: &Path) -> Vec<Value> {
    let mut files = read::paths(folder);
    files.retain(|path| path.extension().is_some_and(|end| end == "yaml" || end == "yml"));
    let texts = files.iter().filter_map(|path| small_text(path));
    texts.flat_map(|text| documents(&text).collect::<Vec<_>>()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(root: &Path) -> Webhooks {
        Webhooks::read(root, None, &Kustomized::read(root))
    }

    #[test]
    fn services_become_urls_on_this_machine() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        assert!(read(folder.path()).is_empty());
        write(
            "config/webhook/manifests.yaml",
            "---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
             metadata: { name: mutating-webhook-configuration, annotations: { a: b } }\nwebhooks:\n\
             - name: m.kb.io\n  clientConfig: { service: { name: webhook-service, namespace: system, path: /mutate } }\n\
             - name: far.kb.io\n  clientConfig: { url: https://example.com }\n",
        );
        assert!(read(folder.path()).are_deployed());
        write("config/default/kustomization.yaml", "resources: [manager.yaml]\n");
        write(
            "config/default/manager.yaml",
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: manager }\n",
        );
        assert!(!read(folder.path()).are_deployed() && read(folder.path()).has_admission());
        std::fs::remove_dir_all(folder.path().join("config/default")).unwrap();
        write(
            "config/crd/patches/webhook_in_a.yaml",
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: { name: as.b.c }\n\
             spec: { conversion: { strategy: Webhook } }\n",
        );
        let found = read(folder.path());
        assert_eq!(found.conversion, ["as.b.c"]);
        // A scaffold leaves patches beside its kustomization, which do not count.
        write(
            "config/crd/kustomization.yaml",
            "resources: []\npatchesStrategicMerge:\n#- patches/webhook_in_a.yaml\n",
        );
        assert!(read(folder.path()).conversion.is_empty());
        for patches in [
            "patchesStrategicMerge: [patches/webhook_in_a.yaml]",
            "patches: [{path: patches/webhook_in_a.yaml}]",
        ] {
            write("config/crd/kustomization.yaml", patches);
            assert_eq!(read(folder.path()).conversion, ["as.b.c"], "{patches}");
        }
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

    #[test]
    fn a_program_with_a_certificate_of_its_own_finds_secret_service_and_configurations() {
        let folder = tempfile::tempdir().unwrap();
        for (path, text) in [
            (
                "config/default/kustomization.yaml",
                "namespace: demo-system\nnamePrefix: demo-\nresources: [all.yaml]\npatches:\n\
                 - target: { kind: MutatingWebhookConfiguration }\n  patch: |-\n\
                 \x20   - { op: add, path: /webhooks/0/failurePolicy, value: Fail }\n",
            ),
            (
                "config/default/all.yaml",
                "apiVersion: apps/v1\nkind: Deployment\nmetadata: { name: manager }\nspec:\n  template:\n    spec:\n\
                 \x20     containers:\n      - name: manager\n\
                 \x20       volumeMounts: [ { name: cert, mountPath: /tmp/certs } ]\n\
                 \x20     volumes: [ { name: cert, secret: { secretName: server-cert } } ]\n\
                 ---\napiVersion: v1\nkind: Secret\nmetadata: { name: server-cert }\n\
                 ---\napiVersion: v1\nkind: Service\nmetadata: { name: hooks, namespace: system }\n\
                 spec: { selector: { a: b }, ports: [ { port: 443, targetPort: 9443 } ] }\n\
                 ---\napiVersion: admissionregistration.k8s.io/v1\nkind: MutatingWebhookConfiguration\n\
                 metadata: { name: mutating }\nwebhooks:\n\
                 - name: m.kb.io\n  clientConfig: { service: { name: hooks, namespace: system, path: /m } }\n",
            ),
        ] {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let found = read(folder.path());
        let own = found.own.clone().unwrap();
        assert_eq!(
            (own.secret.as_str(), own.folder.as_path()),
            ("demo-server-cert", Path::new("/tmp/certs"))
        );
        let beside = found.beside(&own, "shop", "default", 9444);
        let name = |object: &Value| {
            let name = |at: &str| object["metadata"][at].as_str().unwrap_or_default().to_owned();
            format!("{} {}/{}", object["kind"].as_str().unwrap(), name("namespace"), name("name"))
        };
        assert_eq!(
            beside.iter().map(name).collect::<Vec<_>>(),
            [
                "Namespace /demo-system",
                "Secret demo-system/demo-server-cert",
                "Service demo-system/demo-hooks",
                "MutatingWebhookConfiguration /demo-mutating",
            ]
        );
        assert_eq!(beside[1].get("data"), None, "what the program keeps there stays");
        assert_eq!(beside[2]["metadata"]["annotations"]["opdev.dev/local-port"], "9444");
        assert_eq!(beside[2]["spec"].get("selector"), None);
        let webhook = &beside[3]["webhooks"][0];
        assert_eq!(
            webhook["clientConfig"],
            json!({ "service": { "name": "demo-hooks", "namespace": "demo-system", "path": "/m" } })
        );
        assert_eq!(webhook["failurePolicy"], "Fail");
        assert_eq!(beside[3]["metadata"]["labels"][LABEL], "shop");
    }
}
