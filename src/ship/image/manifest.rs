//! One image: how it starts, which layers it has, on which base it stands.

use super::layer::Layer;
use opdev_object::meta;
use opdev_os::sha256;
use opdev_pull::BaseImage;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The working directory and home of the operator, as in the image of helm-operator.
pub const HOME: &str = "opt/helm";
/// Where the program lies, beside the place of helm-operator.
pub const BINARY: &str = "usr/local/bin/opdev";

/// The user of images without a base, by number: a kubelet must see that it is not root.
const USER: &str = "65532:65532";
const PATH: &str = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

pub(super) const MANIFEST: &str = "application/vnd.oci.image.manifest.v1+json";
pub(super) const CONFIG: &str = "application/vnd.oci.image.config.v1+json";

/// The parts of an image beside its layers.
#[derive(Clone, Debug, Default)]
pub struct ImageSettings {
    /// The processor, in Go's word: `amd64` or `arm64`.
    pub architecture: String,
    /// The time of the image, RFC 3339.
    pub created: String,
    /// The labels, in the keys of `org.opencontainers.image`.
    pub labels: BTreeMap<String, String>,
}

/// An image for one platform.
#[derive(Clone, Debug)]
pub struct Image {
    /// The processor.
    pub architecture: String,
    /// The layers, the lowest first.
    pub layers: Vec<Layer>,
    /// The config and its digest.
    pub config: (String, Arc<[u8]>),
    /// The manifest and its digest.
    pub manifest: (String, Arc<[u8]>),
}

impl Image {
    /// Puts layers on a base, or on nothing.
    pub fn new(settings: &ImageSettings, base: Option<&BaseImage>, own: Vec<Layer>) -> Image {
        // A registry may have sent anything.
        let mut config =
            base.map(|base| base.config.clone()).filter(Value::is_object).unwrap_or_else(|| json!({}));
        let mut layers = base.map(layers_of).unwrap_or_default();
        let added = own.len();
        layers.extend(own);
        // They are those of the base.
        for stale in ["container", "container_config", "docker_version", "id", "parent"] {
            config.as_object_mut().map(|config| config.remove(stale));
        }
        meta::put(&mut config, &["architecture"], settings.architecture.as_str());
        meta::put(&mut config, &["os"], "linux");
        meta::put(&mut config, &["created"], json!(settings.created));
        let mut history = config["history"].as_array().cloned().unwrap_or_default();
        history.extend((0..added).map(|_| json!({"created": settings.created, "created_by": "opdev image"})));
        meta::put(&mut config, &["history"], history);
        let diff_ids: Vec<&str> = layers.iter().map(|layer| layer.diff_id.as_str()).collect();
        meta::put(&mut config, &["rootfs"], json!({"type": "layers", "diff_ids": diff_ids}));
        let mut how = config.get("config").cloned().unwrap_or_default();
        start(&mut how, &settings.labels, base.is_some());
        meta::put(&mut config, &["config"], how);
        let config: Arc<[u8]> = config.to_string().into_bytes().into();
        let config = (sha256::named(&config), config);
        let described: Vec<Value> = layers
            .iter()
            .map(|layer| descriptor(&layer.media_type, &layer.digest, layer.bytes.len()))
            .collect();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": descriptor(CONFIG, &config.0, config.1.len()),
            "layers": described,
            "annotations": settings.labels,
        });
        let manifest: Arc<[u8]> = manifest.to_string().into_bytes().into();
        let manifest = (sha256::named(&manifest), manifest);
        Image { architecture: settings.architecture.clone(), layers, config, manifest }
    }

    /// How the manifest is listed in an index.
    pub(super) fn descriptor(&self) -> Value {
        let mut described = descriptor(MANIFEST, &self.manifest.0, self.manifest.1.len());
        meta::put(&mut described, &["platform"], json!({"architecture": self.architecture, "os": "linux"}));
        described
    }
}

pub(super) fn descriptor(media_type: &str, digest: &str, size: usize) -> Value {
    json!({"mediaType": media_type, "digest": digest, "size": size})
}

fn layers_of(base: &BaseImage) -> Vec<Layer> {
    let ids = base.config["rootfs"]["diff_ids"].as_array().map(Vec::as_slice).unwrap_or_default();
    let id = |at: usize| ids.get(at).and_then(Value::as_str).unwrap_or_default();
    let layers = base.layers.iter().enumerate();
    layers
        .map(|(at, layer)| Layer::of_base(&layer.media_type, &layer.digest, id(at), Arc::clone(&layer.bytes)))
        .collect()
}

/// Sets the start of the image in its configuration.
fn start(config: &mut Value, labels: &BTreeMap<String, String>, has_base: bool) {
    if !config.is_object() {
        *config = Value::Object(Map::new());
    }
    let mut variables: Vec<String> = config["Env"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .filter(|variable| !variable.starts_with("HOME="))
        .map(str::to_owned)
        .collect();
    if !has_base {
        variables.push(PATH.to_owned());
    }
    variables.push(format!("HOME=/{HOME}"));
    meta::put(config, &["Env"], variables);
    meta::put(config, &["User"], USER);
    meta::put(config, &["WorkingDir"], format!("/{HOME}"));
    meta::put(config, &["Entrypoint"], json!([format!("/{BINARY}"), "operate"]));
    if let Some(config) = config.as_object_mut() {
        // These settings of the base belong to its own program.
        for stale in ["Cmd", "Healthcheck", "ArgsEscaped", "Image"] {
            config.remove(stale);
        }
        let all = config.entry("Labels").or_insert_with(|| json!({}));
        if !all.is_object() {
            *all = json!({});
        }
        for (name, value) in labels {
            meta::put(all, &[name], value.as_str());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Entries;
    use opdev_pull::BaseLayer;

    #[test]
    fn a_base_keeps_its_layers_and_variables_and_loses_its_command() {
        let config = json!({
            "architecture": "amd64", "os": "linux", "docker_version": "1", "created": "2020-01-01T00:00:00Z",
            "config": {"Env": ["SSL_CERT_FILE=/a", "HOME=/root"], "Cmd": ["sh"], "User": "0", "Labels": {"a": "1"}},
            "rootfs": {"type": "layers", "diff_ids": ["sha256:plain"]}, "history": [{"created_by": "base"}],
        });
        let layer = BaseLayer {
            media_type: "application/vnd.docker.image.rootfs.diff.tar.gzip".to_owned(),
            digest: "sha256:packed".to_owned(),
            bytes: (*b"packed").into(),
        };
        let base = BaseImage { digest: "sha256:base".to_owned(), config, layers: vec![layer] };
        let mut entries = Entries::default();
        entries.file("a", 0o644, b"1".as_slice());
        let own = Layer::pack(&entries, 0).unwrap();
        let labels = BTreeMap::from([("org.opencontainers.image.title".to_owned(), "cache".to_owned())]);
        let settings = ImageSettings {
            architecture: "amd64".to_owned(),
            created: "1970-01-01T00:00:00Z".to_owned(),
            labels,
        };
        let image = Image::new(&settings, Some(&base), vec![own.clone()]);
        let read = |bytes: &[u8]| serde_json::from_slice::<Value>(bytes).unwrap();
        let config = read(&image.config.1);
        assert_eq!(config["rootfs"]["diff_ids"], json!(["sha256:plain", own.diff_id]));
        assert_eq!(
            config["config"],
            json!({
                "Env": ["SSL_CERT_FILE=/a", "HOME=/opt/helm"], "User": "65532:65532", "WorkingDir": "/opt/helm",
                "Entrypoint": ["/usr/local/bin/opdev", "operate"],
                "Labels": {"a": "1", "org.opencontainers.image.title": "cache"},
            })
        );
        assert_eq!(config["history"].as_array().unwrap().len(), 2);
        assert!(config.get("docker_version").is_none());
        let manifest = read(&image.manifest.1);
        assert_eq!(manifest["layers"][0]["digest"], "sha256:packed");
        assert_eq!(manifest["layers"][0]["mediaType"], "application/vnd.oci.image.layer.v1.tar+gzip");
        assert_eq!(manifest["config"]["digest"], sha256::named(&image.config.1));

        // A registry may send anything for a config. (It panicked.)
        for config in
            [json!("x"), json!([1]), json!({"config": "x", "history": 1}), json!({"config": {"Labels": "x"}})]
        {
            let base = BaseImage { config, ..base.clone() };
            let image = Image::new(&settings, Some(&base), vec![own.clone()]);
            let config = read(&image.config.1);
            assert_eq!(config["config"]["Labels"]["org.opencontainers.image.title"], "cache");
        }
    }
}
