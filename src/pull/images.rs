//! Images in registries: the base of an image is downloaded, an image that was made is uploaded.

use super::reference::{is_digest, is_host, is_repository, is_tag};
use super::registry_client::{RegistryClient, Rights};
use super::web::Web;
use super::{Access, Homes};
use anyhow::{Context as _, Result, bail};
use serde_json::Value;
use std::sync::Arc;

/// Bytes that all layers of a base image may have together, as packed as they come.
const LARGEST_BASE: u64 = 1 << 30;
/// Layers, and manifests in an index.
const MOST: usize = 128;
/// Bytes of an image's config.
const LARGEST_CONFIG: u64 = 8 << 20;

/// An image in a registry, such as `registry.example.com/team/operator:v1`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReference {
    host: String,
    repository: String,
    tag: Option<String>,
    digest: Option<String>,
}

impl ImageReference {
    /// Reads a reference as container tools do: one without a host is Docker Hub's.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<ImageReference> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (text, None),
        };
        if digest.as_ref().is_some_and(|digest| !is_digest(digest)) {
            bail!("invalid image {text:?}: the digest is not sha256: and 64 hexadecimal digits");
        }
        let (host, path) = match rest.split_once('/') {
            Some((host, path)) if host.contains(['.', ':']) || host == "localhost" => (host, path.to_owned()),
            Some(_) => ("docker.io", rest.to_owned()),
            None => ("docker.io", format!("library/{rest}")),
        };
        let (repository, tag) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag)),
            None => (path.as_str(), None),
        };
        if !is_host(host) {
            bail!("invalid image {text:?}: invalid registry {host:?}");
        }
        if !is_repository(repository) {
            bail!("invalid image {text:?}: invalid repository {repository:?}");
        }
        if let Some(tag) = tag.filter(|tag| !is_tag(tag)) {
            bail!("invalid image {text:?}: invalid tag {tag:?}");
        }
        Ok(ImageReference {
            host: host.to_owned(),
            repository: repository.to_owned(),
            tag: tag.map(str::to_owned),
            digest,
        })
    }

    /// The tag; `latest` where none is named, as everywhere.
    pub fn tag(&self) -> &str {
        self.tag.as_deref().unwrap_or("latest")
    }

    /// Host, repository and tag.
    pub fn tagged(&self) -> String {
        format!("{}/{}:{}", self.host, self.repository, self.tag())
    }

    fn place(&self) -> (String, String) {
        (self.host.clone(), self.repository.clone())
    }
}

/// An image for one platform, to build upon.
#[derive(Clone, Debug)]
pub struct BaseImage {
    /// The digest of its manifest.
    pub digest: String,
    /// Its config.
    pub config: Value,
    /// Its layers, the lowest first.
    pub layers: Vec<BaseLayer>,
}

/// A layer of a base.
#[derive(Clone, Debug)]
pub struct BaseLayer {
    /// The type that its manifest has for it.
    pub media_type: String,
    /// The digest of the bytes.
    pub digest: String,
    /// The layer, as packed as it came.
    pub bytes: Arc<[u8]>,
}

/// Downloads an image for Linux on an architecture, such as `amd64`.
///
/// # Errors
/// Why it cannot be had, or that it is for another platform.
pub fn download_image(
    image: &ImageReference,
    architecture: &str,
    homes: &Homes,
    access: &Access,
) -> Result<BaseImage> {
    let web = Web::for_registry(access, &image.host)?;
    let mut client = RegistryClient::new(&web, &homes.logins, image.place(), Rights::Pull);
    let mut manifest = client.manifest(image.digest.as_deref().unwrap_or(image.tag()))?;
    if let Some(listed) = manifest.content["manifests"].as_array() {
        let fits = |one: &&Value| {
            one["platform"]["os"] == "linux" && one["platform"]["architecture"] == architecture
        };
        let found = listed.iter().take(MOST).find(fits).and_then(|one| one["digest"].as_str());
        let digest = found.filter(|digest| is_digest(digest));
        let digest = digest.with_context(|| format!("{} has no linux/{architecture}", image.tagged()))?;
        manifest = client.manifest(digest)?;
    }
    let digest_of = |descriptor: &Value| -> Result<String> {
        let digest = descriptor["digest"].as_str().filter(|digest| is_digest(digest));
        Ok(digest.with_context(|| format!("{} is no image", image.tagged()))?.to_owned())
    };
    let config = client.blob(&digest_of(&manifest.content["config"])?, LARGEST_CONFIG, "config")?;
    let config: Value = serde_json::from_slice(&config)
        .with_context(|| format!("the config of {} is no JSON", image.tagged()))?;
    if config["os"] != "linux" || config["architecture"] != architecture {
        bail!(
            "{} is for {}/{}, not for linux/{architecture}",
            image.tagged(),
            config["os"].as_str().unwrap_or_default(),
            config["architecture"].as_str().unwrap_or_default()
        );
    }
    let listed = manifest.content["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
    let ids = config["rootfs"]["diff_ids"].as_array().map(Vec::len).unwrap_or_default();
    if listed.len() > MOST || listed.len() != ids {
        bail!(
            "{} has {} layers, and its config names {ids}; they must be as many, and at most {MOST}",
            image.tagged(),
            listed.len()
        );
    }
    let mut left = LARGEST_BASE;
    let mut layers = Vec::new();
    for layer in listed {
        let media_type = layer["mediaType"].as_str().unwrap_or_default().to_owned();
        if media_type.contains("foreign") || media_type.contains("nondistributable") {
            bail!("{} has a layer that may not be distributed ({media_type})", image.tagged());
        }
        let digest = digest_of(layer)?;
        let bytes: Arc<[u8]> = client.blob(&digest, left, "layer")?.into();
        left -= bytes.len() as u64;
        layers.push(BaseLayer { media_type, digest, bytes });
    }
    Ok(BaseImage { digest: manifest.digest, config, layers })
}

/// The parts of an upload: blobs first, then manifests, the one with the tag last.
#[derive(Debug, Default)]
pub struct Upload<'a> {
    /// Digests and contents.
    pub blobs: Vec<(&'a str, &'a [u8])>,
    /// Tag or digest, type and content of each manifest.
    pub manifests: Vec<(&'a str, &'a str, &'a [u8])>,
}

/// Uploads an image. What the registry has is not sent again. Says how many blobs were sent.
///
/// # Errors
/// What the registry refuses, and why.
pub fn push_image(
    image: &ImageReference,
    upload: &Upload<'_>,
    homes: &Homes,
    access: &Access,
) -> Result<usize> {
    if image.digest.is_some() {
        bail!("an image is pushed to a tag, not to a digest");
    }
    let web = Web::for_registry(access, &image.host)?;
    let mut client = RegistryClient::new(&web, &homes.logins, image.place(), Rights::Push);
    let mut sent = 0;
    for (digest, bytes) in &upload.blobs {
        sent += usize::from(client.put_blob(digest, bytes)?);
    }
    for (named, media_type, bytes) in &upload.manifests {
        client.put_manifest(named, media_type, bytes)?;
    }
    Ok(sent)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::web::is_loopback;

    #[test]
    fn a_reference_is_taken_apart_as_container_tools_do() {
        let shown = |text: &str| ImageReference::parse(text).unwrap().tagged();
        assert_eq!(shown("operator"), "docker.io/library/operator:latest");
        assert_eq!(shown("team/operator:v1"), "docker.io/team/operator:v1");
        assert_eq!(shown("localhost/operator"), "localhost/operator:latest");
        assert_eq!(shown("127.0.0.1:5000/a/b:v1"), "127.0.0.1:5000/a/b:v1");
        assert_eq!(shown("r.example/b"), "r.example/b:latest");
        for wrong in
            ["", "r.example/", "r.example/UPPER", "r.example/a:", "r.example/a@sha256:1", "r.example/a:b c"]
        {
            assert!(ImageReference::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn only_this_machine_is_asked_without_tls() {
        for host in ["localhost:5000", "127.0.0.1:5000", "127.9.9.9", "[::1]:5000"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["r.example", "10.0.0.1:5000", "localhost.example:5000", "127.0.0.1.example"] {
            assert!(!is_loopback(host), "{host}");
        }
    }
}
