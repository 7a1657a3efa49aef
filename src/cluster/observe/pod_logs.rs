//! Follows the logs of pods for as long as somebody looks at them: what is wanted is a level, told as a whole
//! each time. Values of the Secrets that a pod uses are masked before a line becomes an event.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{AsyncBufReadExt as _, StreamExt as _};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Pod, PodSpec, Secret};
use kube::api::LogParams;
use kube::{Api, Client};
use opdev_event::sink::EventSink;
use opdev_event::{Event, LogSource, PodLine, PodLog, mask, words};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

/// Lines of the past to begin with.
const TAIL: i64 = 200;
/// Before a log that broke off is opened again.
const FIRST_PAUSE: Duration = Duration::from_millis(200);
const LONGEST_PAUSE: Duration = Duration::from_secs(10);
/// Longer lines are cut.
const LONGEST: usize = 8 * 1024;
/// Lines that are told together where many come at once.
const BATCH: usize = 200;

/// The logs that are followed.
pub struct PodLogs {
    client: Client,
    events: EventSink,
    running: BTreeMap<LogSource, CancellationToken>,
    tasks: TaskTracker,
    shutdown: CancellationToken,
}

impl PodLogs {
    pub fn new(client: Client, events: EventSink, tasks: TaskTracker, shutdown: CancellationToken) -> Self {
        PodLogs { client, events, running: BTreeMap::new(), tasks, shutdown }
    }

    /// Follows these and no others.
    pub fn follow(&mut self, wanted: &[LogSource]) {
        self.running.retain(|source, token| {
            let keep = wanted.contains(source);
            if !keep {
                token.cancel();
            }
            keep
        });
        for source in wanted {
            if !self.running.contains_key(source) {
                let token = self.shutdown.child_token();
                let work = follow(self.client.clone(), source.clone(), self.events.clone());
                self.tasks.spawn(token.clone().run_until_cancelled_owned(work));
                self.running.insert(source.clone(), token);
            }
        }
    }
}

/// Follows one log until its container has ended. A log that breaks off, because the node rotates it or a
/// connection is lost, is opened again where it broke off.
async fn follow(client: Client, source: LogSource, events: EventSink) {
    let tell = async |fresh: bool, lines: Vec<PodLine>, ended: Option<String>| {
        let (at, source) = (Timestamp::now(), source.clone());
        events.emit(Event::PodLog(PodLog { at, source, fresh, lines, ended })).await;
    };
    tell(true, Vec::new(), None).await;
    let pods: Api<Pod> = Api::namespaced(client.clone(), &source.namespace);
    let secrets = secrets(&client, &pods, &source).await;
    let mut last: Last = Last::default();
    let (mut pause, mut waits) = (FIRST_PAUSE, false);
    loop {
        last.opens();
        let opened = pods.log_stream(&source.pod, &params(&source, &last)).await;
        let mut why = match opened {
            // An answer of the server about a log is its last word; without an answer there may be one later.
            Err(error @ kube::Error::Api(_)) if last.at.is_none() => {
                return tell(false, Vec::new(), Some(mask::text(&refusal(&error), &secrets))).await;
            }
            Err(error) => mask::text(&refusal(&error), &secrets),
            Ok(stream) => {
                let mut why = "the log broke off".to_owned();
                let mut lines = stream.lines().ready_chunks(BATCH);
                while let Some(chunk) = lines.next().await {
                    let mut fresh = Vec::with_capacity(chunk.len());
                    for line in chunk {
                        match line {
                            Ok(text) => fresh.extend(last.take(self::line(&text, &secrets))),
                            Err(error) => why = format!("the log broke off: {error}"),
                        }
                    }
                    pause = FIRST_PAUSE;
                    // A line that was told already is worth a word only where the user waits for one.
                    if !fresh.is_empty() || std::mem::take(&mut waits) {
                        waits = false;
                        tell(false, fresh, None).await;
                    }
                }
                why
            }
        };
        match fate(&pods, &source).await {
            Fate::Over(end) => return tell(false, Vec::new(), Some(end)).await,
            Fate::Runs => {}
            Fate::Unknown(error) => why = error,
        }
        tracing::debug!(pod = source.pod, container = source.container, "{why}; opened again");
        // A rotation is no news.
        if pause > FIRST_PAUSE {
            waits = true;
            tell(false, Vec::new(), Some(format!("{why}; it is opened again"))).await;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn params(source: &LogSource, last: &Last) -> LogParams {
    LogParams {
        container: Some(source.container.clone()),
        follow: !source.previous,
        previous: source.previous,
        // The time is told in whole seconds: lines of that second come once more, and `Last` drops them.
        since_time: last.at.and_then(|at| Timestamp::from_second(at.as_second()).ok()),
        tail_lines: last.at.is_none().then_some(TAIL),
        timestamps: true,
        ..LogParams::default()
    }
}

/// Where a log was broken off.
#[derive(Default)]
struct Last {
    /// The time of the newest line.
    at: Option<Timestamp>,
    /// The lines of that time.
    told: Vec<String>,
    /// The lines that come once more, while the log that was opened again has not come to where it broke off.
    again: Option<Vec<String>>,
}

impl Last {
    /// The log is opened again.
    fn opens(&mut self) {
        self.again = self.at.map(|_| self.told.clone());
    }

    /// A line, unless it has been told, or is from before what was told first.
    fn take(&mut self, line: PodLine) -> Option<PodLine> {
        if let (Some(again), Some(at)) = (&mut self.again, self.at) {
            match line.at.cmp(&at) {
                Ordering::Less => return None,
                Ordering::Equal => {
                    if let Some(known) = again.iter().position(|told| *told == line.text) {
                        again.swap_remove(known);
                        return None;
                    }
                }
                Ordering::Greater => self.again = None,
            }
        }
        if self.at.is_none_or(|at| at < line.at) {
            self.told.clear();
            self.at = Some(line.at);
        }
        if self.at == Some(line.at) {
            self.told.push(line.text.clone());
        }
        Some(line)
    }
}

/// The outcome for a container whose log has ended.
enum Fate {
    /// It runs: the log goes on.
    Runs,
    /// It has ended, in words.
    Over(String),
    /// Nobody tells.
    Unknown(String),
}

async fn fate(pods: &Api<Pod>, source: &LogSource) -> Fate {
    if source.previous {
        return Fate::Over("this run has ended".to_owned());
    }
    let pod = match pods.get_opt(&source.pod).await {
        Ok(Some(pod)) if source.uid.is_none() || pod.metadata.uid == source.uid => pod,
        Ok(_) => return Fate::Over("the pod is gone".to_owned()),
        Err(error) => return Fate::Unknown(refusal(&error)),
    };
    let status = pod.status.unwrap_or_default();
    let all =
        [status.init_container_statuses, status.container_statuses, status.ephemeral_container_statuses];
    let found = all.into_iter().flatten().flatten().find(|one| one.name == source.container);
    let Some(found) = found else { return Fate::Over("the container has ended".to_owned()) };
    if u64::try_from(found.restart_count).is_ok_and(|restarts| restarts != source.restarts) {
        return Fate::Over("the container was restarted".to_owned());
    }
    let state = found.state.unwrap_or_default();
    match (state.running, state.terminated) {
        (Some(_), _) => Fate::Runs,
        (None, Some(end)) => {
            let reason = end.reason.map_or_else(String::new, |reason| format!(", {reason}"));
            Fate::Over(format!("the container has ended (exit code {}{reason})", end.exit_code))
        }
        (None, None) => Fate::Over("the container has ended".to_owned()),
    }
}

fn refusal(error: &kube::Error) -> String {
    match error {
        kube::Error::Api(status) => match status.code {
            403 => format!("the kubeconfig's user may not read pods/log: {}", status.message),
            _ => status.message.clone(),
        },
        other => {
            tracing::debug!("{}", words::error(other));
            "the API server does not answer".to_owned()
        }
    }
}

/// A line with the time in front that `timestamps` asks for.
fn line(text: &str, secrets: &[String]) -> PodLine {
    let (at, text) = match text.split_once(' ').map(|(time, rest)| (time.parse::<Timestamp>(), rest)) {
        Some((Ok(at), rest)) => (at, rest),
        _ => (Timestamp::now(), text),
    };
    let mut text = mask::text(text, secrets);
    if text.len() > LONGEST {
        let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        text.truncate(end);
        text.push('…');
    }
    PodLine { at, text }
}

/// The values of the Secrets that a pod uses. A Secret that may not be read tells nothing, and hides nothing.
async fn secrets(client: &Client, pods: &Api<Pod>, source: &LogSource) -> Vec<String> {
    let Ok(pod) = pods.get(&source.pod).await else { return Vec::new() };
    let secrets: Api<Secret> = Api::namespaced(client.clone(), &source.namespace);
    let mut values = Vec::new();
    for name in pod.spec.as_ref().map(names).unwrap_or_default() {
        let Ok(secret) = secrets.get(&name).await else { continue };
        for bytes in secret.data.unwrap_or_default().into_values() {
            values.push(STANDARD.encode(&bytes.0));
            values.extend(String::from_utf8(bytes.0));
        }
    }
    mask::known(values)
}

/// Names of the Secrets in the environment and the volumes of a pod.
fn names(spec: &PodSpec) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for container in spec.init_containers.iter().flatten().chain(&spec.containers) {
        for env in container.env.iter().flatten() {
            let from = env.value_from.as_ref().and_then(|from| from.secret_key_ref.as_ref());
            names.extend(from.map(|from| from.name.clone()));
        }
        for from in container.env_from.iter().flatten() {
            names.extend(from.secret_ref.as_ref().map(|from| from.name.clone()));
        }
    }
    for volume in spec.volumes.iter().flatten() {
        names.extend(volume.secret.as_ref().and_then(|secret| secret.secret_name.clone()));
        let projected = volume.projected.iter().flat_map(|projected| projected.sources.iter().flatten());
        names.extend(projected.filter_map(|source| Some(source.secret.as_ref()?.name.clone())));
    }
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use http::{Request, Response, StatusCode};
    use kube::client::Body;
    use serde_json::json;
    use std::convert::Infallible;
    use std::sync::{Arc, Mutex};

    /// An API server with one pod that uses a Secret, and whose log tells it.
    fn server(asked: &Arc<Mutex<Vec<String>>>) -> Client {
        let asked = Arc::clone(asked);
        let service = tower::service_fn(move |request: Request<Body>| {
            let path = request.uri().path_and_query().map(ToString::to_string).unwrap_or_default();
            asked.lock().unwrap().push(path.clone());
            let (status, body) = if path.contains("/secrets/login") {
                (200, json!({"data": {"password": STANDARD.encode("hunter2-canary")}}).to_string())
            } else if path.contains("/pods/web/log") {
                let lines = "2026-03-01T17:00:00.5Z listening\n2026-03-01T17:00:01Z password is hunter2-canary\nno time\n";
                (200, lines.to_owned())
            } else if path.contains("/pods/web") {
                let env = json!([{"name": "P", "valueFrom": {"secretKeyRef": {"name": "login", "key": "password"}}}]);
                let spec = json!({"containers": [{"name": "c", "image": "i", "env": env}]});
                let ended = json!([{"name": "c", "ready": false, "restartCount": 0, "image": "", "imageID": "",
                    "state": {"terminated": {"exitCode": 3, "reason": "Error"}}}]);
                let status = json!({"containerStatuses": ended});
                (200, json!({"metadata": {"name": "web"}, "spec": spec, "status": status}).to_string())
            } else {
                (404, json!({"kind": "Status", "status": "Failure", "code": 404, "reason": "NotFound", "message": "no such pod"}).to_string())
            };
            let mut response = Response::new(Body::from(body.into_bytes()));
            *response.status_mut() = StatusCode::from_u16(status).unwrap();
            async { Ok::<_, Infallible>(response) }
        });
        Client::new(service, "default")
    }

    fn source(pod: &str) -> LogSource {
        LogSource {
            namespace: "default".to_owned(),
            pod: pod.to_owned(),
            uid: None,
            container: "c".to_owned(),
            restarts: 0,
            previous: false,
        }
    }

    #[tokio::test]
    async fn a_log_is_followed_to_its_end_and_tells_no_secret() {
        let asked = Arc::default();
        let client = server(&asked);
        let (events, mut told) = EventSink::channel(64);
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let mut logs = PodLogs::new(client, events, tasks.clone(), shutdown);
        logs.follow(&[source("web"), source("gone")]);
        tasks.close();
        tasks.wait().await;
        drop(logs);
        let mut all: BTreeMap<String, (Vec<String>, Option<String>)> = BTreeMap::new();
        while let Some(event) = told.recv().await {
            let Event::PodLog(log) = event else { panic!("{event:?}") };
            let (lines, ended) = all.entry(log.source.pod).or_default();
            lines.extend(log.lines.into_iter().map(|line| line.text));
            *ended = log.ended;
        }
        let (lines, ended) = &all["web"];
        assert_eq!(lines, &["listening", &format!("password is {}", mask::MASK), "no time"]);
        assert_eq!(ended.as_deref(), Some("the container has ended (exit code 3, Error)"));
        assert_eq!(all["gone"].1.as_deref(), Some("no such pod"));
        let asked = asked.lock().unwrap();
        let log = asked.iter().find(|path| path.contains("/pods/web/log")).unwrap();
        expect![
            "/api/v1/namespaces/default/pods/web/log?&container=c&follow=true&tailLines=200&timestamps=true"
        ]
        .assert_eq(log);
    }

    #[test]
    fn lines_that_come_again_are_told_once() {
        let line = |time: &str, text: &str| PodLine {
            at: format!("2026-03-01T17:00:{time}Z").parse().unwrap(),
            text: text.to_owned(),
        };
        let mut last = Last::default();
        let told = |lines: &[(&str, &str)], last: &mut Last| {
            last.opens();
            let lines = lines.iter().filter_map(|(time, text)| last.take(line(time, text)));
            lines.map(|line| line.text).collect::<Vec<_>>().join(" ")
        };
        let first = [("00.5", "a"), ("01.1", "b"), ("01.2", "c"), ("01.2", "c")];
        assert_eq!(told(&first, &mut last), "a b c c", "twice is twice");
        assert_eq!(last.at.unwrap().as_second(), line("01", "").at.as_second());
        let again = [
            ("01.0", "before a"),
            ("01.1", "b"),
            ("01.2", "c"),
            ("01.2", "c"),
            ("01.2", "c"),
            ("01.9", "d"),
            ("02", "b"),
        ];
        assert_eq!(told(&again, &mut last), "c d b");
        assert_eq!(told(&[("02", "b")], &mut last), "");
    }

    #[tokio::test]
    async fn what_is_wanted_no_longer_is_left() {
        // A log that never says anything and never ends.
        let service = tower::service_fn(|request: Request<Body>| async move {
            if request.uri().path().ends_with("/log") {
                return std::future::pending::<Result<Response<Body>, Infallible>>().await;
            }
            Ok(Response::new(Body::from(br#"{"metadata": {"name": "web"}}"#.to_vec())))
        });
        let (events, _told) = EventSink::channel(64);
        let (tasks, shutdown) = (TaskTracker::new(), CancellationToken::new());
        let mut logs = PodLogs::new(Client::new(service, "default"), events, tasks.clone(), shutdown);
        logs.follow(&[source("a"), source("b")]);
        assert_eq!(logs.running.len(), 2);
        logs.follow(&[source("b")]);
        assert_eq!(logs.running.len(), 1);
        logs.follow(&[]);
        tasks.close();
        tasks.wait().await;
    }
}
