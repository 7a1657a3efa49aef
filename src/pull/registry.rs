//! Charts in OCI registries: tags, manifests and blobs, with the login that a registry asks for. Each digest is checked.

use super::Access;
use super::logins::{self, Login};
use super::reference::{Reference, is_digest, is_tag, tag_of};
use super::sha256;
use super::web::{Answer, Ask, LARGEST, Web, basic, shown};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_helm::semver::{Constraint, Version};
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::path::PathBuf;
use url::Url;

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CONTENT: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";
/// What Helm wrote while registries were an experiment.
const OLD_CONTENT: &str = "application/tar+gzip";
const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json";
/// Bytes of a manifest, a list of tags with all its pages, or a token.
const SMALL: u64 = 8 << 20;
/// Pages of tags, and manifests in an index.
const MOST: usize = 1_000;

/// A registry that charts of one repository are taken from.
pub(super) struct Registry<'a> {
    web: &'a Web,
    logins: &'a [PathBuf],
    reference: Reference,
    authorization: Option<SecretString>,
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
        Registry { web, logins, reference, authorization: None }
    }

    /// The versions that there are, the newest one first. Tags that are no whole versions are left out.
    ///
    /// # Errors
    /// Why the registry does not say.
    pub(super) fn versions(&mut self) -> Result<Vec<String>> {
        let mut url = self.url("tags/list")?;
        let mut found = Vec::new();
        let mut bytes = 0;
        for _ in 0..MOST {
            let answer = self.get(&url, "application/json", SMALL)?;
            bytes += answer.body.len() as u64;
            if bytes > SMALL {
                bail!("{}: the list of tags is larger than {SMALL} bytes", answer.from);
            }
            let page: Value = serde_json::from_slice(&answer.body)
                .map_err(|_| anyhow!("{}: the list of tags is no JSON", answer.from))?;
            let tags = page["tags"].as_array().into_iter().flatten().filter_map(Value::as_str);
            found.extend(tags.filter_map(|tag| strict(&tag.replace('_', "+"))));
            let Some(next) = next_page(&answer, &url)? else { break };
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
        let constraint = Constraint::parse(constraint).map_err(anyhow::Error::msg)?;
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
        let url = self.url(&format!("manifests/{named}"))?;
        let answer = self.get(&url, MANIFESTS, SMALL)?;
        let digest = sha256::named(&answer.body);
        let told = answer.headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
        let wanted = if is_digest(named) { Some(named) } else { told };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
            bail!("{}: the digest of the manifest is {digest}, not {wanted}", answer.from);
        }
        let manifest = serde_json::from_slice(&answer.body)
            .map_err(|_| anyhow!("{}: the manifest is no JSON", answer.from))?;
        Ok((manifest, digest))
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
        let wanted = layer["digest"].as_str().unwrap_or_default().to_owned();
        if !is_digest(&wanted) {
            bail!("oci://{}: {wanted:?} is no digest of SHA-256", self.reference.shown());
        }
        if layer["size"].as_u64().is_some_and(|size| size > LARGEST) {
            bail!("oci://{}: the chart is larger than {LARGEST} bytes", self.reference.shown());
        }
        let url = self.url(&format!("blobs/{wanted}"))?;
        let answer = self.get(&url, "*/*", LARGEST)?;
        let digest = sha256::named(&answer.body);
        if digest != wanted {
            bail!("{}: the digest of the chart is {digest}, not {wanted}", answer.from);
        }
        Ok(answer.body)
    }

    fn url(&self, rest: &str) -> Result<Url> {
        let scheme = if self.web.access.plain_http { "http" } else { "https" };
        let host = match self.reference.host.as_str() {
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        let text = format!("{scheme}://{host}/v2/{}/{rest}", self.reference.repository);
        Url::parse(&text).with_context(|| format!("{text} is no address"))
    }

    /// Asks, and once more with the login that the registry wants.
    fn get(&mut self, url: &Url, accept: &str, largest: u64) -> Result<Answer> {
        let send = |authorization: Option<&SecretString>| {
            self.web.send(&Ask { url, accept, authorization, largest }).with_context(|| {
                let hint = if url.scheme() == "https" { " (one without TLS needs --plain-http)" } else { "" };
                format!("the registry {} cannot be read{hint}", self.reference.host)
            })
        };
        let mut answer = send(self.authorization.as_ref())?;
        // A server that the registry redirects to gets no login, whatever it asks for.
        let is_own = Url::parse(&answer.from).is_ok_and(|from| from.origin() == url.origin());
        if answer.status == 401 && is_own {
            let wanted: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
            let wanted: Vec<_> =
                wanted.iter().filter_map(|value| Challenge::parse(value.to_str().ok()?)).collect();
            if let Some(authorization) = self.log_in(&wanted)? {
                self.authorization = Some(authorization);
                answer = self.web.send(&Ask {
                    url,
                    accept,
                    authorization: self.authorization.as_ref(),
                    largest,
                })?;
            }
        }
        if answer.status == 200 { Ok(answer) } else { Err(refused(url, &answer)) }
    }

    fn log_in(&self, wanted: &[Challenge]) -> Result<Option<SecretString>> {
        let Access { username, password, .. } = &self.web.access;
        let login = if self.web.access.has_login() {
            Some(Login::Password(username.clone(), password.clone()))
        } else {
            logins::find(self.logins, &self.reference.host)?
        };
        if let Some(challenge) = wanted.iter().find(|one| one.scheme == "bearer") {
            return self.token(challenge, login.as_ref()).map(Some);
        }
        let by_password = wanted.iter().any(|one| one.scheme == "basic");
        Ok(match login {
            Some(Login::Password(username, password)) if by_password => Some(basic(&username, &password)),
            Some(_) | None => None,
        })
    }

    /// A token of the server that the registry names. A password goes there over TLS only, but where the registry itself has none.
    fn token(&self, challenge: &Challenge, login: Option<&Login>) -> Result<SecretString> {
        let realm = challenge.get("realm");
        let mut url = Url::parse(realm)
            .map_err(|_| anyhow!("{}: the registry names no server for tokens", self.reference.host))?;
        if url.scheme() != "https" && !self.web.access.plain_http {
            bail!(
                "{}: the registry wants the login sent to {} without TLS",
                self.reference.host,
                shown(&url)
            );
        }
        let scope = match challenge.get("scope") {
            "" => format!("repository:{}:pull", self.reference.repository),
            scope => scope.to_owned(),
        };
        let service = challenge.get("service");
        let answer = match login {
            Some(Login::Identity(token)) => self.web.post_form(
                &url,
                &[
                    ("grant_type", "refresh_token"),
                    ("client_id", "opdev"),
                    ("service", service),
                    ("scope", &scope),
                    ("refresh_token", token.expose_secret()),
                ],
                SMALL,
            )?,
            login => {
                if !service.is_empty() {
                    url.query_pairs_mut().append_pair("service", service);
                }
                url.query_pairs_mut().append_pair("scope", &scope);
                let header = match login {
                    Some(Login::Password(username, password)) => Some(basic(username, password)),
                    Some(Login::Identity(_)) | None => None,
                };
                let ask = Ask {
                    url: &url,
                    accept: "application/json",
                    authorization: header.as_ref(),
                    largest: SMALL,
                };
                self.web.send(&ask)?
            }
        };
        if answer.status != 200 {
            return Err(refused(&url, &answer));
        }
        let found: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| anyhow!("{}: the token is no JSON", answer.from))?;
        let token = ["token", "access_token"].into_iter().find_map(|name| found[name].as_str());
        let token = token.with_context(|| format!("{}: the answer holds no token", answer.from))?;
        Ok(format!("Bearer {token}").into())
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

/// What a registry answers in place of what it was asked for.
fn refused(url: &Url, answer: &Answer) -> anyhow::Error {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let first = &body["errors"][0];
    let words: Vec<String> = [&first["code"], &first["message"]]
        .into_iter()
        .filter_map(Value::as_str)
        .map(|word| word.chars().take(200).collect::<String>())
        .collect();
    let more = if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) };
    let hint = match answer.status {
        401 | 403 => "; `helm registry login` or `docker login` writes down a login that opdev reads",
        _ => "",
    };
    anyhow!("GET {:?}: response status code {}{more}{hint}", shown(url), answer.status)
}

/// The address of the next page of a list, which must be on the same server.
fn next_page(answer: &Answer, url: &Url) -> Result<Option<Url>> {
    let Some(link) = answer.headers.get("link").and_then(|link| link.to_str().ok()) else { return Ok(None) };
    let next = link.split(',').find(|part| part.contains("rel=\"next\"") || part.contains("rel=next"));
    let Some(target) = next.and_then(|part| part.split_once('<')?.1.split_once('>')) else { return Ok(None) };
    let next = url.join(target.0).ok().filter(|next| next.origin() == url.origin());
    next.map(Some).with_context(|| format!("{}: the next page of tags is on another server", shown(url)))
}

/// What a server wants before it answers.
#[derive(Debug, PartialEq, Eq)]
struct Challenge {
    /// In lower case.
    scheme: String,
    parameters: Vec<(String, String)>,
}

impl Challenge {
    fn parse(text: &str) -> Option<Challenge> {
        let (scheme, mut rest) = text.trim().split_once(' ').unwrap_or((text.trim(), ""));
        let mut parameters = Vec::new();
        while let Some((name, after)) = rest.split_once('=') {
            let name = name.trim_matches([' ', ',']).to_ascii_lowercase();
            let (value, next) = match after.strip_prefix('"') {
                Some(quoted) => quoted.split_once('"')?,
                None => after.split_once(',').unwrap_or((after, "")),
            };
            parameters.push((name, value.to_owned()));
            rest = next;
        }
        Some(Challenge { scheme: scheme.to_ascii_lowercase(), parameters })
    }

    fn get(&self, name: &str) -> &str {
        self.parameters.iter().find(|(key, _)| key == name).map_or("", |(_, value)| value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_beside_a_digest_is_a_tag() {
        let digest = "a".repeat(64);
        let reference = Reference::parse(&format!("oci://registry.invalid/web@sha256:{digest}")).unwrap();
        let web = Web::new(&crate::pull::Access::default()).unwrap();
        let error = Registry::new(&web, &[], reference).pull("../../blobs/x").err().unwrap();
        assert_eq!(error.to_string(), "invalid tag \"../../blobs/x\"");
    }

    #[test]
    fn challenges_are_read() {
        let read = Challenge::parse(
            "Bearer realm=\"https://auth.example/token\",service=\"reg\",scope=\"repository:a/b:pull,push\"",
        )
        .unwrap();
        assert_eq!((read.scheme.as_str(), read.get("service")), ("bearer", "reg"));
        assert_eq!(read.get("scope"), "repository:a/b:pull,push");
        let read = Challenge::parse("Basic realm=x").unwrap();
        assert_eq!((read.scheme.as_str(), read.get("realm"), read.get("scope")), ("basic", "x", ""));
        assert_eq!(Challenge::parse("Basic").unwrap().parameters, []);
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
