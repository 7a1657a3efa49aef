//! Facts in words: causes, results, counts, durations and ages, for panes and for plain lines alike. Pure.
//! Never invents: what an event does not say is left out.

use super::{
    Action, Cause, CauseKind, Diagnostic, FieldChange, Finding, Hurt, Level, Outcome, ProcessExit,
    ProcessState, Reconcile, Relation, ReleaseChange, ReleaseStep, ShadowRun, TraceLevel, WatchEvent, Weight,
};
use opdev_object::meta::ObjectRef;
use std::time::Duration;

/// An error with its causes, each once.
pub fn error(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text.push_str(": ");
            text.push_str(&cause_text);
        }
        source = cause.source();
    }
    text
}

/// A word is none of those that may stand there; `Display` names them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Expected(pub &'static str);

impl std::fmt::Display for Expected {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "expected {}", self.0)
    }
}

impl std::error::Error for Expected {}

/// The last part of a path.
pub fn file_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Files in short: the first one's name and how many more.
pub fn files(files: &[String]) -> String {
    match files {
        [] => String::new(),
        [one] => file_name(one).to_owned(),
        [first, rest @ ..] => format!("{} +{} more", file_name(first), rest.len()),
    }
}

/// `Kind name`, without the namespace.
pub fn short_ref(object: &ObjectRef) -> String {
    format!("{} {}", object.gvk.kind, object.name)
}

/// `.spec.replicas 5→3`.
pub fn field(change: &FieldChange) -> String {
    changed(&change.path, change)
}

/// A field as short as it stays clear: `Ready False→True` of a condition, `annotation revision 1→2`.
fn short_field(change: &FieldChange) -> String {
    let inside = |start: &str, end: &str| change.path.strip_prefix(start)?.strip_suffix(end);
    if let Some(condition) = inside(".status.conditions[type=", "].status") {
        return changed(condition, change);
    }
    for (start, word) in [(".metadata.annotations[", "annotation"), (".metadata.labels[", "label")] {
        if let Some(key) = inside(start, "]") {
            return changed(&format!("{word} {}", key.rsplit('/').next().unwrap_or(key)), change);
        }
    }
    changed(&change.path, change)
}

fn changed(path: &str, change: &FieldChange) -> String {
    format!("{path} {}", values(change)).trim_end().to_owned()
}

/// The value before and after, without the path: `5→3`, `+3` or `-5`.
pub fn values(change: &FieldChange) -> String {
    match (&change.old, &change.new) {
        (Some(old), Some(new)) => format!("{old}→{new}"),
        (None, Some(new)) => format!("+{new}"),
        (Some(old), None) => format!("-{old}"),
        (None, None) => String::new(),
    }
}

/// The changed fields, the most telling first: what was asked for, then what became of it, last its details.
fn fields(changes: &[FieldChange], most: usize) -> String {
    let mut sorted: Vec<&FieldChange> = changes.iter().collect();
    sorted.sort_by_key(|change| detail(&change.path));
    let mut text = sorted.into_iter().take(most).map(short_field).collect::<Vec<_>>().join(", ");
    if changes.len() > most {
        text.push_str(&format!(" +{} more", changes.len() - most));
    }
    text
}

/// How much of a detail a field is, beside others of the same change.
fn detail(path: &str) -> u8 {
    let Some(status) = path.strip_prefix(".status.") else {
        return if path.starts_with(".metadata.") { 2 } else { 0 };
    };
    match status.strip_prefix("conditions[type=") {
        Some("Ready].status" | "Available].status") => 1,
        Some(condition) if condition.ends_with("].status") => 2,
        Some(_) => 4,
        None if status == "phase" => 0,
        None if status == "observedGeneration" || is_of_containers(status) => 3,
        None => 1,
    }
}

/// Returns true if a field of a pod's status tells of its containers, one of them or all.
fn is_of_containers(status: &str) -> bool {
    let field = status.split(['[', '.']).next().unwrap_or(status);
    matches!(field, "containerStatuses" | "initContainerStatuses" | "ephemeralContainerStatuses")
}

/// One cause in words, with at most `most` changed fields.
pub fn cause_with(cause: &Cause, most: usize) -> String {
    cause_of(cause, most, short_ref)
}

/// A child of a known custom resource, without the part of its name that is the resource's own.
fn child(object: &ObjectRef, name: &str) -> String {
    match object.name.strip_prefix(name).filter(|_| !name.is_empty()) {
        Some("") => object.gvk.kind.clone(),
        Some(rest) if rest.starts_with('-') => format!("{} …{rest}", object.gvk.kind),
        Some(_) | None => short_ref(object),
    }
}

fn cause_of(cause: &Cause, most: usize, called: impl Fn(&ObjectRef) -> String) -> String {
    match &cause.kind {
        CauseKind::Start => "start of opdev".to_owned(),
        CauseKind::Watch { object, event, fields: changed, by, own_write, relation } => {
            let what = match relation {
                Relation::Primary => "custom resource".to_owned(),
                Relation::Owner | Relation::Annotation | Relation::Related => called(object),
            };
            let deleting = changed.iter().any(|c| c.path == ".metadata.deletionTimestamp" && c.new.is_some());
            let mut text = match (event, relation) {
                (WatchEvent::Added, Relation::Primary) => "created".to_owned(),
                (WatchEvent::Added, Relation::Owner | Relation::Annotation | Relation::Related) => {
                    format!("{what} created")
                }
                (WatchEvent::Deleted, Relation::Primary) => "deleted".to_owned(),
                (WatchEvent::Deleted, _) => format!("{what} deleted"),
                (WatchEvent::Modified, Relation::Primary) if deleting => "deletion requested".to_owned(),
                (WatchEvent::Modified, _) if deleting => format!("{what} deletion requested"),
                (WatchEvent::Modified, Relation::Primary) if !changed.is_empty() => fields(changed, most),
                (WatchEvent::Modified, _) if changed.is_empty() => format!("{what} changed"),
                (WatchEvent::Modified, _) => format!("{what} {}", fields(changed, most)),
            };
            if *own_write {
                text.insert_str(0, "operator's own write: ");
            } else if let Some(by) = by.as_deref().filter(|by| !by.is_empty()) {
                // opdev writes only the status of a custom resource; every other write was asked for by a key
                // of the user.
                let by = if by == "opdev" && *relation == Relation::Primary { "you" } else { by };
                text.push_str(&format!(" ({by})"));
            }
            text
        }
        CauseKind::Reload { files: changed, .. } if changed.is_empty() => "reload".to_owned(),
        CauseKind::Reload { files: changed, .. } => format!("edit {}", files(changed)),
        CauseKind::Period => "resync".to_owned(),
        CauseKind::Retry { attempt, error } => format!("retry {attempt} after: {}", one_line(error)),
        CauseKind::Wait { why } => waited(&one_line(why)),
        CauseKind::User => "you pressed r".to_owned(),
        CauseKind::Check => "opdev asked, to see whether a change was missed".to_owned(),
    }
}

/// Why a reconcile ran that waited; what says so itself needs no word before it.
fn waited(why: &str) -> String {
    let tells = why.starts_with("requeued by ") || why.starts_with("retry: ");
    if tells { why.to_owned() } else { format!("waited: {why}") }
}

/// One cause in words, short.
pub fn cause(of: &Cause) -> String {
    cause_with(of, 2)
}

/// Returns true if a cause is only the echo of our own write.
pub fn is_echo(cause: &Cause) -> bool {
    matches!(cause.kind, CauseKind::Watch { own_write: true, .. })
}

/// Where a cause stands beside others: first what somebody did to the custom resource itself or to its
/// sources, then what happened around it, last the echoes of own writes. So a short line still says what
/// matters most.
fn rank(cause: &Cause) -> u8 {
    match &cause.kind {
        _ if is_echo(cause) => 2,
        CauseKind::Watch { relation: Relation::Primary, .. }
        | CauseKind::Reload { .. }
        | CauseKind::User
        | CauseKind::Check
        | CauseKind::Start => 0,
        _ => 1,
    }
}

/// The causes in the order of a person's questions: what was done to the object itself or to its sources,
/// what happened around it, the echoes of own writes. Places in the list.
pub fn in_order(of: &[Cause]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..of.len()).collect();
    order.sort_by_key(|at| rank(&of[*at]));
    order
}

/// All causes in one line: the object's own change and edits first, echoes last; equal ones, and the same
/// change of several children, merged with a count.
pub fn causes(of: &[Cause]) -> String {
    causes_beside(of, "")
}

/// All causes of a reconcile in one short line, for where its object is known.
pub fn causes_of(object: &ObjectRef, of: &[Cause]) -> String {
    causes_beside(of, &object.name)
}

/// All causes of a reconcile in one short line. For a program that tells nothing they are a guess.
pub fn causes_of_reconcile(reconcile: &Reconcile) -> String {
    let causes = causes_of(&reconcile.object, &reconcile.causes);
    if reconcile.is_guessed() { format!("probably {causes}") } else { causes }
}

fn causes_beside(of: &[Cause], name: &str) -> String {
    let mut sorted: Vec<&Cause> = of.iter().collect();
    sorted.sort_by_key(|cause| rank(cause));
    // Each with what follows it alike: the causes whose words differ at most in a child's name.
    let mut parts: Vec<(String, Vec<&Cause>)> = Vec::new();
    for cause in sorted {
        let unnamed = cause_of(cause, 2, |object| object.gvk.kind.clone());
        match parts.iter_mut().find(|(known, _)| *known == unnamed) {
            Some((_, alike)) => alike.push(cause),
            None => parts.push((unnamed, vec![cause])),
        }
    }
    let texts = parts.into_iter().map(|(unnamed, alike)| {
        let one_child = alike.iter().all(|cause| watched(cause) == watched(alike[0]));
        let text = if one_child { cause_of(alike[0], 2, |object| child(object, name)) } else { unnamed };
        if alike.len() > 1 { format!("{text} ×{}", alike.len()) } else { text }
    });
    texts.collect::<Vec<_>>().join(" · ")
}

/// The name of the object whose change is the cause.
fn watched(cause: &Cause) -> Option<&str> {
    match &cause.kind {
        CauseKind::Watch { object, .. } => Some(&object.name),
        _ => None,
    }
}

/// The outcome of a reconcile, as one word.
pub fn outcome(of: Outcome) -> &'static str {
    match of {
        Outcome::Installed => "installed",
        Outcome::Upgraded => "upgraded",
        Outcome::Applied => "applied",
        Outcome::Repaired => "repaired",
        Outcome::Unchanged => "unchanged",
        Outcome::Uninstalled => "uninstalled",
        Outcome::Waiting => "waiting",
        Outcome::Gone => "gone",
        Outcome::Failed => "failed",
    }
}

/// The outcome of a reconcile, as one word; a revision that a saved file was written into is told from a new
/// one.
pub fn result(of: &Reconcile) -> &'static str {
    let rewritten = |change: &ReleaseChange| change.step == ReleaseStep::Rewritten;
    match of.outcome {
        Outcome::Upgraded if !of.releases.is_empty() && of.releases.iter().all(rewritten) => "rewritten",
        other => outcome(other),
    }
}

/// The outcome of a reconcile, with how much was written: `created 3`, `status only`, `nothing to do`.
pub fn came_to(of: &Reconcile) -> String {
    let count = |action| of.objects.iter().filter(|change| change.action == action).count();
    let counts = [count(Action::Created), count(Action::Updated), count(Action::Deleted)];
    let wrote = match counts {
        [0, 0, 0] => None,
        [created, 0, 0] => Some(format!("created {created}")),
        [0, updated, 0] if of.outcome == Outcome::Repaired => Some(format!("repaired {updated}")),
        [0, updated, 0] => Some(format!("updated {updated}")),
        [0, 0, deleted] => Some(format!("deleted {deleted}")),
        [created, updated, deleted] => Some(format!("wrote {}", created + updated + deleted)),
    };
    match (of.outcome, wrote) {
        (Outcome::Installed | Outcome::Upgraded | Outcome::Applied | Outcome::Repaired, Some(wrote)) => wrote,
        (Outcome::Applied | Outcome::Unchanged, None) if !of.status.is_empty() => "status only".to_owned(),
        (Outcome::Unchanged, _) => "nothing to do".to_owned(),
        _ => result(of).to_owned(),
    }
}

/// The outcome for a release, with the reason: `revision 2 of web: hook Job web-migrate changed`.
pub fn release(of: &ReleaseChange) -> String {
    let (name, revision) = (&of.name, of.revision);
    let what = match of.step {
        ReleaseStep::Installed => format!("release {name} installed as revision {revision}"),
        ReleaseStep::Upgraded => format!("release {name} upgraded to revision {revision}"),
        ReleaseStep::Rewritten => {
            format!("revision {revision} of release {name} rewritten in place, no hook ran")
        }
        ReleaseStep::RolledBack => format!("release {name} rolled back as revision {revision}"),
    };
    format!("{what}: {}", one_line(&of.why))
}

/// The action on an object, as one word.
pub fn action(of: Action) -> &'static str {
    match of {
        Action::Created => "created",
        Action::Updated => "updated",
        Action::Deleted => "deleted",
    }
}

/// `~3 +1 -2`: objects changed, created and deleted; zeros left out.
pub fn counts(of: &Reconcile) -> String {
    let count = |action| of.objects.iter().filter(|change| change.action == action).count();
    let parts = [("~", Action::Updated), ("+", Action::Created), ("-", Action::Deleted)];
    let texts = parts.into_iter().map(|(sign, action)| (sign, count(action))).filter(|(_, n)| *n > 0);
    texts.map(|(sign, n)| format!("{sign}{n}")).collect::<Vec<_>>().join(" ")
}

/// How much a change weighs, as one word.
pub fn weight(of: Weight) -> &'static str {
    match of {
        Weight::Info => "INFO",
        Weight::Warn => "WARN",
        Weight::Break => "BREAK",
        Weight::Loss => "LOSS",
        Weight::Block => "BLOCK",
    }
}

/// `LOSS .spec.size removed (api/v1/types.go:12:2)`.
pub fn finding(of: &Finding) -> String {
    let place = of.place.as_ref().map_or_else(String::new, |place| format!(" ({place})"));
    format!("{} {}{place}", weight(of.weight), named(&of.field, &of.message))
}

/// `PodSet default/web .spec.size: …`.
pub fn hurt(of: &Hurt) -> String {
    let field = if of.field.is_empty() { String::new() } else { format!(" {}", of.field) };
    format!("{}{field}: {}", of.object, one_line(&of.message))
}

/// A message with the field in front, unless it names it itself.
fn named(field: &str, message: &str) -> String {
    let message = one_line(message);
    if field.is_empty() || message.contains(field) { message } else { format!("{field}: {message}") }
}

/// The result of a dry run: `3 objects, ~1 +2 -0`.
pub fn shadow(of: &ShadowRun) -> String {
    let children = || of.objects.iter().flat_map(|object| &object.children);
    let count = |action| children().filter(|change| change.action == action).count();
    let mut parts: Vec<String> = [("~", Action::Updated), ("+", Action::Created), ("-", Action::Deleted)]
        .into_iter()
        .map(|(sign, action)| (sign, count(action)))
        .filter(|(_, n)| *n > 0)
        .map(|(sign, n)| format!("{sign}{n}"))
        .collect();
    match of.objects.iter().filter(|object| !object.status.is_empty()).count() {
        0 => {}
        1 => parts.push("1 status".to_owned()),
        n => parts.push(format!("{n} statuses")),
    }
    match of.objects.iter().filter(|object| object.problem.is_some()).count() {
        0 => {}
        n => parts.push(format!("{n} failed")),
    }
    if parts.is_empty() {
        parts.push("nothing would change".to_owned());
    }
    let ran = if of.ran == 1 { "1 object".to_owned() } else { format!("{} objects", of.ran) };
    format!("{ran}: {}", parts.join(" "))
}

/// A level in lower case.
pub fn level(of: Level) -> &'static str {
    match of {
        Level::Error => "error",
        Level::Warn => "warn",
        Level::Info => "info",
        Level::Debug => "debug",
        Level::Trace => "trace",
    }
}

/// `file:line:col: message`.
pub fn diagnostic(of: &Diagnostic) -> String {
    match &of.place {
        Some(place) => format!("{place}: {}", one_line(&of.message)),
        None => one_line(&of.message),
    }
}

/// Lines with what does something to a terminal escaped, each with its indentation.
pub fn lines(text: &str) -> Vec<String> {
    let indented = |line: &str| {
        let indent = line.len() - line.trim_start_matches(' ').len();
        format!("{}{}", &line[..indent], one_line(line))
    };
    text.trim().lines().map(indented).collect()
}

/// Text without line breaks; what does something to a terminal is escaped, as `visible` does.
pub fn one_line(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.trim().chars() {
        let c = if c.is_control() && c.is_whitespace() { ' ' } else { c };
        if is_hidden(c) {
            out.extend(c.escape_unicode());
        } else if c != ' ' || !out.ends_with(' ') {
            out.push(c);
        }
    }
    out
}

/// Text that a terminal prints as it is: control characters but line breaks, and characters that change the
/// direction of the text or that are not seen, are escaped, as in `\u{202e}`. Names in a project's files are
/// whatever somebody wrote.
pub fn visible(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\n' => out.push(c),
            '\t' => out.push_str("  "),
            c if is_hidden(c) => out.extend(c.escape_unicode()),
            c => out.push(c),
        }
    }
    out
}

/// JSON with hidden characters in its texts as escapes of JSON: the same value, whoever prints it.
pub fn escaped_json(line: String) -> String {
    // Most are plain. Pieces have no early end, so that the compiler compares many bytes at once.
    let is_plain = |piece: &[u8]| piece.iter().fold(true, |plain, byte| plain & (b' '..0x7f).contains(byte));
    if line.as_bytes().chunks(128).all(is_plain) || !line.contains(is_hidden) {
        return line;
    }
    let mut out = String::with_capacity(line.len());
    for c in line.chars() {
        if is_hidden(c) {
            let mut units = [0; 2];
            out.extend(c.encode_utf16(&mut units).iter().map(|unit| format!("\\u{unit:04x}")));
        } else {
            out.push(c);
        }
    }
    out
}

/// Text with hidden characters and line breaks escaped, so that it stays on one line.
pub fn visible_line(text: &str) -> String {
    visible(text).replace('\n', "\\n")
}

/// The words about a kind that the project does not have.
pub fn no_such_kind(wanted: &str, kinds: &[&str]) -> String {
    match opdev_object::spelling::nearest(wanted, kinds.iter().copied()) {
        Some(near) => format!("the project has no such kind; did you mean {near}?"),
        None if kinds.is_empty() => "the project has no kinds".to_owned(),
        None => format!("the project has no such kind; it has {}", kinds.join(", ")),
    }
}

/// Returns true if a character does something to the terminal or the text around it instead of being seen.
#[inline]
pub fn is_hidden(c: char) -> bool {
    c.is_control()
        || matches!(c,
            // Joiners (200c, 200d) are parts of words and pictures.
            '\u{061c}' | '\u{200b}' | '\u{200e}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}')
}

/// How long something took: `0.4 ms`, `38 ms`, `1.2 s`, `2m3s`.
pub fn took(duration: Duration) -> String {
    let micros = duration.as_micros();
    match micros {
        // Nothing takes no time at all.
        0..1_000 => format!("0.{} ms", (micros / 100).max(1)),
        1_000..1_000_000 => format!("{} ms", (micros + 500) / 1000),
        1_000_000..10_000_000 => format!("{:.1} s", duration.as_secs_f64()),
        10_000_000..100_000_000 => format!("{} s", duration.as_secs()),
        _ => age(duration),
    }
}

/// An age in the form kubectl prints: `18s`, `2m5s`, `15m`, `3h20m`, `2d4h`.
pub fn age(duration: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    const YEAR: u64 = 365 * DAY;
    let two = |big: u64, sign: &str, small: u64, small_sign: &str| match small {
        0 => format!("{big}{sign}"),
        _ => format!("{big}{sign}{small}{small_sign}"),
    };
    match duration.as_secs() {
        s if s < 2 * MINUTE => format!("{s}s"),
        s if s < 10 * MINUTE => two(s / MINUTE, "m", s % MINUTE, "s"),
        s if s < 3 * HOUR => format!("{}m", s / MINUTE),
        s if s < 8 * HOUR => two(s / HOUR, "h", s % HOUR / MINUTE, "m"),
        s if s < 2 * DAY => format!("{}h", s / HOUR),
        s if s < 8 * DAY => two(s / DAY, "d", s % DAY / HOUR, "h"),
        s if s < 2 * YEAR => format!("{}d", s / DAY),
        s if s < 8 * YEAR => two(s / YEAR, "y", s % YEAR / DAY, "d"),
        s => format!("{}y", s / YEAR),
    }
}

/// An age in one unit, for columns: `18s`, `12m`, `3h`, `2d`.
pub fn short_age(duration: Duration) -> String {
    match duration.as_secs() {
        s if s < 60 => format!("{s}s"),
        s if s < 3_600 => format!("{}m", s / 60),
        s if s < 86_400 => format!("{}h", s / 3_600),
        s if s < 86_400 * 1_000 => format!("{}d", s / 86_400),
        s => format!("{}y", s / (86_400 * 365)),
    }
}

/// How long until `short_age` prints something else.
pub fn short_age_changes_in(duration: Duration) -> Duration {
    let step = match duration.as_secs() {
        0..60 => 1,
        60..3_600 => 60,
        _ => 3_600,
    };
    until_next(duration, step)
}

/// How long until a duration is a multiple of some seconds.
fn until_next(duration: Duration, seconds: u64) -> Duration {
    let step = Duration::from_secs(seconds);
    let into = duration.as_nanos() % step.as_nanos();
    step.saturating_sub(Duration::from_nanos(u64::try_from(into).unwrap_or(0)))
}

/// How a program ended, in words: the status, what it said, and where.
pub fn exit(of: &ProcessExit) -> String {
    let place = of.place.as_ref().map_or_else(String::new, |place| format!("{place}: "));
    match &of.message {
        Some(message) => format!("{place}{} ({} after {})", one_line(message), of.status, took(of.ran)),
        None => format!("{place}{} after {}", of.status, took(of.ran)),
    }
}

/// Why a program does not run; `None` where it does.
pub fn not_running(state: &ProcessState) -> Option<String> {
    match state {
        ProcessState::Running { .. } => None,
        ProcessState::Waiting { why } => Some(format!("it waits for {why}")),
        ProcessState::Restarting { exit, after } => {
            Some(format!("it has stopped and is started again in {}: {}", took(*after), self::exit(exit)))
        }
        ProcessState::Failed { exit } => Some(self::exit(exit)),
        ProcessState::Ended { exit } => Some(format!("it has ended: {}", self::exit(exit))),
    }
}

/// How much is seen of a program's reconciles.
pub fn traced(level: Option<TraceLevel>) -> &'static str {
    level.map_or("off", TraceLevel::name)
}

/// A number of bytes in short, such as `12.3 MiB`.
pub fn bytes(bytes: usize) -> String {
    match bytes {
        0..1_024 => format!("{bytes} B"),
        1_024..1_048_576 => format!("{:.1} KiB", bytes as f64 / 1_024.0),
        _ => format!("{:.1} MiB", bytes as f64 / 1_048_576.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use opdev_object::meta::Gvk;

    fn watch(relation: Relation, event: WatchEvent, fields: &[(&str, &str, &str)], own: bool) -> Cause {
        let kind = if relation == Relation::Primary { "Memcached" } else { "Deployment" };
        Cause {
            at: jiff::Timestamp::UNIX_EPOCH,
            kind: CauseKind::Watch {
                object: ObjectRef {
                    gvk: Gvk::new("g", "v1", kind),
                    name: "web".to_owned(),
                    ..ObjectRef::default()
                },
                event,
                fields: fields
                    .iter()
                    .map(|(path, old, new)| FieldChange {
                        path: (*path).to_owned(),
                        old: Some((*old).to_owned()),
                        new: Some((*new).to_owned()),
                    })
                    .collect(),
                by: Some("kubectl".to_owned()),
                own_write: own,
                relation,
            },
        }
    }

    fn plain(kind: CauseKind) -> Cause {
        Cause { at: jiff::Timestamp::UNIX_EPOCH, kind }
    }

    #[test]
    fn causes_say_object_field_and_writer() {
        let drift = watch(Relation::Owner, WatchEvent::Modified, &[(".spec.replicas", "5", "3")], false);
        assert_eq!(cause(&drift), "Deployment web .spec.replicas 5→3 (kubectl)");
        let scale =
            watch(Relation::Primary, WatchEvent::Modified, &[(".spec.replicaCount", "3", "5")], false);
        assert_eq!(cause(&scale), ".spec.replicaCount 3→5 (kubectl)");
        assert_eq!(
            cause(&watch(Relation::Annotation, WatchEvent::Deleted, &[], false)),
            "Deployment web deleted (kubectl)"
        );
        let beside = causes_of(&ObjectRef { name: "web".to_owned(), ..ObjectRef::default() }, &[drift]);
        assert_eq!(beside, "Deployment .spec.replicas 5→3 (kubectl)");
        let object = ObjectRef { gvk: Gvk::new("apps", "v1", "Deployment"), ..ObjectRef::default() };
        let longer = ObjectRef { name: "web-cache".to_owned(), ..object };
        assert_eq!(child(&longer, "web"), "Deployment …-cache");
        assert_eq!(child(&longer, "we"), "Deployment web-cache");
        let many = [(".a", "1", "2"), (".b", "1", "2"), (".c", "1", "2")];
        assert_eq!(
            cause(&watch(Relation::Owner, WatchEvent::Modified, &many, true)),
            "operator's own write: Deployment web .a 1→2, .b 1→2 +1 more"
        );
    }

    #[test]
    fn json_has_hidden_characters_as_escapes_wherever_they_stand() {
        let long = "x".repeat(300);
        for kept in [format!(r#"{{"a":"{long}"}}"#), format!(r#"{{"a":"{long} · é 😀"}}"#)] {
            assert_eq!(escaped_json(kept.clone()), kept);
        }
        for (hidden, escape) in
            [("\u{7f}", "\\u007f"), ("\u{9b}", "\\u009b"), ("\u{e0041}", "\\udb40\\udc41")]
        {
            for place in [0, 127, 128, 300] {
                let (before, after) = long.split_at(place);
                let told = escaped_json(format!("{before}{hidden}{after}"));
                assert_eq!(told, format!("{before}{escape}{after}"));
            }
        }
    }

    #[test]
    fn a_key_of_the_user_is_named_and_waits_say_what_for() {
        let mut created = watch(Relation::Primary, WatchEvent::Added, &[], false);
        if let CauseKind::Watch { by, .. } = &mut created.kind {
            *by = Some("opdev".to_owned());
        }
        assert_eq!(cause(&created), "created (you)");
        assert_eq!(cause(&plain(CauseKind::User)), "you pressed r");
        let wait = |why: &str| cause(&plain(CauseKind::Wait { why: why.to_owned() }));
        assert_eq!(wait("requeued by the reconciler (5 ms)"), "requeued by the reconciler (5 ms)");
        assert_eq!(
            wait("retry: ClusterRole manager-role changed"),
            "retry: ClusterRole manager-role changed"
        );
        assert_eq!(wait("the Job web-migrate"), "waited: the Job web-migrate");
    }

    #[test]
    fn the_own_change_stands_before_what_happened_around_it() {
        let child =
            watch(Relation::Owner, WatchEvent::Modified, &[(".status.readyReplicas", "1", "2")], false);
        let own = watch(Relation::Primary, WatchEvent::Modified, &[(".spec.size", "3", "5")], false);
        let echo = watch(Relation::Primary, WatchEvent::Modified, &[(".status.ready", "1", "2")], true);
        let all = [echo, child, plain(CauseKind::Period), own];
        assert_eq!(
            causes(&all),
            ".spec.size 3→5 (kubectl) · Deployment web .status.readyReplicas 1→2 (kubectl) · resync · operator's own write: .status.ready 1→2"
        );
    }

    #[test]
    fn the_most_telling_field_stands_first_and_children_that_change_alike_are_one() {
        let pod = |name: &str| {
            let changed = [
                (".status.conditions[type=Ready].message", "unready", ""),
                (".status.initContainerStatuses", "", "[]"),
                (".status.containerStatuses[name=app].started", "false", "true"),
                (".status.conditions[type=Ready].status", "False", "True"),
                (".status.phase", "Pending", "Running"),
            ];
            let mut cause = watch(Relation::Owner, WatchEvent::Modified, &changed, false);
            if let CauseKind::Watch { object, .. } = &mut cause.kind {
                name.clone_into(&mut object.name);
            }
            cause
        };
        let web = ObjectRef { name: "web".to_owned(), ..ObjectRef::default() };
        let noted = [(".metadata.annotations[example.com/note]", "a", "b"), (".spec.size", "3", "5")];
        assert_eq!(
            cause(&watch(Relation::Primary, WatchEvent::Modified, &noted, false)),
            ".spec.size 3→5, annotation note a→b (kubectl)"
        );
        let changed = ".status.phase Pending→Running, Ready False→True +3 more (kubectl)";
        assert_eq!(causes_of(&web, &[pod("web-1")]), format!("Deployment …-1 {changed}"));
        assert_eq!(
            causes_of(&web, &[pod("web-1"), pod("web-2"), pod("web-3")]),
            format!("Deployment {changed} ×3")
        );
        assert_eq!(causes_of(&web, &[pod("web-1"), pod("web-1")]), format!("Deployment …-1 {changed} ×2"));
    }

    #[test]
    fn causes_from_outside_come_first_and_equal_ones_merge() {
        let echo = watch(Relation::Owner, WatchEvent::Modified, &[], true);
        let edit = plain(CauseKind::Reload {
            sources: 2,
            files: vec!["charts/a/templates/deployment.yaml".to_owned(), "charts/a/values.yaml".to_owned()],
        });
        let all = [echo.clone(), edit, echo, plain(CauseKind::Period)];
        assert_eq!(
            causes(&all),
            "edit deployment.yaml +1 more · resync · operator's own write: Deployment web changed ×2"
        );
        let retry = plain(CauseKind::Retry { attempt: 2, error: "render:\n  no  value".to_owned() });
        assert_eq!(cause(&retry), "retry 2 after: render: no value");
    }

    #[test]
    fn ages_are_kubectls() {
        let text = |seconds| age(Duration::from_secs(seconds));
        assert_eq!(text(119), "119s");
        assert_eq!(text(120), "2m");
        assert_eq!(text(125), "2m5s");
        assert_eq!(text(600), "10m");
        assert_eq!(text(3 * 3600), "3h");
        assert_eq!(text(3 * 3600 + 1200), "3h20m");
        assert_eq!(text(9 * 3600), "9h");
        assert_eq!(text(50 * 3600), "2d2h");
        assert_eq!(text(400 * 86400), "400d");
    }

    #[test]
    fn durations() {
        assert_eq!(took(Duration::from_micros(420)), "0.4 ms");
        assert_eq!(took(Duration::from_micros(38_400)), "38 ms");
        assert_eq!(took(Duration::from_millis(1240)), "1.2 s");
        assert_eq!(took(Duration::from_secs(60)), "60 s");
        assert_eq!(took(Duration::from_secs(125)), "2m5s");
    }
}
