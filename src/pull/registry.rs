//! Charts in OCI registries: which tag is the version that is wanted, and which layer is the chart.

use super::reference::{Reference, is_digest, is_tag, tag_of};
use super::registry_client::{RegistryClient, Rights, SMALL};
use super::web::{Answer, LARGEST, Web, shown};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_template::semver::{Constraint, Version};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use url::Url;

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// The media type that Helm wrote while registries were an experiment.
const OLD_CONTENT: &str = "application/tar+gzip";
/// Pages of tags, and manifests in an index.
const MOST: usize = 1_000;
/// How long the pages of a list of tags may take.
const LONGEST_LIST: Duration = Duration::from_secs(120);

/// A registry that charts of one repository are taken from.
pub(super) struct Registry<'a> {
    client: RegistryClient<'a>,
    reference: Reference,
}

/// A chart from a registry.
pub(super) struct Pulled {
    pub(super) archive: Vec<u8>,
    /// The version that was chosen, with `+` as charts write it.
    pub(super) version: String,
    /// The digest of the manifest.
    pub(super) digest: String,
}

impl<'a> Registry<'a> {
    pub(super) fn new(web: &'a Web, logins: &'a [PathBuf], reference: Reference) -> Registry<'a> {
        let place = (reference.host.clone(), reference.repository.clone());
        Registry { client: RegistryClient::new(web, logins, place, Rights::Pull), reference }
    }

    /// The versions that there are, the newest one first. Tags that are no whole versions are left out.
    ///
    /// # Errors
    /// Why the registry does not say.
    pub(super) fn versions(&mut self) -> Result<Vec<String>> {
        let mut url = self.client.url("tags/list")?;
        let mut found = Vec::new();
        let mut bytes = 0;
        let (mut seen, began) = (BTreeSet::from([url.clone()]), Instant::now());
        for _ in 0..MOST {
            let answer = self.client.get(&url, "application/json", SMALL)?;
            bytes += answer.body.len() as u64;
            if bytes > SMALL {
                bail!("{}: the list of tags is larger than {SMALL} bytes", answer.from);
            }
            let page: Value = serde_json::from_slice(&answer.body)
                .map_err(|_| anyhow!("{}: the list of tags is no JSON", answer.from))?;
            let tags = page["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            found.extend(tags.filter_map(|tag| strict(&tag.replace('_', "+"))));
            let Some(next) = next_page(&answer, &url)? else { break };
            if began.elapsed() > LONGEST_LIST {
                bail!("{}: the list of tags has no end in {} s", answer.from, LONGEST_LIST.as_secs());
            }
            if !seen.insert(next.clone()) {
                bail!("{}: the list of tags leads in a circle", answer.from);
            }
            url = next;
        }
        found.sort_by(|a, b| b.compare(a));
        Ok(found.into_iter().map(|version| version.original).collect())
    }

    /// The version that is wanted: one that is given in full, else the newest tag that the constraint allows.
    ///
    /// # Errors
    /// There is none, or the registry does not say.
    pub(super) fn choose(&mut self, wanted: &str) -> Result<String> {
        if Version::parse(wanted).is_ok() {
            return Ok(wanted.to_owned());
        }
        let versions = self.versions()?;
        if versions.is_empty() {
            bail!("unable to locate any tags in provided repository: oci://{}", self.reference.shown());
        }
        let constraint = if wanted.is_empty() { "*" } else { wanted };
        let constraint = Constraint::parse(constraint)?;
        let fits = |version: &&String| {
            *version == wanted || Version::parse(version).is_ok_and(|version| constraint.check(&version))
        };
        let found = versions.iter().find(fits).cloned();
        found.with_context(|| {
            format!(
                "could not locate a version matching provided version string {wanted}: oci://{} has {}",
                self.reference.shown(),
                some(&versions)
            )
        })
    }

    /// Downloads a chart.
    ///
    /// # Errors
    /// Why there is none, or a digest that does not fit.
    pub(super) fn pull(&mut self, wanted: &str) -> Result<Pulled> {
        let wanted = self.wanted(wanted)?;
        // Beside a digest, too: it becomes a part of an address.
        if self.reference.digest.is_some() && !wanted.is_empty() && !is_tag(&tag_of(&wanted)) {
            bail!("invalid tag {:?}", tag_of(&wanted));
        }
        let (version, named) = match &self.reference.digest {
            Some(digest) => (wanted, digest.clone()),
            None => {
                let version = self.choose(&wanted)?;
                let tag = tag_of(&version);
                if !is_tag(&tag) {
                    bail!("invalid tag {tag:?}");
                }
                (version, tag)
            }
        };
        let (manifest, digest) = self.manifest(&named)?;
        if self.reference.digest.is_some() && !version.is_empty() {
            self.has_digest(&version, &digest)?;
        }
        let manifest = self.of_chart(manifest)?;
        let layers = manifest["layers"].as_array().map(Vec::as_slice).unwrap_or_default();
        let of_type = |media: &str| layers.iter().find(|layer| layer["mediaType"] == media);
        let Some(layer) = of_type(CONTENT).or_else(|| of_type(OLD_CONTENT)) else {
            bail!(
                "oci://{}:{named}: manifest does not contain a layer with mediatype {CONTENT}",
                self.reference.shown()
            );
        };
        Ok(Pulled { archive: self.blob(layer)?, version, digest })
    }

    /// The version of the command line and that of the address, which must be one.
    fn wanted(&self, wanted: &str) -> Result<String> {
        match &self.reference.version {
            Some(tag) if !wanted.is_empty() && tag_of(wanted) != tag_of(tag) => {
                bail!("chart reference and version mismatch: {wanted} is not {tag}")
            }
            Some(tag) => Ok(tag.clone()),
            None => Ok(wanted.to_owned()),
        }
    }

    /// A tag beside a digest must lead to it; a tag that is not there is none of our business.
    fn has_digest(&mut self, version: &str, digest: &str) -> Result<()> {
        match self.manifest(&tag_of(version)) {
            Ok((_, other)) if other != digest => {
                bail!("chart reference digest mismatch: {other} is not {digest}")
            }
            Ok(_) | Err(_) => Ok(()),
        }
    }

    /// A manifest by tag or digest, and its digest.
    fn manifest(&mut self, named: &str) -> Result<(Value, String)> {
        let found = self.client.manifest(named)?;
        Ok((found.content, found.digest))
    }

    /// The manifest itself where it is a chart's, else the first of an index that is.
    fn of_chart(&mut self, manifest: Value) -> Result<Value> {
        let is_chart = |manifest: &Value| manifest["config"]["mediaType"] == CONFIG;
        if is_chart(&manifest) {
            return Ok(manifest);
        }
        let inner = manifest["manifests"].as_array().cloned().unwrap_or_default();
        for digest in inner.iter().take(MOST).filter_map(|one| one["digest"].as_str()) {
            if is_digest(digest) {
                let (manifest, _) = self.manifest(digest)?;
                if is_chart(&manifest) {
                    return Ok(manifest);
                }
            }
        }
        bail!(
            "oci://{} holds no chart: could not load config with mediatype {CONFIG}",
            self.reference.shown()
        )
    }

    fn blob(&mut self, layer: &Value) -> Result<Vec<u8>> {
        let wanted = layer["digest"].as_str().unwrap_or_default();
        if !is_digest(wanted) {
            bail!("oci://{}: {wanted:?} is no digest of SHA-256", self.reference.shown());
        }
        if layer["size"].as_u64().is_some_and(|size| size > LARGEST) {
            bail!("oci://{}: the chart is larger than {LARGEST} bytes", self.reference.shown());
        }
        self.client.blob(wanted, LARGEST, "chart")
    }
}

/// A version of three numbers without `v`, as Helm wants it of a tag.
fn strict(tag: &str) -> Option<Version> {
    let numbers = tag.split(['-', '+']).next()?;
    let is_number = |part: &str| {
        !part.is_empty()
            && part.bytes().all(|b| b.is_ascii_digit())
            && (part == "0" || !part.starts_with('0'))
    };
    let whole = numbers.split('.').count() == 3 && numbers.split('.').all(is_number);
    Version::parse(tag).ok().filter(|_| whole)
}

fn some(versions: &[String]) -> String {
    match versions {
        [first, second, third, _, ..] => format!("{first}, {second}, {third} and more"),
        few => few.join(", "),
    }
}

/// The address of the next page of a list, which must be on the same server.
fn next_page(answer: &Answer, url: &Url) -> Result<Option<Url>> {
    let Some(link) = answer.headers.get("link").and_then(|link| link.to_str().ok()) else { return Ok(None) };
    let next = link.split(',').find(|part| part.contains("rel=\"next\"") || part.contains("rel=next"));
    let Some(target) = next.and_then(|part| part.split_once('<')?.1.split_once('>')) else { return Ok(None) };
    let next = url.join(target.0).ok().filter(|next| next.origin() == url.origin());
    next.map(Some).with_context(|| format!("{}: the next page of tags is on another server", shown(url)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_beside_a_digest_is_a_tag() {
        let digest = "a".repeat(64);
        let reference = Reference::parse(&format!("oci://registry.invalid/web@sha256:{digest}")).unwrap();
        let web = Web::new(&crate::Access::default()).unwrap();
        let error = Registry::new(&web, &[], reference).pull("../../blobs/x").err().unwrap();
        assert_eq!(error.to_string(), "invalid tag \"../../blobs/x\"");
    }

    #[test]
    fn tags_that_are_no_whole_versions_do_not_count() {
        let counts = |tag: &str| strict(tag).is_some();
        assert!(counts("1.2.3") && counts("1.2.3-rc.1+b") && counts("0.0.0"));
        for no in ["v1.2.3", "1.2", "latest", "01.2.3", "1.2.3.4", ""] {
            assert!(!counts(no), "{no}");
        }
    }
}
