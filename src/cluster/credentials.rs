//! Credentials: a token, a token file that is read again, an exec plugin that is run again, or a certificate.
//! Gives a client that carries the newest credential; renews it when it has expired or the API server refuses
//! it.

use super::exec_plugin;
use super::exec_plugin::Given;
use super::kubeconfig::Target;
use super::pinned;
use super::streams;
use super::streams::Transport;
use super::unreachable::Problem;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use jiff::Timestamp;
use kube::Client;
use opdev_event::words;
use secrecy::ExposeSecret as _;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long a token file is believed, as with kubectl.
const FILE_AGE: Duration = Duration::from_secs(60);
/// How long a credential that was just refused is not asked for again.
const REFUSED_AGE: Duration = Duration::from_secs(5);

/// A way to the API server with one credential.
pub(super) struct Line {
    pub(super) client: Client,
    /// A second way for streams, which may be silent for long.
    pub(super) lasting: Transport,
    /// `Authorization`.
    pub(super) header: Option<HeaderValue>,
    expires: Option<Timestamp>,
    made: Instant,
    /// In words, for when it is refused.
    pub(super) credential: String,
}

/// Makes a line with a fresh credential.
///
/// # Errors
/// An explanation.
pub(super) async fn fresh(target: &Target) -> Result<Line, Problem> {
    let Some(plugin) = target.user.exec.clone().filter(|_| uses_plugin(target)) else {
        return written(target);
    };
    let names = target.names.clone();
    let told = format!("the exec plugin {}", plugin.command.clone().unwrap_or_default());
    let given = tokio::task::spawn_blocking(move || exec_plugin::run(&plugin, &names)).await;
    let given = given
        .unwrap_or_else(|_| Err(target.names.no_credential("its plugin cannot be run", "restart opdev")))?;
    let Given { token, certificate, expires } = given;
    let mut config = target.config.clone();
    if let Some((certificate, key)) = certificate {
        config.auth_info.client_certificate_data = Some(STANDARD.encode(certificate));
        config.auth_info.client_key_data = Some(STANDARD.encode(key).into());
    }
    let header = token.map(|token| bearer(target, &token)).transpose()?;
    let (client, lasting) = clients(target, &config)?;
    Ok(Line {
        client,
        lasting,
        header,
        expires,
        made: Instant::now(),
        credential: format!("{told} gave one that is not accepted"),
    })
}

/// The order in which kubectl looks.
fn uses_plugin(target: &Target) -> bool {
    let user = &target.user;
    user.token.is_none() && user.token_file.is_none() && (user.username.is_none() || user.password.is_none())
}

/// A line with a credential that is written down.
fn written(target: &Target) -> Result<Line, Problem> {
    let user = &target.user;
    if let Some(provider) = user.auth_provider.as_ref() {
        return Err(target.names.no_credential(
            &format!("the auth-provider {} is no longer supported by Kubernetes clients", provider.name),
            "use the exec plugin that replaces it",
        ));
    }
    let has_certificate = user.client_certificate.is_some() || user.client_certificate_data.is_some();
    let (header, credential) = if let Some(path) = &user.token_file {
        let told = format!("the token in {path} is not accepted; it may have expired");
        match std::fs::read_to_string(path) {
            Ok(text) if !text.trim().is_empty() => (Some(bearer(target, text.trim())?), told),
            Ok(_) => {
                return Err(target
                    .names
                    .no_credential(&format!("the token file {path} is empty"), "fill it"));
            }
            Err(error) => {
                let what = format!("the token file {path} cannot be read: {error}");
                return Err(target.names.no_credential(&what, "correct its path"));
            }
        }
    } else if let Some(token) = user.token.as_ref().map(|token| token.expose_secret().to_owned()) {
        (Some(bearer(target, token.trim())?), "the token is not accepted; it may have expired".to_owned())
    } else if let (Some(name), Some(password)) =
        (&user.username, user.password.as_ref().map(|password| password.expose_secret().to_owned()))
    {
        let pair = STANDARD.encode(format!("{name}:{password}"));
        (
            Some(header(target, &format!("Basic {pair}"))?),
            "user name and password are not accepted".to_owned(),
        )
    } else if has_certificate {
        (None, super::client_certificate::words(target))
    } else {
        (None, "the user entry has no credential".to_owned())
    };
    let (client, lasting) = clients(target, &target.config)?;
    Ok(Line { client, lasting, header, expires: None, made: Instant::now(), credential })
}

fn bearer(target: &Target, token: &str) -> Result<HeaderValue, Problem> {
    header(target, &format!("Bearer {token}"))
}

fn header(target: &Target, text: &str) -> Result<HeaderValue, Problem> {
    let mut value = HeaderValue::from_str(text).map_err(|_| {
        target.names.no_credential("the token holds characters that no token has", "write it anew")
    })?;
    value.set_sensitive(true);
    Ok(value)
}

fn clients(target: &Target, config: &kube::Config) -> Result<(Client, Transport), Problem> {
    let lasting = streams::transport(config);
    let client = |lasting: &Transport| match pinned::is_needed(config) {
        true => Ok(Client::new(lasting.clone(), config.default_namespace.clone())),
        false => Client::try_from(config.clone()),
    };
    lasting.and_then(|lasting| Ok((client(&lasting)?, lasting))).map_err(|error| {
        let why = words::error(&error);
        let why = why.lines().next().unwrap_or_default();
        target.names.no_credential(&format!("its certificates cannot be used: {why}"), "write them anew")
    })
}

impl Line {
    /// Returns true if a fresh credential is to be had before the next call.
    pub(super) fn is_stale(&self, target: &Target, now: Timestamp) -> bool {
        match self.expires {
            Some(expires) => now >= expires,
            None => target.user.token_file.is_some() && self.made.elapsed() >= FILE_AGE,
        }
    }

    /// Returns true if it is old enough to be asked for again after a refusal.
    pub(super) fn may_be_renewed(&self) -> bool {
        self.made.elapsed() >= REFUSED_AGE
    }
}

/// The newest line, renewed where it is stale or, with `refused`, where the API server did not take it. The
/// old one goes on where a file cannot be read any more: it may have been removed on purpose.
///
/// # Errors
/// An explanation.
pub(super) async fn renewed(target: &Target, line: &Arc<Line>, refused: bool) -> Result<Arc<Line>, Problem> {
    if !refused && !line.is_stale(target, Timestamp::now()) {
        return Ok(Arc::clone(line));
    }
    match fresh(target).await {
        Ok(line) => Ok(Arc::new(line)),
        Err(_) if !refused && target.user.token_file.is_some() => Ok(Arc::clone(line)),
        Err(problem) => Err(problem),
    }
}
