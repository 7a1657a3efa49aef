//! The OCI layout of images: a folder, or one archive, that container tools read. The archive also has what
//! `docker load` asks for.

use super::manifest::{Image, descriptor};
use opdev_os::sha256;
use opdev_pull::{ImageReference, Upload};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

/// The file that makes a folder a layout.
pub const OCI_LAYOUT: &str = "oci-layout";
const VERSION: &[u8] = b"{\"imageLayoutVersion\":\"1.0.0\"}";
pub(super) const INDEX: &str = "application/vnd.oci.image.index.v1+json";
/// The annotation with the tag of an image in a layout.
const TAG: &str = "org.opencontainers.image.ref.name";
/// The annotation with the whole name.
const NAME: &str = "io.containerd.image.name";

/// Images as container tools exchange them.
#[derive(Clone, Debug)]
pub struct Layout {
    /// The images, one a platform.
    pub images: Vec<Image>,
    name: Option<ImageReference>,
    /// The index of several platforms, and its digest.
    platforms: Option<(String, Arc<[u8]>)>,
}

/// A file of a layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LayoutFile {
    /// The path in the layout.
    pub path: String,
    /// The content.
    pub content: Arc<[u8]>,
}

impl Layout {
    /// A layout of images, under a name where they have one.
    pub fn new(images: Vec<Image>, name: Option<ImageReference>) -> Layout {
        let platforms = (images.len() > 1).then(|| {
            let listed: Vec<Value> = images.iter().map(Image::descriptor).collect();
            let index = json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": listed});
            let index: Arc<[u8]> = index.to_string().into_bytes().into();
            (sha256::named(&index), index)
        });
        Layout { images, name, platforms }
    }

    /// The digest that the image has in a registry.
    pub fn digest(&self) -> &str {
        match (&self.platforms, self.images.first()) {
            (Some((digest, _)), _) => digest,
            (None, Some(image)) => &image.manifest.0,
            (None, None) => "",
        }
    }

    fn blobs(&self) -> BTreeMap<&str, &Arc<[u8]>> {
        let mut blobs = BTreeMap::new();
        for image in &self.images {
            blobs.extend(image.layers.iter().map(|layer| (layer.digest.as_str(), &layer.bytes)));
            blobs.insert(&image.config.0, &image.config.1);
        }
        blobs
    }

    fn manifests(&self) -> Vec<&(String, Arc<[u8]>)> {
        self.images.iter().map(|image| &image.manifest).chain(&self.platforms).collect()
    }

    fn index(&self) -> Value {
        let mut top = match (&self.platforms, self.images.first()) {
            (Some((digest, bytes)), _) => descriptor(INDEX, digest, bytes.len()),
            (None, Some(image)) => image.descriptor(),
            (None, None) => json!({}),
        };
        if let Some(name) = &self.name {
            opdev_object::meta::put(
                &mut top,
                &["annotations"],
                json!({TAG: name.tag(), NAME: name.tagged()}),
            );
        }
        json!({"schemaVersion": 2, "mediaType": INDEX, "manifests": [top]})
    }

    /// The files of the layout; the index comes last, so that nobody sees one whose blobs are not there yet.
    pub fn files(&self) -> Vec<LayoutFile> {
        let path = |digest: &str| format!("blobs/{}", digest.replace(':', "/"));
        let blobs = self.blobs().into_iter().map(|(digest, bytes)| (path(digest), Arc::clone(bytes)));
        let manifests = self.manifests().into_iter().map(|(digest, bytes)| (path(digest), Arc::clone(bytes)));
        let mut files: Vec<(String, Arc<[u8]>)> = blobs.chain(manifests).collect();
        files.push((OCI_LAYOUT.to_owned(), VERSION.into()));
        files.push(("index.json".to_owned(), self.index().to_string().into_bytes().into()));
        files.into_iter().map(|(path, content)| LayoutFile { path, content }).collect()
    }

    /// The layout as one archive. Where it has one platform, `docker load` reads it, too.
    ///
    /// # Errors
    /// None in practice: all paths are short.
    pub fn archive(&self, time: u64) -> io::Result<Vec<u8>> {
        let mut files: BTreeMap<String, Arc<[u8]>> =
            self.files().into_iter().map(|file| (file.path, file.content)).collect();
        if let [image] = self.images.as_slice() {
            let path = |digest: &str| format!("blobs/{}", digest.replace(':', "/"));
            let layers: Vec<String> = image.layers.iter().map(|layer| path(&layer.digest)).collect();
            let tags: Vec<String> = self.name.iter().map(ImageReference::tagged).collect();
            let listed = json!([{"Config": path(&image.config.0), "RepoTags": tags, "Layers": layers}]);
            files.insert("manifest.json".to_owned(), listed.to_string().into_bytes().into());
        }
        let mut tar = tar::Builder::new(Vec::new());
        for (path, content) in &files {
            let mut header = tar::Header::new_ustar();
            header.set_mode(0o644);
            header.set_mtime(time);
            header.set_size(content.len() as u64);
            tar.append_data(&mut header, path, &**content)?;
        }
        tar.into_inner()
    }

    /// The parts that a registry gets.
    pub fn upload<'a>(&'a self, name: &'a ImageReference) -> Upload<'a> {
        let blobs = self.blobs().into_iter().map(|(digest, bytes)| (digest, &**bytes)).collect();
        let of_image = crate::manifest::MANIFEST;
        let mut manifests: Vec<(&str, &str, &[u8])> = self
            .images
            .iter()
            .map(|image| (image.manifest.0.as_str(), of_image, &*image.manifest.1))
            .collect();
        match &self.platforms {
            Some((_, bytes)) => manifests.push((name.tag(), INDEX, bytes)),
            None => manifests.iter_mut().for_each(|manifest| manifest.0 = name.tag()),
        }
        Upload { blobs, manifests }
    }
}

/// The index of a layout that others have written to, with new images in place of those of the same name.
///
/// # Errors
/// Where the present index is none.
pub fn merge_indexes(present: &[u8], new: &[u8]) -> Result<Vec<u8>, serde_json::Error> {
    let (present, mut new): (Value, Value) = (serde_json::from_slice(present)?, serde_json::from_slice(new)?);
    // An entry without a whole name means the tag.
    let same = |one: &Value, other: &Value| {
        let (one, other) = (&one["annotations"], &other["annotations"]);
        one[TAG] == other[TAG] && (one[NAME].is_null() || other[NAME].is_null() || one[NAME] == other[NAME])
    };
    let listed = new["manifests"].as_array().cloned().unwrap_or_default();
    let others = present["manifests"].as_array().cloned().unwrap_or_default();
    let mut all: Vec<Value> =
        others.into_iter().filter(|other| !listed.iter().any(|one| same(one, other))).collect();
    all.extend(listed);
    opdev_object::meta::put(&mut new, &["manifests"], json!(all));
    Ok(new.to_string().into_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_index_keeps_the_images_of_other_names() {
        let index = |names: &[(&str, &str)]| {
            let listed: Vec<Value> = names
                .iter()
                .map(|(name, digest)| match name.rsplit_once(':') {
                    Some((_, tag)) => json!({"digest": digest, "annotations": {TAG: tag, NAME: name}}),
                    None => json!({"digest": digest, "annotations": {TAG: name}}),
                })
                .collect();
            json!({"manifests": listed}).to_string().into_bytes()
        };
        let merged = merge_indexes(&index(&[("v1", "a"), ("v2", "b")]), &index(&[("v1", "c")])).unwrap();
        assert_eq!(merged, index(&[("v2", "b"), ("v1", "c")]));
        // Two repositories have one manifest each.
        let (web, cache) = (("r.example/web:v1", "a"), ("r.example/cache:v1", "b"));
        let merged = merge_indexes(&index(&[web]), &index(&[cache])).unwrap();
        assert_eq!(merged, index(&[web, cache]));
        let again = merge_indexes(&merged, &index(&[("r.example/web:v1", "c")])).unwrap();
        assert_eq!(again, index(&[cache, ("r.example/web:v1", "c")]));
        assert!(merge_indexes(b"no json", &index(&[])).is_err());
    }
}
