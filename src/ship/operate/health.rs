//! Health of the process (`/healthz`), and its readiness to work (`/readyz`), as the kubelet asks for them.

use super::logs::{Line, LogLevel, LogWriter};
use opdev_controlplane::{EndpointRequest, EndpointResponse};
use opdev_event::{ConnectionChanged, Event};
use opdev_operator::manager::{KindState, ManagerRequest};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// How long the manager may leave a question unanswered while the API server answers.
const STUCK: Duration = Duration::from_secs(30);
/// How often the manager is asked until all kinds are served, and for how long so often.
const SOON: Duration = Duration::from_millis(25);
const AT_FIRST: Duration = Duration::from_secs(3);
/// How often it is asked then.
const LATER: Duration = Duration::from_secs(2);

/// The health of the process.
pub(super) struct Health {
    /// Kinds that are not served, for their files are broken.
    problems: Vec<String>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    doing: Doing,
    /// Why the API server does not answer.
    lost: Option<String>,
    /// True if it does not answer, or only later: the manager may wait for it.
    waits: bool,
    /// Why the Lease of the leader election cannot be used.
    lease: Option<String>,
    /// Since when the manager owes an answer.
    asked: Option<Instant>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
enum Doing {
    #[default]
    Starting,
    /// Another replica leads, or may.
    StandingBy,
    /// It reconciles, but for these kinds.
    Serving(Vec<String>),
}

impl Health {
    /// `problems` are those of kinds that are not served.
    pub(super) fn new(problems: Vec<String>) -> Health {
        Health { problems, state: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Another replica leads, or may.
    pub(super) fn stands_by(&self) {
        self.lock().doing = Doing::StandingBy;
    }

    /// Why the Lease cannot be used; `None` where it can.
    pub(super) fn lease_fails(&self, why: Option<String>) {
        self.lock().lease = why;
    }

    /// Takes an event in.
    pub(super) fn hear(&self, event: &Event) {
        if let Event::ConnectionChanged(ConnectionChanged { trouble, .. }) = event {
            // A server that is slow or busy still answers: this process does its work, only later.
            let away = trouble.as_ref().filter(|trouble| !trouble.kind.still_answers());
            let mut state = self.lock();
            state.lost = away.map(|trouble| trouble.why.clone());
            state.waits = trouble.is_some();
        }
    }

    /// Asks the manager how kinds are served, again and again, until it ends. What is not served after the
    /// first seconds is logged, once.
    pub(super) async fn follow(&self, manager: mpsc::Sender<ManagerRequest>, log: LogWriter) {
        let mut since = Instant::now();
        let mut told = BTreeSet::new();
        loop {
            let Some(kinds) = self.ask(&manager).await else { return };
            let missing: Vec<String> = kinds.into_iter().filter_map(|kind| kind.problem).collect();
            if missing.is_empty() {
                since = Instant::now();
            }
            told.retain(|problem| missing.contains(problem));
            let pause = if !missing.is_empty() && since.elapsed() < AT_FIRST {
                SOON
            } else {
                for problem in missing.iter().filter(|problem| told.insert((*problem).clone())) {
                    log.write(Line::new(LogLevel::Error, "cmd", problem.clone()));
                }
                LATER
            };
            self.lock().doing = Doing::Serving(missing);
            tokio::time::sleep(pause).await;
        }
    }

    async fn ask(&self, manager: &mpsc::Sender<ManagerRequest>) -> Option<Vec<KindState>> {
        let (reply, answer) = oneshot::channel();
        self.lock().asked = Some(Instant::now());
        manager.send(ManagerRequest::Look { reply }).await.ok()?;
        let answer = answer.await.ok()?;
        self.lock().asked = None;
        Some(answer)
    }

    /// Each check with why it fails.
    fn readiness(&self) -> Vec<(&'static str, Option<String>)> {
        let state = self.lock();
        let (started, missing) = match &state.doing {
            Doing::Starting => (Some("the operator starts".to_owned()), &[][..]),
            Doing::StandingBy => (None, &[][..]),
            Doing::Serving(missing) => (None, missing.as_slice()),
        };
        let kinds: Vec<&str> = self.problems.iter().chain(missing).map(String::as_str).collect();
        let kinds = (!kinds.is_empty()).then(|| kinds.join("; "));
        let lease = state.lease.clone();
        vec![
            ("readyz", started),
            ("kinds", kinds),
            ("leader-election", lease),
            ("api-server", state.lost.clone()),
        ]
    }

    fn liveness(&self, now: Instant) -> Vec<(&'static str, Option<String>)> {
        let state = self.lock();
        // While the API server is away or slow the manager may wait for it; another process would do no
        // better.
        let stuck = state.asked.filter(|_| !state.waits).map(|at| now.saturating_duration_since(at));
        let stuck = stuck.filter(|for_| *for_ > STUCK);
        vec![("manager", stuck.map(|for_| format!("it has not answered for {} s", for_.as_secs())))]
    }

    /// Answers a probe.
    pub(super) fn probe(&self, request: &EndpointRequest, now: Instant) -> EndpointResponse {
        let verbose = request.query.split('&').any(|part| part == "verbose" || part.starts_with("verbose="));
        let (name, checks) = match request.path.trim_end_matches('/') {
            "/healthz" => ("healthz", self.liveness(now)),
            "/readyz" => ("readyz", self.readiness()),
            _ => return plain(404, "404 page not found\n"),
        };
        let passed = checks.iter().all(|(_, why)| why.is_none());
        if passed && !verbose {
            return plain(200, "ok");
        }
        let line = |(check, why): &(&str, Option<String>)| match why {
            None => format!("[+]{check} ok\n"),
            Some(why) => format!("[-]{check} failed: {why}\n"),
        };
        let lines: String = checks.iter().map(line).collect();
        match passed {
            true => plain(200, format!("{lines}{name} check passed\n")),
            false => plain(500, format!("{lines}{name} check failed\n")),
        }
    }
}

/// A text for people.
pub(super) fn plain(status: u16, text: impl Into<String>) -> EndpointResponse {
    EndpointResponse { status, content_type: "text/plain; charset=utf-8", text: text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;
    use jiff::Timestamp;
    use opdev_event::{Trouble, TroubleKind};
    use opdev_object::meta::Gvk;

    fn connection(trouble: Option<Trouble>) -> Event {
        Event::ConnectionChanged(ConnectionChanged { at: Timestamp::now(), trouble })
    }

    fn probe(health: &Health, path: &str, query: &str, now: Instant) -> (u16, String) {
        let request = EndpointRequest { path: path.into(), query: query.into(), token: None };
        let answer = health.probe(&request, now);
        (answer.status, answer.text)
    }

    #[test]
    fn readiness_names_what_is_not_served() {
        let (health, now) = (Health::new(Vec::new()), Instant::now());
        assert_eq!(probe(&health, "/readyz", "", now).0, 500);
        assert_eq!(probe(&health, "/healthz", "", now), (200, "ok".to_owned()));
        health.stands_by();
        assert_eq!(probe(&health, "/readyz", "", now), (200, "ok".to_owned()));
        expect![[r#"
            [+]readyz ok
            [+]kinds ok
            [+]leader-election ok
            [+]api-server ok
            readyz check passed
        "#]]
        .assert_eq(&probe(&health, "/readyz", "verbose", now).1);
        assert_eq!(probe(&health, "/other", "", now).0, 404);
        let broken = Health::new(vec!["charts/a/Chart.yaml:1: no name".to_owned()]);
        broken.stands_by();
        let (status, text) = probe(&broken, "/readyz", "", now);
        assert_eq!(status, 500, "{text}");
        expect![[r#"
            [+]readyz ok
            [-]kinds failed: charts/a/Chart.yaml:1: no name
            [+]leader-election ok
            [+]api-server ok
            readyz check failed
        "#]]
        .assert_eq(&text);
    }

    #[tokio::test]
    async fn a_manager_that_does_not_answer_is_not_well() {
        let (health, now) = (Health::new(Vec::new()), Instant::now());
        let (to_manager, mut requests) = mpsc::channel(1);
        let asking = health.ask(&to_manager);
        let answering = async {
            let Some(ManagerRequest::Look { reply }) = requests.recv().await else { panic!("no question") };
            let later = now + 2 * STUCK;
            let (status, text) = probe(&health, "/healthz", "", later);
            assert_eq!(status, 500, "{text}");
            expect![[r#"
                [-]manager failed: it has not answered for 59 s
                healthz check failed
            "#]]
            .assert_eq(&text);
            for (kind, ready) in [(TroubleKind::Unreachable, false), (TroubleKind::Slow, true)] {
                let why = "it takes its time".to_owned();
                let trouble = Trouble { kind, since: Timestamp::now(), why, hint: None, retry: None };
                health.hear(&connection(Some(trouble)));
                assert_eq!(
                    probe(&health, "/healthz", "", later).0,
                    200,
                    "the manager waits for it: {kind:?}"
                );
                let verbose = probe(&health, "/readyz", "verbose", later).1;
                assert_eq!(verbose.contains("[+]api-server ok"), ready, "{verbose}");
            }
            health.hear(&connection(None));
            assert_eq!(probe(&health, "/healthz", "", later).0, 500);
            let gvk = Gvk::new("my.domain", "v1", "Site");
            reply.send(vec![KindState { gvk, waiting: 0, problem: None }]).unwrap();
        };
        let (kinds, ()) = tokio::join!(asking, answering);
        assert_eq!(kinds.map(|kinds| kinds.len()), Some(1));
        assert_eq!(probe(&health, "/healthz", "", now + 2 * STUCK).0, 200);
    }
}
