//! `fetch` and `exec` of programs: what `opdev.yaml` allows, for as long as the reconcile has time, with
//! bounded answers. Recorded as calls of the reconcile, without query, headers, arguments and bodies: those
//! may hold secrets.

use super::outside_error::{ExecError, FetchError, RunError};
use opdev_client::recorder::Recorder;
use opdev_event::Call;
use opdev_script::contract::{Exec, Executed, Fetch, Fetched};
use opdev_sources::Allow;
use rustix::process::{Pid, Signal, WaitId, WaitIdOptions, kill_process_group, waitid};
use std::collections::BTreeSet;
use std::error::Error;
use std::io::{Read, Write};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Bytes of an answer or of an output.
const LARGEST: u64 = 4 << 20;

/// An HTTP request to an allowed host. Redirects are handed back, not followed.
pub(crate) fn fetch(
    request: &Fetch,
    allow: &Allow,
    left: Duration,
    recorder: Option<&Recorder>,
) -> Result<Fetched, FetchError> {
    let host = host_of(&request.url)?;
    if !allow.hosts.iter().any(|pattern| matches(pattern, &host, &request.url)) {
        if allow.refused.iter().any(|pattern| matches(pattern, &host, &request.url)) {
            return Err(FetchError::NotTrusted { host });
        }
        return Err(FetchError::NotAllowed { host });
    }
    let noted = Noted::begin(recorder, "fetch", &host, address(&request.url));
    let answer = send(request, left);
    let (status, reason) = match &answer {
        Ok(answer) => (answer.status, None),
        Err(why) => (0, Some(why.to_string())),
    };
    noted.end(status, reason);
    answer.map_err(|source| FetchError::Failed { host, source })
}

fn send(request: &Fetch, left: Duration) -> Result<Fetched, Box<dyn Error + Send + Sync>> {
    let agent: ureq::Agent = ureq::Agent::config_builder()
        .timeout_global(Some(left))
        .max_redirects(0)
        .max_redirects_will_error(false)
        .http_status_as_error(false)
        .build()
        .into();
    let method = if request.method.is_empty() { "GET" } else { request.method.as_str() };
    let mut built = ureq::http::Request::builder().method(method).uri(&request.url);
    for (name, value) in &request.headers {
        built = built.header(name, value);
    }
    let sent = match &request.body {
        Some(body) => agent.run(built.body(body.clone())?),
        None => agent.run(built.body(())?),
    };
    let mut answer = sent?;
    let body = answer.body_mut().with_config().limit(LARGEST).read_to_vec()?;
    let headers = answer.headers().iter().map(|(name, value)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
    });
    Ok(Fetched {
        status: answer.status().as_u16(),
        headers: headers.collect(),
        body: String::from_utf8_lossy(&body).into_owned(),
    })
}

/// Host and port of an address, as the allow list names them: the port only where it is written.
pub(crate) fn host_of(url: &str) -> Result<String, FetchError> {
    let own = || url.to_owned();
    let parsed: http::Uri = url.parse().map_err(|source| FetchError::NoAddress { url: own(), source })?;
    if !matches!(parsed.scheme_str(), Some("http" | "https")) {
        return Err(FetchError::Scheme { url: own() });
    }
    let authority = parsed.authority().ok_or_else(|| FetchError::NoHost { url: own() })?;
    if authority.as_str().contains('@') {
        return Err(FetchError::Credentials);
    }
    Ok(authority.as_str().to_ascii_lowercase())
}

/// `example.com` allows the usual ports, `example.com:8080` that one, `*.example.com` every name below.
fn matches(pattern: &str, host: &str, url: &str) -> bool {
    let split = |text: &str| match text.rsplit_once(':') {
        Some((name, port)) if port.chars().all(|c| c.is_ascii_digit()) && !port.is_empty() => {
            (name.to_owned(), Some(port.to_owned()))
        }
        Some(_) | None => (text.to_owned(), None),
    };
    let usual = if url.starts_with("https:") { "443" } else { "80" };
    let (wanted, wanted_port) = split(&pattern.to_ascii_lowercase());
    let (name, port) = split(host);
    let port = port.unwrap_or_else(|| usual.to_owned());
    let port_fits = match wanted_port {
        Some(wanted) => wanted == port,
        None => port == usual,
    };
    let name_fits = match wanted.strip_prefix("*.") {
        Some(domain) => name.strip_suffix(domain).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.')),
        None => wanted == name,
    };
    port_fits && name_fits
}

/// The address without what may be secret.
fn address(url: &str) -> String {
    url.split(['?', '#']).next().unwrap_or_default().to_owned()
}

/// Runs an allowed program, never through a shell, with a small environment.
pub(crate) fn exec(
    command: &Exec,
    allow: &Allow,
    left: Duration,
    recorder: Option<&Recorder>,
) -> Result<Executed, ExecError> {
    let program = &command.program;
    if !allow.programs.contains(program) {
        let program = program.clone();
        return Err(if allow.refused.contains(&program) {
            ExecError::NotTrusted { program }
        } else {
            ExecError::NotAllowed { program }
        });
    }
    let noted = Noted::begin(recorder, "exec", program, program.clone());
    let ended = run(command, left);
    let (status, reason) = match &ended {
        Ok(done) if done.code == 0 => (200, None),
        Ok(done) => (500, Some(format!("exit code {}", done.code))),
        Err(why) => (0, Some(why.to_string())),
    };
    noted.end(status, reason);
    ended.map_err(|source| ExecError::Failed { program: program.clone(), source })
}

/// How long the output of a program that has ended may take to close: one that left its group may hold it for
/// ever.
const CLOSING: Duration = Duration::from_secs(2);

fn run(command: &Exec, left: Duration) -> Result<Executed, RunError> {
    let mut child = spawn(command)?;
    // Whatever it has started goes with it, also where reading fails below.
    let group = Group::of(&child);
    let input = child.stdin.take().zip(command.input.clone());
    let outputs = child.stdout.take().zip(child.stderr.take());
    let Some((stdout, stderr)) = outputs else { return Err(RunError::NoOutput) };
    // A thread each: a full pipe must not stop the others.
    std::thread::spawn(move || {
        if let Some((mut pipe, text)) = input {
            // A program that does not read is no error.
            let _ = pipe.write_all(text.as_bytes());
        }
    });
    let read = |pipe: Box<dyn Read + Send>| {
        let (sender, whole) = channel();
        std::thread::spawn(move || {
            let (mut text, mut rest) = (Vec::new(), pipe);
            let _ = rest.by_ref().take(LARGEST).read_to_end(&mut text);
            // The rest is thrown away, so that the program can end.
            let _ = std::io::copy(&mut rest, &mut std::io::sink());
            let _ = sender.send(String::from_utf8_lossy(&text).into_owned());
        });
        whole
    };
    let (stdout, stderr) = (read(Box::new(stdout)), read(Box::new(stderr)));
    let status = wait(&mut child, &group, left)?;
    let text = |whole: Receiver<String>| whole.recv_timeout(CLOSING).map_err(|_| RunError::LeftBehind);
    Ok(Executed { code: status.code().unwrap_or(-1), stdout: text(stdout)?, stderr: text(stderr)? })
}

fn spawn(command: &Exec) -> std::io::Result<Child> {
    let mut built = Command::new(&command.program);
    built.args(&command.arguments).env_clear();
    for name in ["PATH", "HOME", "LANG", "TMPDIR"] {
        if let Some(value) = std::env::var_os(name) {
            built.env(name, value);
        }
    }
    // A group of its own, so that what it starts can be ended with it, and so that `ctrl-c` is opdev's alone.
    built.process_group(0);
    built.stdin(if command.input.is_some() { Stdio::piped() } else { Stdio::null() });
    built.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn()
}

/// A program and all that it has started and that did not leave the group. Ends with this value: a child in
/// the background would keep the pipes open for ever, and run on with nobody who knows of it.
struct Group(Option<Pid>);

/// The groups that run, for the end of opdev.
static RUNNING: Mutex<BTreeSet<i32>> = Mutex::new(BTreeSet::new());

impl Group {
    fn of(child: &Child) -> Group {
        let leader = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
        if let Some(leader) = leader {
            running().insert(leader.as_raw_nonzero().get());
        }
        Group(leader)
    }

    /// Ends every process in it. The leader must not have been waited for: its number would be free for
    /// others.
    fn kill(&self) {
        if let Some(leader) = self.0 {
            let _ = kill_process_group(leader, Signal::KILL);
            running().remove(&leader.as_raw_nonzero().get());
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        if let Some(leader) = self.0 {
            running().remove(&leader.as_raw_nonzero().get());
        }
    }
}

fn running() -> MutexGuard<'static, BTreeSet<i32>> {
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends every program that reconcilers run right now, with all that it has started: opdev is about to end.
pub fn end_programs() {
    for leader in running().iter().filter_map(|number| Pid::from_raw(*number)) {
        let _ = kill_process_group(leader, Signal::KILL);
    }
}

/// Returns true if a child has ended; its number stays its own until it is waited for.
fn has_ended(group: &Group) -> std::io::Result<bool> {
    let Some(leader) = group.0 else { return Ok(true) };
    let how = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT | WaitIdOptions::NOHANG;
    Ok(waitid(WaitId::Pid(leader), how)?.is_some())
}

/// There is no wait with a time limit for processes: short steps, for the program's thread has nothing else
/// to do.
fn wait(child: &mut Child, group: &Group, left: Duration) -> Result<std::process::ExitStatus, RunError> {
    let deadline = Instant::now() + left;
    let mut step = Duration::from_millis(1);
    loop {
        match has_ended(group) {
            Ok(true) => {
                group.kill();
                return Ok(child.wait()?);
            }
            Ok(false) if Instant::now() >= deadline => {
                group.kill();
                let _ = child.wait();
                return Err(RunError::TimeIsOver { after: left });
            }
            Ok(false) => std::thread::sleep(step),
            Err(error) => {
                group.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        }
        step = (step * 2).min(Duration::from_millis(20));
    }
}

/// A call that is under way.
struct Noted<'a> {
    recorder: Option<&'a Recorder>,
    call: Call,
    began: Instant,
}

impl<'a> Noted<'a> {
    fn begin(recorder: Option<&'a Recorder>, verb: &str, target: &str, path: String) -> Noted<'a> {
        let call = Call {
            verb: verb.to_owned(),
            path,
            target: target.to_owned(),
            start: recorder.map_or(Duration::ZERO, Recorder::elapsed),
            took: Duration::ZERO,
            status: 0,
            reason: None,
            place: None,
        };
        Noted { recorder, call, began: Instant::now() }
    }

    fn end(mut self, status: u16, reason: Option<String>) {
        self.call.took = self.began.elapsed();
        self.call.status = status;
        self.call.reason = reason;
        if let Some(recorder) = self.recorder {
            recorder.note(self.call);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn shell(script: &str) -> Exec {
        Exec { program: "sh".to_owned(), arguments: vec!["-c".to_owned(), script.to_owned()], input: None }
    }

    /// Waits until nothing but a zombie is left of a process.
    fn is_gone(pid: &str) -> bool {
        let gone = || {
            let state = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
            state.is_empty() || state.contains(") Z ")
        };
        let deadline = Instant::now() + Duration::from_secs(20);
        while !gone() && Instant::now() < deadline {
            std::thread::yield_now();
        }
        gone()
    }

    #[test]
    fn what_a_program_starts_ends_with_it() {
        let done = run(&shell("sleep 1000 & echo $!"), Duration::from_secs(20)).unwrap();
        assert!(is_gone(done.stdout.trim()), "a child in the background goes on after its program has ended");
        let folder = tempfile::tempdir().unwrap();
        let pid = folder.path().join("pid");
        let script = format!("sh -c 'sleep 1000 & echo $! > {0}; wait' & wait", pid.display());
        let why = run(&shell(&script), Duration::from_millis(500)).unwrap_err().to_string();
        expect!["ended after 500 ms: the time of this reconcile is over"].assert_eq(&why);
        let pid = std::fs::read_to_string(pid).unwrap();
        assert!(is_gone(pid.trim()), "a grandchild goes on after the time is over");
    }

    #[test]
    fn who_leaves_the_group_does_not_hold_the_reconcile_up() {
        let done = run(&shell("setsid sh -c 'echo $$; exec sleep 30' & sleep 0.2"), Duration::from_secs(20));
        expect!["a process that it has left behind keeps its output open"]
            .assert_eq(&done.unwrap_err().to_string());
    }

    fn allow(hosts: &[&str], programs: &[&str]) -> Allow {
        let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
        Allow { hosts: own(hosts), programs: own(programs), refused: Vec::new() }
    }

    #[test]
    fn hosts_are_allowed_by_name_port_and_domain() {
        let fits = |pattern: &str, url: &str| matches(pattern, &host_of(url).unwrap(), url);
        assert!(fits("api.example.com", "https://API.example.com/x"));
        assert!(fits("api.example.com", "http://api.example.com:80/"));
        assert!(!fits("api.example.com", "https://api.example.com:8443/"));
        assert!(fits("localhost:8080", "http://localhost:8080/x?y"));
        assert!(fits("*.example.com", "https://a.b.example.com"));
        assert!(!fits("*.example.com", "https://example.com"));
        assert!(!fits("*.example.com", "https://badexample.com"));
        for wrong in ["ftp://x/", "x", "http://user:pw@host/", "file:///etc/passwd"] {
            assert!(host_of(wrong).is_err(), "{wrong}");
        }
        let error = fetch(
            &Fetch { url: "http://nowhere.test/".to_owned(), ..Fetch::default() },
            &allow(&[], &[]),
            Duration::from_secs(1),
            None,
        );
        expect!["fetch: nowhere.test is not allowed; add it to `allow.hosts` in opdev.yaml if the reconciler may reach it"]
        .assert_eq(&error.unwrap_err().to_string());
    }

    #[test]
    fn a_request_is_answered_and_recorded_without_its_query() {
        let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = server.local_addr().unwrap();
        let answering = std::thread::spawn(move || {
            let (mut stream, _) = server.accept().unwrap();
            let mut seen = [0; 1024];
            let read = stream.read(&mut seen).unwrap();
            stream.write_all(b"HTTP/1.1 404 Not Found\r\nX-A: b\r\nContent-Length: 2\r\n\r\nno").unwrap();
            String::from_utf8_lossy(&seen[..read]).into_owned()
        });
        let recorder = Recorder::default();
        let request = Fetch { url: format!("http://{address}/a?token=t"), ..Fetch::default() };
        let allowed = allow(&[&address.to_string()], &[]);
        let answer = fetch(&request, &allowed, Duration::from_secs(10), Some(&recorder)).unwrap();
        assert_eq!((answer.status, answer.body.as_str()), (404, "no"));
        assert_eq!(answer.headers["x-a"], "b");
        assert!(answering.join().unwrap().starts_with("GET /a?token=t "));
        let call = &recorder.calls()[0];
        assert_eq!((call.verb.as_str(), call.status), ("fetch", 404));
        assert_eq!(call.path, format!("http://{address}/a"));
    }

    #[test]
    fn programs_run_without_a_shell_and_for_a_finite_time() {
        let allowed = allow(&[], &["cat", "sleep", "sh"]);
        let run = |program: &str, arguments: &[&str], input: Option<&str>, left: u64| {
            let command = Exec {
                program: program.to_owned(),
                arguments: arguments.iter().map(|text| (*text).to_owned()).collect(),
                input: input.map(str::to_owned),
            };
            exec(&command, &allowed, Duration::from_millis(left), None)
        };
        assert_eq!(run("cat", &[], Some("$HOME"), 10_000).unwrap().stdout, "$HOME");
        assert_eq!(run("sh", &["-c", "echo no >&2; exit 3"], None, 10_000).unwrap().code, 3);
        let refused = |why: Result<Executed, ExecError>| why.unwrap_err().to_string();
        expect!["exec: sleep: ended after 50 ms: the time of this reconcile is over"]
            .assert_eq(&refused(run("sleep", &["60"], None, 50)));
        expect![
            "exec: rm is not allowed; add it to `allow.programs` in opdev.yaml if the reconciler may run it"
        ]
        .assert_eq(&refused(run("rm", &[], None, 10)));
    }
}
