//! The address of a chart in a registry: `oci://host/path/chart[:tag][@digest]`. Pure.

use super::web::shown_text;
use anyhow::{Result, bail};

/// The word before the address of a registry.
const SCHEME: &str = "oci://";

/// Returns true if a text names something in a registry.
pub(super) fn is_registry(text: &str) -> bool {
    text.starts_with(SCHEME)
}

/// A chart in a registry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Reference {
    /// Host and port.
    pub(super) host: String,
    /// The path of the chart, such as `charts/web`.
    pub(super) repository: String,
    /// The version, with `+` as charts write it.
    pub(super) version: Option<String>,
    /// The digest of the manifest, such as `sha256:12…`.
    pub(super) digest: Option<String>,
}

impl Reference {
    /// Reads an address.
    ///
    /// # Errors
    /// What is wrong with it.
    pub(super) fn parse(text: &str) -> Result<Reference> {
        let shown = shown_text(text);
        let Some(rest) = text.strip_prefix(SCHEME) else { bail!("{shown} does not begin with {SCHEME}") };
        if rest.split('/').next().is_some_and(|host| host.contains('@')) {
            bail!(
                "invalid reference {shown}: no user stands in the address; `helm registry login` or `docker login` writes down a \
                 login that opdev reads"
            );
        }
        let (rest, digest) = match rest.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest.to_owned())),
            None => (rest, None),
        };
        let Some((host, path)) = rest.split_once('/') else {
            bail!("invalid reference {shown}: missing registry or repository");
        };
        let (repository, version) = match path.rsplit_once(':') {
            Some((repository, tag)) => (repository, Some(tag.replace('_', "+"))),
            None => (path, None),
        };
        if !is_host(host) {
            bail!("invalid reference {shown}: invalid registry {host:?}");
        }
        if !is_repository(repository) {
            bail!("invalid reference {shown}: invalid repository {repository:?}");
        }
        if let Some(version) = version.as_ref().filter(|version| !is_tag(&tag_of(version))) {
            bail!("invalid reference {shown}: invalid tag {version:?}");
        }
        if digest.as_ref().is_some_and(|digest| !is_digest(digest)) {
            bail!("invalid reference {shown}: the digest is not sha256: and 64 hexadecimal digits");
        }
        Ok(Reference { host: host.to_owned(), repository: repository.to_owned(), version, digest })
    }

    /// The chart's name, which ends the path.
    pub(super) fn chart(&self) -> &str {
        self.repository.rsplit('/').next().unwrap_or(&self.repository)
    }

    /// The address without a version.
    pub(super) fn shown(&self) -> String {
        format!("{}/{}", self.host, self.repository)
    }
}

/// The tag of a version: a tag has no `+`.
pub(super) fn tag_of(version: &str) -> String {
    version.replace('+', "_")
}

pub(super) fn is_tag(tag: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-');
    !tag.is_empty() && tag.len() <= 128 && tag.chars().all(allowed) && !tag.starts_with(['.', '-'])
}

/// Returns true if a text is a digest of the one kind that is in use.
pub(super) fn is_digest(text: &str) -> bool {
    text.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
    })
}

pub(super) fn is_host(host: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | ':' | '[' | ']');
    !host.is_empty() && host.chars().all(allowed) && url::Url::parse(&format!("https://{host}/")).is_ok()
}

pub(super) fn is_repository(path: &str) -> bool {
    path.split('/').all(|part| {
        let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-');
        let ends = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
        part.chars().all(allowed) && part.starts_with(ends) && part.ends_with(ends)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn an_address_is_taken_apart() {
        let read = Reference::parse("oci://localhost:5000/charts/web:1.0.0_b.1").unwrap();
        assert_eq!((read.host.as_str(), read.repository.as_str()), ("localhost:5000", "charts/web"));
        assert_eq!((read.version.as_deref(), read.chart()), (Some("1.0.0+b.1"), "web"));
        let digest = format!("sha256:{}", "a".repeat(64));
        let read = Reference::parse(&format!("oci://r.example/web@{digest}")).unwrap();
        assert_eq!((read.version, read.digest), (None, Some(digest)));
        for wrong in [
            "oci://host",
            "oci:///web",
            "oci://h/UPPER",
            "oci://h/a/../b",
            "oci://h/web:",
            "oci://h/web@sha256:1",
            "oci://u:p@h/web",
        ] {
            assert!(Reference::parse(wrong).is_err(), "{wrong}");
        }
        let error = Reference::parse("oci://ann:sesame@h/web").unwrap_err().to_string();
        expect!["invalid reference oci://h/web: no user stands in the address; `helm registry login` or `docker login` writes down a login that opdev reads"]
        .assert_eq(&error);
    }
}
