//! Calls of a process to the API server, as they were seen: each call with its answer, each event of its
//! watches. Plain data; `program/trace` decides to which reconcile a call belongs.

use super::record::{PrintedLine, Traced};
use jiff::Timestamp;
use opdev_event::{LogLine, Place};
use opdev_object::api_path::ApiPath;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One thing that was seen of a process, from its trace or on its way to the API server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Seen {
    /// The process said something.
    Traced(Traced),
    /// The process printed a line that it tells, too.
    Printed(PrintedLine),
    /// The process printed a line that names an object.
    Line(ObjectLine),
    /// A call was answered.
    Call(ObservedCall),
    /// A watch delivered an event.
    Event(ObservedEvent),
}

/// A line that names the object it is about.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectLine {
    /// As the line has it: `namespace/name`, or `Kind.version.group/name.namespace` as kube-rs writes it.
    pub object: String,
    /// Why the object is reconciled, where the line says that.
    #[serde(default)]
    pub reason: Option<String>,
    /// The line.
    pub line: LogLine,
}

/// A call with its answer. Bodies are as they were sent: nothing of them may be shown unmasked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedCall {
    /// When it came.
    pub at: Timestamp,
    /// Microseconds from its head to its answer.
    pub took_micros: u64,
    /// The method in capitals.
    pub method: String,
    /// The path without host and query.
    pub path: String,
    /// The query without question mark.
    #[serde(default)]
    pub query: String,
    /// The mark that the process put into `X-Opdev-Reconcile`: the id of a reconcile, how that is known, and
    /// of a write the place in its code.
    #[serde(default)]
    pub mark: Option<String>,
    /// HTTP status; 0 where no answer came.
    pub status: u16,
    /// The object that was sent, where it was small enough.
    #[serde(default)]
    pub sent: Option<Value>,
    /// The object that was answered, where it was small enough.
    #[serde(default)]
    pub answered: Option<Value>,
    /// True if the call was disturbed on purpose.
    #[serde(default)]
    pub disturbed: bool,
    /// The texts of the `Warning` headers of the answer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A place as a process tells it, `file:line`. It is shown and opened, so nothing that leads out of the
/// project is one.
pub fn place_in_project(text: &str) -> Option<Place> {
    let (file, line) = text.rsplit_once(':')?;
    let within = !file.starts_with('/') && file.split('/').all(|part| !part.is_empty() && part != "..");
    let line = line.parse().ok().filter(|line| *line > 0)?;
    within.then(|| Place { file: file.to_owned(), line, column: 0 })
}

impl ObservedCall {
    /// The reconcile that the process says it belongs to.
    pub fn reconcile(&self) -> Option<&str> {
        self.mark.as_deref()?.split_whitespace().next()
    }

    /// The place in the project's code that made it, where the process knows it.
    pub fn place(&self) -> Option<Place> {
        place_in_project(self.mark.as_deref()?.split_whitespace().nth(2)?)
    }

    /// The reconcile is known from the context of the call, and not only from the goroutine that made it.
    pub fn is_marked_by_context(&self) -> bool {
        self.mark.as_deref().is_some_and(|mark| mark.split_whitespace().nth(1) == Some("ctx"))
    }

    /// When it was answered.
    pub fn done(&self) -> Timestamp {
        let took = jiff::SignedDuration::from_micros(i64::try_from(self.took_micros).unwrap_or(i64::MAX));
        self.at.checked_add(took).unwrap_or(self.at)
    }

    /// The Kubernetes verb, such as `list`.
    pub fn verb(&self) -> &'static str {
        ApiPath::of(&self.path)
            .verb(&self.method, Some(self.query.as_str()).filter(|query| !query.is_empty()))
    }

    /// The target of the call, such as `pods/web/status`.
    pub fn target(&self) -> String {
        ApiPath::of(&self.path).text
    }

    /// Returns true if it writes.
    pub fn writes(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "OPTIONS")
    }

    /// Returns true if it writes and is no dry run and no review, which are not stored.
    pub fn stores(&self) -> bool {
        self.writes() && !self.query.contains("dryRun=") && !self.path.contains("reviews")
    }
}

/// An event of a watch of the process, or an object of a list that fills a cache.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ObservedEvent {
    /// When it was handed out.
    pub at: Timestamp,
    /// `ADDED`, `MODIFIED`, `DELETED`, and `LISTED` of a list; bookmarks and errors are none.
    pub kind: String,
    /// The path of the watch, which says of what kind the object is where only its metadata is delivered.
    #[serde(default)]
    pub path: String,
    /// The object.
    pub object: Value,
}

impl ObservedEvent {
    /// An object that was there when a list was answered.
    pub const LISTED: &str = "LISTED";
}

#[cfg(test)]
mod tests {
    use super::place_in_project;

    #[test]
    fn a_place_that_leads_out_of_the_project_is_none() {
        let place = place_in_project("internal/controller/web.go:42").unwrap();
        assert_eq!((place.file.as_str(), place.line), ("internal/controller/web.go", 42));
        for text in
            ["/etc/passwd:1", "../secret.go:1", "a/../../b.go:1", "web.go", "web.go:0", "web.go:x", ":1", ""]
        {
            assert_eq!(place_in_project(text), None, "{text}");
        }
    }
}
