//! Logins of the user at registries: what `helm registry login` and `docker login` have written down, and the
//! programs that keep passwords for them (`docker-credential-…`). Output of such a program goes nowhere else.

use anyhow::{Context as _, Result, bail};
use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use secrecy::SecretString;
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long a program that keeps passwords may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes that a file of logins, or the answer of such a program, may have.
const LARGEST: u64 = 1 << 20;

/// A login of a registry.
#[derive(Clone, Debug)]
pub(super) enum Login {
    /// A user with a password.
    Password(String, SecretString),
    /// A token that the registry gives new tokens for.
    Identity(SecretString),
}

/// The login for a repository of a host, from the first file that has one, and the file.
///
/// # Errors
/// A file that is no JSON, or a program for passwords that fails.
pub(super) fn find<'f>(
    files: &'f [PathBuf],
    host: &str,
    repository: &str,
) -> Result<Option<(Login, &'f Path)>> {
    for file in files {
        if let Some(login) = in_file(file, host, repository)? {
            return Ok(Some((login, file)));
        }
    }
    Ok(None)
}

/// The name that files have for a host.
fn key(host: &str) -> &str {
    match host {
        "docker.io" | "registry-1.docker.io" | "index.docker.io" => "https://index.docker.io/v1/",
        host => host,
    }
}

/// The entry of `auths` for a repository. Docker compares the hosts of the keys, whatever stands around them;
/// those of podman may go on with a path, and the longest one counts.
fn entry<'c>(auths: &'c Value, host: &str, repository: &str) -> Option<&'c Value> {
    let auths = auths.as_object()?;
    let wanted = format!("{host}/{repository}/");
    let below = |known: &str| wanted.starts_with(&format!("{}/", known.trim_end_matches('/')));
    let by_path = auths.iter().filter(|(known, _)| below(known)).max_by_key(|(known, _)| known.len());
    let is_host = |known: &str| {
        let rest = known.split_once("://").map_or(known, |(_, rest)| rest);
        let (named, path) = rest.split_once('/').unwrap_or((rest, ""));
        key(named) == key(host)
            && (rest.len() < known.len() || matches!(path, "" | "v1/" | "v2/" | "v1" | "v2"))
    };
    let exact = || auths.get_key_value(key(host));
    by_path.or_else(exact).or_else(|| auths.iter().find(|(known, _)| is_host(known))).map(|(_, entry)| entry)
}

fn in_file(file: &Path, host: &str, repository: &str) -> Result<Option<Login>> {
    let mut text = String::new();
    match std::fs::File::open(file) {
        Ok(open) => open.take(LARGEST).read_to_string(&mut text),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => Err(error),
    }
    .with_context(|| format!("{} cannot be read", file.display()))?;
    if text.trim().is_empty() {
        return Ok(None);
    }
    // The parser's own message quotes the text, which holds passwords.
    let config: Value = serde_json::from_str(&text).map_err(|error| {
        anyhow::anyhow!("{}:{}:{} is no JSON", file.display(), error.line(), error.column())
    })?;
    let helper = config["credHelpers"][key(host)].as_str().or_else(|| config["credsStore"].as_str());
    if let Some(name) = helper.filter(|name| !name.is_empty())
        && let Some(login) = ask(name, key(host), file)?
    {
        return Ok(Some(login));
    }
    Ok(entry(&config["auths"], host, repository).and_then(login_of))
}

fn login_of(entry: &Value) -> Option<Login> {
    let text = |name: &str| entry[name].as_str().filter(|text| !text.is_empty());
    if let Some(token) = text("identitytoken") {
        return Some(Login::Identity(token.to_owned().into()));
    }
    if let Some(auth) = text("auth") {
        let plain = String::from_utf8(BASE64_STANDARD.decode(auth).ok()?).ok()?;
        let (username, password) = plain.split_once(':')?;
        return Some(Login::Password(username.to_owned(), password.trim_end_matches('\0').to_owned().into()));
    }
    Some(Login::Password(text("username")?.to_owned(), text("password")?.to_owned().into()))
}

/// Asks a program for the password of a host; `None` where it has none.
fn ask(name: &str, host: &str, file: &Path) -> Result<Option<Login>> {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '.' | '-');
    if !name.chars().all(allowed) {
        bail!("{}: {name:?} is no name of a program that keeps passwords", file.display());
    }
    let program = format!("docker-credential-{name}");
    let mut child = Command::new(&program)
        .arg("get")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .with_context(|| format!("{program}, which {} names, cannot be started", file.display()))?;
    if let Some(mut input) = child.stdin.take() {
        // A program that does not read is no error.
        let _ = input.write_all(host.as_bytes());
    }
    let (sender, answer) = channel();
    if let Some(output) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = output.take(LARGEST).read_to_end(&mut text);
            let _ = sender.send(text);
        });
    }
    let Ok(text) = answer.recv_timeout(PATIENCE) else {
        let _ = child.kill();
        let _ = child.wait();
        bail!("{program} gave no answer within {} s", PATIENCE.as_secs());
    };
    // Its output is closed; whatever it still does is not waited for.
    let _ = child.kill();
    let _ = child.wait();
    // "credentials not found" is plain text.
    let Ok(found) = serde_json::from_slice::<Value>(&text) else { return Ok(None) };
    let username = found["Username"].as_str().unwrap_or_default();
    let secret: SecretString = found["Secret"].as_str().unwrap_or_default().to_owned().into();
    Ok(match username {
        "" => None,
        "<token>" => Some(Login::Identity(secret)),
        username => Some(Login::Password(username.to_owned(), secret)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use secrecy::ExposeSecret as _;

    fn found(text: &str, host: &str) -> Result<Option<(String, String)>> {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("config.json");
        std::fs::write(&file, text).unwrap();
        Ok(find(&[folder.path().join("none.json"), file], host, "team/web")?.map(|(login, _)| match login {
            Login::Password(user, password) => (user, password.expose_secret().to_owned()),
            Login::Identity(token) => ("<token>".to_owned(), token.expose_secret().to_owned()),
        }))
    }

    #[test]
    fn logins_are_found_by_host() {
        // ann:p:w
        let text = r#"{"auths": {"r.example:5000": {"auth": "YW5uOnA6dw=="}, "t.example": {"identitytoken": "tok"}}}"#;
        assert_eq!(found(text, "r.example:5000").unwrap(), Some(("ann".to_owned(), "p:w".to_owned())));
        assert_eq!(found(text, "t.example").unwrap().unwrap().1, "tok");
        assert_eq!(found(text, "r.example").unwrap(), None);
        assert_eq!(found("", "r.example").unwrap(), None);
        for key in [
            "https://r.example/v2/",
            "http://r.example",
            "https://r.example/v1/",
            "r.example/",
            "r.example/v2/",
        ] {
            let text = format!("{{\"auths\": {{\"{key}\": {{\"auth\": \"YW5uOnA6dw==\"}}}}}}");
            assert_eq!(found(&text, "r.example").unwrap().unwrap().0, "ann", "{key}");
            assert_eq!(found(&text, "r.example:5000").unwrap(), None, "{key}");
        }
        // As podman writes them: a path in the registry, and the longest one counts.
        let text = r#"{"auths": {"r.example": {"auth": "YTpi"}, "r.example/team": {"auth": "YW5uOnA6dw=="},
            "r.example/te": {"auth": "YTpi"}, "https://index.docker.io/v1/": {"auth": "YTpi"}}}"#;
        assert_eq!(found(text, "r.example").unwrap().unwrap().0, "ann");
        let text =
            r#"{"auths": {"r.example/other": {"auth": "YTpi"}, "https://docker.io/v2/": {"auth": "YTpi"}}}"#;
        assert_eq!(found(text, "r.example").unwrap(), None, "another repository's");
        assert_eq!(found(text, "docker.io").unwrap().unwrap().0, "a");
    }

    #[test]
    fn errors_do_not_quote_the_file() {
        let error = found("{\"auths\": {\"h\": {\"auth\": \"hunter2\"", "h").unwrap_err().to_string();
        assert!(error.contains("config.json:1:") && !error.contains("hunter2"), "{error}");
        let error = found("{\"credsStore\": \"../evil\"}", "h").unwrap_err().to_string();
        assert!(error.contains("no name of a program"), "{error}");
    }
}
