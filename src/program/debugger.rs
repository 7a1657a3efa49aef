//! The debugger of a Go program: Delve starts it and waits for an editor on a local address. The program runs
//! at once and goes on without one.

use anyhow::{Context as _, Result, bail};
use serde_json::{Value, json};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// The reason for which a program stands still where it has ended.
pub(super) const EXITED: &str = "exited";
/// How long Delve may take to say how the program has ended.
const PATIENCE: Duration = Duration::from_secs(2);
/// Bytes of its answer.
const MOST: u64 = 64 << 10;

/// Why the program stands still, where a line that Delve prints says so (`maybePrintUnattendedStopWarning` in
/// its service/debugger).
pub(super) fn stop_reason(line: &str) -> Option<&str> {
    let paused = || line.strip_prefix("** execution is paused because ")?.strip_suffix(" **");
    line.strip_prefix("Stop reason: ").or_else(paused)
}

/// How the program has ended, as Delve at this address says; `None` where it does not. The debugger's own end
/// says nothing about that.
pub(super) async fn exit_status(address: &str) -> Option<ExitStatus> {
    let answer = state(address).await?;
    // Delve answers for a program that has ended with an error in words, or with a state.
    let code = match answer["result"]["State"]["exited"].as_bool() {
        Some(true) => answer["result"]["State"]["exitStatus"].as_i64(),
        Some(false) | None => {
            let (_, code) = answer["error"].as_str()?.split_once("has exited with status ")?;
            code.trim().parse().ok()
        }
    };
    let code = i32::try_from(code?).ok()?;
    // A signal is a negative number.
    Some(ExitStatus::from_raw(if code < 0 { code.checked_neg()? } else { code.checked_mul(256)? }))
}

/// Its state by JSON-RPC, while the program goes on; `None` where it does not answer in time. Each question
/// has a connection of its own: Delve prints why a program stands still only where nobody is connected.
pub(super) async fn state(address: &str) -> Option<Value> {
    tokio::time::timeout(PATIENCE, ask(address)).await.ok()?.ok()
}

async fn ask(address: &str) -> Result<Value> {
    let mut stream = TcpStream::connect(address).await?;
    let question = json!({"method": "RPCServer.State", "params": [{"NonBlocking": true}], "id": 1});
    stream.write_all(question.to_string().as_bytes()).await?;
    let (mut bytes, mut answers) = (Vec::new(), stream.take(MOST));
    loop {
        if answers.read_buf(&mut bytes).await? == 0 {
            bail!("the debugger has closed the connection");
        }
        // The connection stays open after the answer.
        if let Some(answer) = serde_json::Deserializer::from_slice(&bytes).into_iter().next() {
            match answer {
                Err(error) if error.is_eof() => {}
                answer => return Ok(answer?),
            }
        }
    }
}

/// A build without what takes away what a debugger needs.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Debuggable {
    pub(super) flags: Vec<String>,
    pub(super) ldflags: String,
    /// The parts that were left out: the tables of symbols and of lines (`-s`, `-w`), and the places of files
    /// (`-trimpath`).
    pub(super) left_out: Vec<String>,
}

/// Flags of the linker whose value is the next word.
const WITH_VALUE: [&str; 16] = [
    "B",
    "E",
    "H",
    "I",
    "L",
    "R",
    "T",
    "X",
    "buildid",
    "buildmode",
    "extar",
    "extld",
    "extldflags",
    "k",
    "linkmode",
    "r",
];

/// Takes those flags out of a project's own.
pub(super) fn debuggable(flags: &[String], ldflags: &str) -> Debuggable {
    let strips = |word: &str, names: &[&str]| {
        let Some(flag) = word.strip_prefix('-') else { return false };
        let (name, value) = flag.split_once('=').unwrap_or((flag, "true"));
        names.contains(&name.trim_start_matches('-'))
            && matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True")
    };
    let (mut kept, mut left_out) = (Vec::new(), Vec::new());
    let mut is_value = false;
    for word in linker_words(ldflags) {
        if !is_value && strips(word, &["s", "w"]) {
            left_out.push(word.to_owned());
            continue;
        }
        let flag = word.strip_prefix('-').map(|flag| flag.trim_start_matches('-'));
        is_value = !is_value && flag.is_some_and(|flag| WITH_VALUE.contains(&flag));
        kept.push(word);
    }
    let (trimmed, flags) = flags.iter().cloned().partition(|flag| strips(flag, &["trimpath"]));
    left_out.extend::<Vec<String>>(trimmed);
    Debuggable { flags, ldflags: kept.join(" "), left_out }
}

/// The words of linker flags as the go command splits them, each with its quotes.
fn linker_words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let end = match first {
            '\'' | '"' => rest[1..].find(first).map(|at| at + 2),
            _ => rest.find(char::is_whitespace),
        };
        let (word, after) = rest.split_at(end.unwrap_or(rest.len()));
        words.push(word);
        rest = after.trim_start();
    }
    words
}

/// Where Delve is.
///
/// # Errors
/// Where it is not installed.
pub(super) fn installed() -> Result<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let go = ["GOBIN", "GOPATH", "HOME"].map(|name| std::env::var_os(name).map(PathBuf::from));
    let [bin, workspace, home] = go;
    let of_go = bin
        .into_iter()
        .chain(workspace.map(|folder| folder.join("bin")))
        .chain(home.map(|folder| folder.join("go/bin")));
    let found = std::env::split_paths(&path).chain(of_go).map(|folder| folder.join("dlv"));
    found.into_iter().find(|path| path.is_file()).context("the debugger dlv is not installed")
}

/// The command that runs a binary with its arguments under the debugger.
///
/// # Errors
/// Where Delve is not installed.
pub(super) fn command(address: &str, binary: &Path, arguments: &[String]) -> Result<Vec<String>> {
    let dlv = installed()?;
    let words = [
        dlv.display().to_string(),
        "exec".to_owned(),
        "--headless".to_owned(),
        "--api-version=2".to_owned(),
        // It runs without a client, and one may come and go.
        "--accept-multiclient".to_owned(),
        "--continue".to_owned(),
        format!("--listen={address}"),
        binary.display().to_string(),
        "--".to_owned(),
    ];
    Ok(words.into_iter().chain(arguments.iter().cloned()).collect())
}

/// Returns true if an address is open to others than this machine. A debugger asks nobody for a password.
pub(super) fn is_open_to_others(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    !opdev_os::http_proxy::is_here(host.trim_matches(['[', ']']))
}

/// Why Delve could not be started at an address, now: another program listens there. Known before a build
/// takes its time.
pub(super) fn is_taken(address: &str) -> Option<String> {
    match std::net::TcpListener::bind(address) {
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => Some(format!(
            "another program listens at {address}, where the debugger was to wait for an editor"
        )),
        Err(error) if error.kind() != std::io::ErrorKind::PermissionDenied => {
            Some(format!("--debug: {address} is no address of this machine: {error}"))
        }
        Ok(_) | Err(_) => None,
    }
}

/// The hint where the address is taken.
pub(super) const ELSEWHERE: &str =
    "end that program and press R, or start opdev with another port, such as --debug=127.0.0.1:2346";

/// The hint where it is not installed.
pub(super) const INSTALL: &str =
    "go install github.com/go-delve/delve/cmd/dlv@latest, then press R; or start opdev without --debug";

/// How an editor comes to the program.
pub(super) fn attach(address: &str) -> String {
    let port = address.rsplit(':').next().unwrap_or(address);
    format!(
        "dlv connect {address}; in VS Code a launch configuration with \"request\": \"attach\", \"mode\": \"remote\", \"port\": \
         {port}; in GoLand \"Go Remote\" with this port"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use opdev_os::child::status_words;
    use tokio::net::TcpListener;

    #[test]
    fn what_a_debugger_needs_is_not_stripped() {
        let of = |flags: &[&str], ldflags: &str| {
            let flags: Vec<String> = flags.iter().map(|flag| (*flag).to_owned()).collect();
            let found = debuggable(&flags, ldflags);
            (found.flags.join(" "), found.ldflags, found.left_out.join(" "))
        };
        let texts = |texts: (&str, &str, &str)| (texts.0.to_owned(), texts.1.to_owned(), texts.2.to_owned());
        assert_eq!(
            of(&["-tags=dev", "-trimpath"], "-s -w -X main.version=1"),
            texts(("-tags=dev", "-X main.version=1", "-s -w -trimpath"))
        );
        // A value is no flag, wherever it stands.
        let kept = "-X 'main.flags=a -s -w' -extldflags \"-static -s\" -X -s -w=false";
        assert_eq!(of(&["-trimpath=false"], kept), texts(("-trimpath=false", kept, "")));
        assert_eq!(of(&[], "  --s=true -w=1 "), texts(("", "", "--s=true -w=1")));
    }

    #[test]
    fn an_address_is_judged_before_the_build() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap().to_string();
        assert!(is_taken(&address).unwrap().contains(&address));
        drop(taken);
        assert_eq!(is_taken("127.0.0.1:0"), None);
        expect!["--debug: foo is no address of this machine: invalid socket address"]
            .assert_eq(&is_taken("foo").unwrap());
        assert!(is_open_to_others("0.0.0.0:2346") && is_open_to_others(":2345"));
        assert!(!is_open_to_others("127.0.0.1:2345") && !is_open_to_others("[::1]:1"));
        assert!(!is_open_to_others("localhost:1"));
    }

    #[test]
    fn what_delve_prints_says_why_the_program_stands_still() {
        assert_eq!(stop_reason("Stop reason: exited"), Some(EXITED));
        let panics = "** execution is paused because your program is panicking **";
        assert_eq!(stop_reason(panics), Some("your program is panicking"));
        assert_eq!(stop_reason("execution is paused"), None);
    }

    #[tokio::test]
    async fn the_end_of_the_program_is_what_delve_answers_and_not_its_own() {
        for (answer, expected) in [
            (
                "{\"id\":1,\"result\":null,\"error\":\"Process 9 has exited with status 7\"}\n",
                Some("exit code 7"),
            ),
            (
                "{\"id\":1,\"result\":null,\"error\":\"Process 9 has exited with status -9\"}",
                Some("signal 9"),
            ),
            ("{\"id\":1,\"result\":{\"State\":{\"exited\":true,\"exitStatus\":0}}}", Some("exit code 0")),
            ("{\"id\":1,\"result\":{\"State\":{\"Running\":true,\"exited\":false}},\"error\":null}", None),
            ("no JSON", None),
            ("{\"id\":1,", None),
        ] {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap().to_string();
            let debugger = async {
                let (mut stream, _) = listener.accept().await.unwrap();
                let mut asked = [0; 512];
                let read = stream.read(&mut asked).await.unwrap();
                assert!(std::str::from_utf8(&asked[..read]).unwrap().contains("RPCServer.State"));
                stream.write_all(answer.as_bytes()).await.unwrap();
            };
            let (status, ()) = tokio::join!(exit_status(&address), debugger);
            let words = status.map(|status| status_words(Some(status)));
            let short = words.as_deref().map(|words| words.split(" (").next().unwrap());
            assert_eq!(short, expected, "{answer}");
        }
    }
}
