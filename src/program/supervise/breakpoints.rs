//! The breakpoint at which a program stands: Delve prints nothing of it while an editor is attached, so it is
//! asked.

use crate::debugger;
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_util::task::AbortOnDropHandle;

/// A place in the code as Delve names it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct BreakpointAt {
    /// Absolute.
    pub(super) file: String,
    pub(super) line: u32,
}

/// Tells when the program comes to a breakpoint, and (`None`) when it goes on.
pub(super) struct Breakpoints {
    pub(super) place: mpsc::Receiver<Option<BreakpointAt>>,
    /// Dropping it ends the questions.
    _asking: Option<AbortOnDropHandle<()>>,
}

/// How often Delve is asked.
const OFTEN: Duration = Duration::from_millis(500);

impl Breakpoints {
    /// Asks the debugger at this address until it is dropped.
    pub(super) fn follow(address: &str) -> Breakpoints {
        let (tell, place) = mpsc::channel(1);
        let address = address.to_owned();
        let asking = tokio::spawn(async move {
            let mut before = None;
            loop {
                tokio::time::sleep(OFTEN).await;
                // A debugger that does not answer is about to begin, or has ended: the program's end is told.
                let Some(state) = debugger::state(&address).await else { continue };
                let now = breakpoint(&state);
                if now != before {
                    before.clone_from(&now);
                    if tell.send(now).await.is_err() {
                        return;
                    }
                }
            }
        });
        Breakpoints { place, _asking: Some(AbortOnDropHandle::new(asking)) }
    }
}

impl Default for Breakpoints {
    /// A program without a debugger never tells anything.
    fn default() -> Self {
        Breakpoints { place: mpsc::channel(1).1, _asking: None }
    }
}

/// The user's own breakpoint at which a program stands; Delve's own ones, for panics, have negative numbers.
fn breakpoint(answer: &Value) -> Option<BreakpointAt> {
    let state = &answer["result"]["State"];
    if state["Running"].as_bool() != Some(false) || state["exited"].as_bool() == Some(true) {
        return None;
    }
    let thread = &state["currentThread"];
    let is_own = thread["breakPoint"]["id"].as_i64().is_some_and(|id| id > 0);
    let line = u32::try_from(thread["line"].as_u64()?).ok()?;
    is_own.then(|| BreakpointAt { file: thread["file"].as_str().unwrap_or_default().to_owned(), line })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpListener;

    #[test]
    fn only_a_breakpoint_of_the_user_counts() {
        let state = |running: bool, id: i64| {
            json!({"id": 1, "error": null, "result": {"State": {"Running": running, "exited": false, "currentThread":
                {"file": "/p/controller.go", "line": 42, "breakPoint": {"id": id}}}}})
        };
        let at = BreakpointAt { file: "/p/controller.go".to_owned(), line: 42 };
        assert_eq!(breakpoint(&state(false, 1)), Some(at));
        assert_eq!(breakpoint(&state(true, 1)), None, "it runs");
        assert_eq!(breakpoint(&state(false, -1)), None, "a panic");
        assert_eq!(breakpoint(&json!({"error": "Process 9 has exited with status 7"})), None);
        let halted =
            json!({"result": {"State": {"Running": false, "currentThread": {"file": "a.s", "line": 1}}}});
        assert_eq!(breakpoint(&halted), None, "it was halted by hand, or is about to begin");
    }

    #[tokio::test]
    async fn a_stop_and_what_comes_after_it_are_told_once_each() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        tokio::spawn(async move {
            for running in [true, false, false, true, true] {
                let (mut stream, _) = listener.accept().await.unwrap();
                let _ = stream.read(&mut [0; 512]).await.unwrap();
                let thread = json!({"file": "/p/a.go", "line": 7, "breakPoint": {"id": 2}});
                let state = json!({"Running": running, "exited": false, "currentThread": thread});
                let answer = json!({"id": 1, "result": {"State": state}}).to_string();
                stream.write_all(answer.as_bytes()).await.unwrap();
            }
        });
        let mut told = Breakpoints::follow(&address);
        let at = BreakpointAt { file: "/p/a.go".to_owned(), line: 7 };
        assert_eq!(told.place.recv().await, Some(Some(at)));
        assert_eq!(told.place.recv().await, Some(None));
    }
}
