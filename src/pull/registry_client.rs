//! The HTTP client of a registry, for charts and for images: manifests and blobs, to and from it, with the
//! login that it asks for. Each digest is checked.

use super::Access;
use super::logins::{self, Login};
use super::reference::is_digest;
use super::web::{Answer, Ask, NoAnswer, Send, Web, basic, shown};
use anyhow::{Context as _, Result, anyhow, bail};
use opdev_os::sha256;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;
use std::path::PathBuf;
use url::Url;

const MANIFESTS: &str = "application/vnd.oci.image.manifest.v1+json, application/vnd.oci.image.index.v1+json, \
                         application/vnd.docker.distribution.manifest.v2+json, \
                         application/vnd.docker.distribution.manifest.list.v2+json";
/// Bytes of a manifest, a list of tags with all its pages, or a token.
pub(super) const SMALL: u64 = 8 << 20;

/// The right that a token gives in a repository.
#[derive(Clone, Copy, Debug)]
pub(super) enum Rights {
    Pull,
    Push,
}

impl Rights {
    fn word(self) -> &'static str {
        match self {
            Rights::Pull => "pull",
            Rights::Push => "pull,push",
        }
    }

    /// The scope of a token: the one that the registry names, and for a repository also the right that is
    /// needed later. A push begins with a question whether something is there, for which a registry names the
    /// right to pull alone.
    fn scope(self, named: &str, repository: &str) -> String {
        if named.is_empty() {
            return format!("repository:{repository}:{}", self.word());
        }
        let more = |scope: &str| match (self, scope.rsplit_once(':')) {
            (Rights::Push, Some((resource, "pull" | "push"))) if resource.starts_with("repository:") => {
                format!("{resource}:{}", self.word())
            }
            (Rights::Pull | Rights::Push, _) => scope.to_owned(),
        };
        named.split(' ').map(more).collect::<Vec<_>>().join(" ")
    }
}

/// One repository of a registry.
pub(super) struct RegistryClient<'a> {
    web: &'a Web,
    logins: &'a [PathBuf],
    host: String,
    repository: String,
    rights: Rights,
    authorization: Option<SecretString>,
    /// Where the login that was sent is from.
    login_from: Option<String>,
}

/// A manifest, checked against its digest.
pub(super) struct Manifest {
    pub(super) content: Value,
    pub(super) digest: String,
}

impl<'a> RegistryClient<'a> {
    pub(super) fn new(
        web: &'a Web,
        logins: &'a [PathBuf],
        (host, repository): (String, String),
        rights: Rights,
    ) -> RegistryClient<'a> {
        RegistryClient { web, logins, host, repository, rights, authorization: None, login_from: None }
    }

    /// A manifest by tag or digest.
    pub(super) fn manifest(&mut self, named: &str) -> Result<Manifest> {
        let url = self.url(&format!("manifests/{named}"))?;
        let answer = self.get(&url, MANIFESTS, SMALL)?;
        let digest = sha256::named(&answer.body);
        let told = answer.headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
        let wanted = if is_digest(named) { Some(named) } else { told };
        if let Some(wanted) = wanted.filter(|wanted| *wanted != digest) {
            bail!("{}: the digest of the manifest is {digest}, not {wanted}", answer.from);
        }
        let content = serde_json::from_slice(&answer.body)
            .map_err(|_| anyhow!("{}: the manifest is no JSON", answer.from))?;
        Ok(Manifest { content, digest })
    }

    /// Downloads the blob of a digest. `what` names it in errors.
    pub(super) fn blob(&mut self, digest: &str, largest: u64, what: &str) -> Result<Vec<u8>> {
        let url = self.url(&format!("blobs/{digest}"))?;
        let answer = self.get(&url, "*/*", largest)?;
        let found = sha256::named(&answer.body);
        if found != digest {
            bail!("{}: the digest of the {what} is {found}, not {digest}", answer.from);
        }
        Ok(answer.body)
    }

    /// Uploads a blob, unless the repository has it. Says whether it was uploaded.
    pub(super) fn put_blob(&mut self, digest: &str, bytes: &[u8]) -> Result<bool> {
        let there = self.url(&format!("blobs/{digest}"))?;
        if self.exchange(&Send::head(&there))?.status == 200 {
            return Ok(false);
        }
        let begin = self.url("blobs/uploads/")?;
        let answer = self.exchange(&Send::post(&begin))?;
        if answer.status != 202 {
            return Err(self.refused("POST", &begin, &answer));
        }
        let to = answer.headers.get("location").and_then(|to| begin.join(to.to_str().ok()?).ok());
        let mut to =
            to.with_context(|| format!("{}: the registry names no place to upload to", answer.from))?;
        if to.scheme() != "https" && to.origin() != begin.origin() {
            bail!("{}: the registry wants the upload sent to {} without TLS", answer.from, shown(&to));
        }
        to.query_pairs_mut().append_pair("digest", digest);
        let answer = self.exchange(&Send::put(&to, "application/octet-stream", bytes))?;
        if answer.status != 201 {
            return Err(self.refused("PUT", &to, &answer));
        }
        Ok(true)
    }

    /// Writes a manifest under a tag or its digest.
    pub(super) fn put_manifest(&mut self, named: &str, media_type: &str, bytes: &[u8]) -> Result<()> {
        let url = self.url(&format!("manifests/{named}"))?;
        let answer = self.exchange(&Send::put(&url, media_type, bytes))?;
        if answer.status != 201 {
            return Err(self.refused("PUT", &url, &answer));
        }
        let told = answer.headers.get("docker-content-digest").and_then(|digest| digest.to_str().ok());
        let digest = sha256::named(bytes);
        match told.filter(|told| *told != digest) {
            Some(told) => bail!("{}: the registry has stored {told}, not {digest}", answer.from),
            None => Ok(()),
        }
    }

    /// The address of what a repository holds.
    pub(super) fn url(&self, rest: &str) -> Result<Url> {
        let scheme = if self.web.access.plain_http { "http" } else { "https" };
        let host = match self.host.as_str() {
            "docker.io" => "registry-1.docker.io",
            host => host,
        };
        let text = format!("{scheme}://{host}/v2/{}/{rest}", self.repository);
        Url::parse(&text).with_context(|| format!("{text} is no address"))
    }

    /// Reads what an address holds.
    pub(super) fn get(&mut self, url: &Url, accept: &str, largest: u64) -> Result<Answer> {
        let web = self.web;
        let answer =
            self.with_login(url, &|authorization| web.send(&Ask { url, accept, authorization, largest }))?;
        if answer.status == 200 { Ok(answer) } else { Err(self.refused("GET", url, &answer)) }
    }

    /// Sends a request. One that changes something is not followed anywhere else.
    fn exchange(&mut self, send: &Send<'_>) -> Result<Answer> {
        let (web, own) = (self.web, self.url("")?);
        self.with_login(send.url, &|authorization| {
            // Storage behind a registry has its permission in the address.
            let authorization = authorization.filter(|_| send.url.origin() == own.origin());
            web.exchange(send, authorization, SMALL)
        })
    }

    /// Asks, and once more with the login that the registry wants.
    fn with_login(
        &mut self,
        url: &Url,
        ask: &dyn Fn(Option<&SecretString>) -> Result<Answer>,
    ) -> Result<Answer> {
        let answer = ask(self.authorization.as_ref()).map_err(|error| {
            let hint = error.downcast_ref::<NoAnswer>().map_or("", |no| no.hint);
            let hint = if url.scheme() == "https" { hint } else { "" };
            error.context(format!("the registry {} cannot be reached{hint}", self.host))
        })?;
        // A server that the registry redirects to gets no login, whatever it asks for.
        let is_own = Url::parse(&answer.from).is_ok_and(|from| from.origin() == url.origin());
        if answer.status != 401 || !is_own || url.origin() != self.url("")?.origin() {
            return Ok(answer);
        }
        let wanted: Vec<_> = answer.headers.get_all("www-authenticate").iter().collect();
        let wanted: Vec<_> =
            wanted.iter().filter_map(|value| Challenge::parse(value.to_str().ok()?)).collect();
        let Some(authorization) = self.log_in(&wanted)? else { return Ok(answer) };
        self.authorization = Some(authorization);
        ask(self.authorization.as_ref())
    }

    fn log_in(&mut self, wanted: &[Challenge]) -> Result<Option<SecretString>> {
        let Access { username, password, .. } = &self.web.access;
        let login = if self.web.access.has_login() {
            self.login_from = Some("--username".to_owned());
            Some(Login::Password(username.clone(), password.clone()))
        } else {
            let found = logins::find(self.logins, &self.host, &self.repository)?;
            self.login_from = found.as_ref().map(|(_, file)| file.display().to_string());
            found.map(|(login, _)| login)
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

    /// The error of a registry's refusal, with a remedy where the registry does not know or trust the user.
    fn refused(&self, method: &str, url: &Url, answer: &Answer) -> anyhow::Error {
        let hint = match (answer.status, self.login_from.as_deref()) {
            (401, Some("--username")) => {
                "; the registry does not take the user of --username with this password".to_owned()
            }
            (401, Some(file)) => format!("; the registry does not take the login of {file}"),
            (403, Some(_)) => "; this user may not do that".to_owned(),
            (401 | 403, None) => {
                let read: Vec<_> = self.logins.iter().map(|file| file.display().to_string()).collect();
                let read = if read.is_empty() { String::new() } else { format!(" in {}", read.join(", ")) };
                format!(
                    "; there is no login for {}{read}: `docker login` or `helm registry login` writes one down",
                    self.host
                )
            }
            _ => String::new(),
        };
        refused(method, url, answer, &hint)
    }

    /// A token of the server that the registry names. A password goes there over TLS only, but where the
    /// registry itself has none.
    fn token(&self, challenge: &Challenge, login: Option<&Login>) -> Result<SecretString> {
        let realm = challenge.get("realm");
        let mut url = Url::parse(realm)
            .map_err(|_| anyhow!("{}: the registry names no server for tokens", self.host))?;
        if url.scheme() != "https" && !self.web.access.plain_http {
            bail!("{}: the registry wants the login sent to {} without TLS", self.host, shown(&url));
        }
        let scope = self.rights.scope(challenge.get("scope"), &self.repository);
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
            return Err(self.refused("GET", &url, &answer));
        }
        let found: Value = serde_json::from_slice(&answer.body)
            .map_err(|_| anyhow!("{}: the token is no JSON", answer.from))?;
        let token = ["token", "access_token"].into_iter().find_map(|name| found[name].as_str());
        let token = token.with_context(|| format!("{}: the answer holds no token", answer.from))?;
        Ok(format!("Bearer {token}").into())
    }
}

/// The error of a registry's refusal.
fn refused(method: &str, url: &Url, answer: &Answer, hint: &str) -> anyhow::Error {
    let body: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    let first = &body["errors"][0];
    let words: Vec<String> = [&first["code"], &first["message"]]
        .into_iter()
        .filter_map(Value::as_str)
        .map(|word| word.chars().take(200).collect::<String>())
        .collect();
    let more = if words.is_empty() { String::new() } else { format!(": {}", words.join(": ")) };
    anyhow!("{method} {:?}: response status code {}{more}{hint}", shown(url), answer.status)
}

/// The login that a server asks for.
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
    fn a_token_for_a_push_is_asked_for_with_all_that_a_push_does() {
        let push = |named: &str| Rights::Push.scope(named, "team/web");
        assert_eq!(push(""), "repository:team/web:pull,push");
        assert_eq!(push("repository:team/web:pull"), "repository:team/web:pull,push");
        assert_eq!(push("repository:team/web:pull,push"), "repository:team/web:pull,push");
        assert_eq!(
            push("repository:a/b:pull registry:catalog:*"),
            "repository:a/b:pull,push registry:catalog:*"
        );
        assert_eq!(Rights::Pull.scope("repository:team/web:pull", "team/web"), "repository:team/web:pull");
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
}
