//! Exec plugins of kubeconfigs (`client.authentication.k8s.io` v1 and v1beta1): runs one, reads what it
//! prints, and says why it cannot. A plugin never gets the terminal: the screen has it.

use super::unreachable::{Names, Problem};
use jiff::Timestamp;
use kube::config::{ExecConfig, ExecInteractiveMode};
use serde::Deserialize;
use serde_json::json;
use std::fmt;
use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a plugin may take.
const LONGEST: Duration = Duration::from_secs(30);
/// Bytes of its output.
const LARGEST: usize = 1 << 20;
const VERSIONS: [&str; 2] = ["client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1"];

/// The answer of a plugin.
#[derive(Clone, Default)]
pub(super) struct Given {
    pub(super) token: Option<String>,
    /// Certificate and key, PEM.
    pub(super) certificate: Option<(String, String)>,
    pub(super) expires: Option<Timestamp>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Credential {
    #[serde(default)]
    api_version: String,
    #[serde(default)]
    kind: String,
    status: Option<Status>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    expiration_timestamp: Option<String>,
    token: Option<String>,
    client_certificate_data: Option<String>,
    client_key_data: Option<String>,
}

/// Runs the plugin; blocks for as long as it takes.
///
/// # Errors
/// An explanation that never holds what the plugin printed as its credential.
pub(super) fn run(plugin: &ExecConfig, names: &Names) -> Result<Given, Problem> {
    let command = plugin.command.clone().unwrap_or_default();
    let fail = |what: String, hint: &str| Err(names.no_credential(&what, hint));
    if command.is_empty() {
        return fail("its exec plugin names no command".to_owned(), "set the command");
    }
    let version = plugin.api_version.clone().unwrap_or_default();
    if !VERSIONS.contains(&version.as_str()) {
        return fail(
            format!("the exec plugin {command} speaks {version:?}; opdev speaks v1 and v1beta1"),
            "update the plugin and write its kubeconfig entry anew",
        );
    }
    if plugin.interactive_mode == Some(ExecInteractiveMode::Always) {
        return fail(
            format!(
                "the exec plugin {command} always asks questions in the terminal (interactiveMode: Always), and the screen has the terminal"
            ),
            "use a plugin or a login that needs no questions",
        );
    }
    let mut spec = json!({"interactive": false});
    if plugin.provide_cluster_info {
        let cluster = serde_json::to_value(&plugin.cluster).unwrap_or_default();
        opdev_object::meta::put(&mut spec, &["cluster"], cluster);
    }
    let info = json!({"apiVersion": version, "kind": "ExecCredential", "spec": spec});
    let mut process = Command::new(&command);
    process.args(plugin.args.iter().flatten()).env("KUBERNETES_EXEC_INFO", info.to_string());
    for pair in plugin.env.iter().flatten() {
        if let (Some(name), Some(value)) = (pair.get("name"), pair.get("value")) {
            process.env(name, value);
        }
    }
    let ended = match wait(process.stdin(Stdio::null())) {
        Ok(ended) => ended,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            let hint = plugin.install_hint.as_deref().map(str::trim).filter(|hint| !hint.is_empty());
            let hint = hint.map_or_else(|| format!("install {command}, or correct its path"), str::to_owned);
            return fail(format!("the exec plugin {command} is not installed"), &hint);
        }
        Err(error) => return fail(format!("the exec plugin {command} cannot be run: {error}"), "correct it"),
    };
    if ended.code != Some(0) {
        let how = ended.code.map_or_else(
            || format!("was stopped after {} s", LONGEST.as_secs()),
            |code| format!("failed with exit code {code}"),
        );
        let said = if ended.said.is_empty() { String::new() } else { format!(": {}", ended.said) };
        return fail(format!("the exec plugin {command} {how}{said}"), "log in again as you do for kubectl");
    }
    read(&ended.printed, &command, &version)
        .or_else(|why| fail(why.to_string(), "run the plugin by hand and see"))
}

/// Why what a plugin printed is of no use. Nothing of the credential is in it.
#[derive(Debug)]
struct PrintError {
    command: String,
    why: Printed,
}

#[derive(Debug)]
enum Printed {
    NoCredential,
    OtherKind { kind: String, api_version: String, wanted: String },
    NoStatus,
    NoTime,
    NeitherTokenNorCertificate,
}

impl fmt::Display for PrintError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the exec plugin {} printed ", self.command)?;
        f.write_str(match &self.why {
            Printed::NoCredential => "something that is no ExecCredential",
            Printed::OtherKind { kind, api_version, wanted } => {
                return write!(f, "{kind:?} of {api_version:?} instead of an ExecCredential of {wanted:?}");
            }
            Printed::NoStatus => "an ExecCredential without a status",
            Printed::NoTime => "an expirationTimestamp that is no time",
            Printed::NeitherTokenNorCertificate => "neither a token nor a certificate with its key",
        })
    }
}

impl std::error::Error for PrintError {}

fn read(printed: &[u8], command: &str, version: &str) -> Result<Given, PrintError> {
    let wrong = |why| PrintError { command: command.to_owned(), why };
    // Output of a plugin is a credential; not even its parser's message may quote it.
    let credential: Credential = serde_json::from_slice(printed).map_err(|_| wrong(Printed::NoCredential))?;
    if credential.kind != "ExecCredential" || credential.api_version != version {
        let Credential { kind, api_version, .. } = credential;
        return Err(wrong(Printed::OtherKind { kind, api_version, wanted: version.to_owned() }));
    }
    let Some(status) = credential.status else {
        return Err(wrong(Printed::NoStatus));
    };
    let expires = match status.expiration_timestamp {
        Some(text) => Some(text.parse().map_err(|_| wrong(Printed::NoTime))?),
        None => None,
    };
    let token = status.token.map(|token| token.trim().to_owned()).filter(|token| !token.is_empty());
    let certificate = status.client_certificate_data.zip(status.client_key_data);
    if token.is_none() && certificate.is_none() {
        return Err(wrong(Printed::NeitherTokenNorCertificate));
    }
    Ok(Given { token, certificate, expires })
}

struct Ended {
    /// `None` where it was stopped.
    code: Option<i32>,
    printed: Vec<u8>,
    /// The last words on its standard error.
    said: String,
}

/// How long the pipes of a plugin that has ended may stay open: what it left behind may hold them as long as
/// it lives.
const CLOSING: Duration = Duration::from_millis(500);

/// A pipe that a thread reads to its end.
struct Reading {
    first: Arc<Mutex<Vec<u8>>>,
    end: Receiver<()>,
}

impl Reading {
    fn start(pipe: Option<Box<dyn Read + Send>>) -> Reading {
        let (first, (tell, end)) = (Arc::new(Mutex::new(Vec::new())), channel());
        let into = Arc::clone(&first);
        std::thread::spawn(move || {
            let _ends = tell;
            let (Some(mut pipe), mut part) = (pipe, [0; 8192]) else { return };
            loop {
                match pipe.read(&mut part) {
                    Ok(0) => return,
                    Ok(count) => {
                        let mut first = into.lock().unwrap_or_else(PoisonError::into_inner);
                        // The rest is thrown away, so that the plugin can end.
                        let room = LARGEST.saturating_sub(first.len()).min(count);
                        first.extend_from_slice(&part[..room]);
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                    Err(_) => return,
                }
            }
        });
        Reading { first, end }
    }

    /// The text that came until the pipe was closed, or until then.
    fn text(self, until: Instant) -> Vec<u8> {
        // Nothing is ever sent: the end is that nobody sends any more.
        let _ = self.end.recv_timeout(until.saturating_duration_since(Instant::now()));
        std::mem::take(&mut *self.first.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn wait(process: &mut Command) -> std::io::Result<Ended> {
    let mut child = process.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    let read = |pipe: Option<Box<dyn Read + Send>>| Reading::start(pipe);
    let printed = read(child.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let said = read(child.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>));
    let deadline = Instant::now() + LONGEST;
    let mut pause = Duration::from_millis(1);
    let code = loop {
        if let Some(status) = child.try_wait()? {
            break Some(status.code().unwrap_or(-1));
        }
        if Instant::now() > deadline {
            let _ = child.kill();
            let _ = child.wait();
            // A process that it has started may hold its pipes open for ever.
            return Ok(Ended { code: None, printed: Vec::new(), said: String::new() });
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    };
    let closing = Instant::now() + CLOSING;
    let printed = printed.text(closing);
    let said = String::from_utf8_lossy(&said.text(closing)).into_owned();
    let lines: Vec<&str> = said.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let said = lines.iter().skip(lines.len().saturating_sub(3)).copied().collect::<Vec<_>>().join(" | ");
    Ok(Ended { code, printed, said: said.chars().take(400).collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plugin(script: &str) -> ExecConfig {
        ExecConfig {
            api_version: Some(VERSIONS[0].to_owned()),
            command: Some("sh".to_owned()),
            args: Some(vec!["-c".to_owned(), script.to_owned()]),
            interactive_mode: Some(ExecInteractiveMode::IfAvailable),
            ..ExecConfig::default()
        }
    }

    fn names() -> Names {
        Names {
            context: "prod".into(),
            user: "jane".into(),
            user_file: "/k/config".into(),
            ..Names::default()
        }
    }

    fn refused(plugin: &ExecConfig) -> String {
        run(plugin, &names()).err().expect("it is refused").to_string()
    }

    /// As `gcloud` and others do, which keep a process for the next time.
    #[test]
    fn what_a_plugin_leaves_behind_is_not_waited_for() {
        let credential = r#"{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{"token":"t"}}"#;
        let plugin = plugin(&format!("sleep 25 & echo '{credential}'"));
        let (tell, told) = channel();
        std::thread::spawn(move || tell.send(run(&plugin, &names()).map(|given| given.token)));
        let given = told.recv_timeout(Duration::from_secs(15)).expect("it waits for the child");
        assert_eq!(given.unwrap_or_else(|problem| panic!("{problem}")).as_deref(), Some("t"));
    }

    #[test]
    fn it_gives_what_the_plugin_prints_and_tells_it_that_nobody_answers() {
        let script = r#"test "$(cat)" = "" || exit 3
            case "$KUBERNETES_EXEC_INFO" in *'"interactive":false'*) ;; *) exit 4;; esac
            echo '{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":
                  {"token":"t ","expirationTimestamp":"2030-01-01T00:00:00Z"}}'"#;
        let given = run(&plugin(script), &names()).unwrap_or_else(|problem| panic!("{problem}"));
        assert_eq!(given.token.as_deref(), Some("t"));
        assert_eq!(given.expires.unwrap().to_string(), "2030-01-01T00:00:00Z");
    }

    #[test]
    fn what_goes_wrong_is_explained_without_the_credential() {
        let missing = ExecConfig {
            command: Some("/nowhere/aws".into()),
            install_hint: Some("get it at example.com".into()),
            ..plugin("")
        };
        let always = ExecConfig { interactive_mode: Some(ExecInteractiveMode::Always), ..plugin("") };
        let alpha =
            ExecConfig { api_version: Some("client.authentication.k8s.io/v1alpha1".into()), ..plugin("") };
        for (plugin, said) in [
            (missing, "get it at example.com"),
            (always, "interactiveMode: Always"),
            (alpha, "v1alpha1"),
            (plugin("echo token expired >&2; exit 7"), "exit code 7: token expired"),
            (plugin("echo hidden"), "no ExecCredential"),
            (
                plugin(r#"echo '{"kind":"ExecCredential","apiVersion":"v9","status":{"token":"hidden"}}'"#),
                "\"v9\"",
            ),
            (
                plugin(
                    r#"echo '{"kind":"ExecCredential","apiVersion":"client.authentication.k8s.io/v1","status":{}}'"#,
                ),
                "neither a token",
            ),
        ] {
            let text = refused(&plugin);
            assert!(text.contains(said) && text.contains("user jane in /k/config"), "{text}");
            assert!(!text.contains("hidden"), "{text}");
        }
    }
}
