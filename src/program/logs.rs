//! A line of a program's log, read by its shape: zap's console and JSON, slog, klog, logfmt, kopf, logback,
//! and whatever else as it is. Nothing is configured; the shape is looked at line by line. Pure.

use opdev_event::{Level, mask};
use opdev_facts::record::LineName;
use serde_json::{Map, Value};

/// Returns the message of a line that tells an error, with the error itself; `None` for every other line.
pub fn error_of(line: &str) -> Option<String> {
    let entry = parse(line);
    if entry.level != Some(Level::Error) {
        return None;
    }
    let error = entry.fields.iter().find(|(key, _)| key == "error" || key == "err");
    Some(error.map_or(entry.message.clone(), |(_, error)| format!("{}: {error}", entry.message)))
}

/// A line, and what followed it without a beginning of its own.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Entry {
    /// The level; `None` where the line does not say.
    pub(super) level: Option<Level>,
    /// The logger that wrote it; empty where the line does not say.
    pub(super) logger: String,
    pub(super) message: String,
    /// Fields in their order, without those that say which object and reconcile it is about.
    pub(super) fields: Vec<(String, String)>,
    /// The object it is about, as `namespace/name`.
    pub(super) object: Option<String>,
    /// Why that one is reconciled, where the line says it.
    pub(super) reason: Option<String>,
    /// Lines that belong to it, such as a stack.
    pub(super) more: Vec<String>,
    /// Its name where the trace tells it, too.
    pub(super) name: Option<LineName>,
}

/// Lines of a stack that are shown.
const MOST: usize = 60;

impl Entry {
    /// As the log pane shows it: message, error, object, fields, stack.
    pub(super) fn text(&self) -> String {
        let mut text = self.message.clone();
        if let Some((_, error)) = self.fields.iter().find(|(key, _)| key == "error" || key == "err") {
            text = format!("{text}: {error}");
        }
        if let Some(object) = &self.object {
            text.push_str(&format!(" · {object}"));
        }
        for (key, value) in self.fields.iter().filter(|(key, _)| key != "error" && key != "err") {
            text.push_str(&format!(" {key}={value}"));
        }
        if !self.more.is_empty() {
            text.push_str(&format!("\n{}", self.stack()));
        }
        text
    }

    /// The lines that belong to it, as far as they are shown.
    pub(super) fn stack(&self) -> String {
        self.more[..self.more.len().min(MOST)].join("\n")
    }
}

/// Joins the lines of a stack or a traceback to the line that they belong to.
#[derive(Debug, Default)]
pub(super) struct Joiner {
    open: Option<Entry>,
}

impl Joiner {
    /// Takes a line; the answer is the entry that it ends.
    pub(super) fn push(&mut self, line: &str) -> Option<Entry> {
        if let Some(open) = &mut self.open
            && belongs_to(open, line)
        {
            open.more.push(line.replace('\t', "    "));
            return None;
        }
        if line.trim().is_empty() {
            return self.open.take();
        }
        self.open.replace(parse(line))
    }

    /// The entry that is open, once nothing more comes at once.
    pub(super) fn flush(&mut self) -> Option<Entry> {
        self.open.take()
    }
}

/// Returns true if a line goes on with an entry: it is indented, or it is a frame's function below an error.
fn belongs_to(open: &Entry, line: &str) -> bool {
    let first = line.chars().next();
    if first == Some('\t') || line.starts_with("    ") || line.starts_with("  File \"") || is_exception(line)
    {
        return true;
    }
    let stack = open.level == Some(Level::Error) || !open.more.is_empty();
    let function = line.contains('.')
        && !line.contains(' ')
        && (line.contains('/')
            || line.ends_with(')')
            || line.starts_with("main.")
            || line.starts_with("runtime."));
    let java = line.starts_with("Caused by: ") || line.starts_with("at ");
    stack && (function || java || line.starts_with("goroutine ") || line.starts_with("created by "))
}

/// Returns true if a line begins with the class of an exception of Java: its stack follows.
pub(super) fn is_exception(line: &str) -> bool {
    let class = line.split([':', ' ']).next().unwrap_or_default();
    let (package, name) = class.rsplit_once('.').unwrap_or_default();
    let is_package =
        !package.is_empty() && package.split('.').all(|part| part.starts_with(char::is_lowercase));
    let ends = ["Exception", "Error", "Throwable"].iter().any(|end| name.ends_with(end));
    is_package && ends && (line.len() == class.len() || line[class.len()..].starts_with(": "))
}

/// Reads one line.
pub(super) fn parse(line: &str) -> Entry {
    let plain = strip_escapes(line);
    let line = plain.as_str();
    let found = json(line)
        .or_else(|| console(line))
        .or_else(|| klog(line))
        .or_else(|| kopf(line))
        .or_else(|| logfmt(line))
        .or_else(|| worded(line));
    let mut entry = found.unwrap_or_else(|| Entry { message: line.to_owned(), ..Entry::default() });
    if entry.level.is_none() && (line.starts_with("panic: ") || line.starts_with("fatal error: ")) {
        entry.level = Some(Level::Error);
    }
    entry
}

/// A line without what it tells a terminal: colours, titles, links, character sets. Its words stay, whatever
/// comes.
pub(super) fn strip_escapes(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find(['\u{1b}', '\u{9b}', '\u{90}', '\u{98}', '\u{9d}', '\u{9e}', '\u{9f}']) {
        out.push_str(&rest[..at]);
        let mut after = rest[at..].chars();
        // A character of C1 stands for an escape and a letter.
        let kind = match after.next() {
            Some('\u{1b}') => after.next(),
            other => other.and_then(|c| char::from_u32(u32::from(c) - 0x40)),
        };
        rest = match kind {
            Some('[') => after_sequence(after.as_str(), |c| matches!(c, ' '..='?')),
            Some(']' | 'P' | 'X' | '^' | '_') => after_text(after.as_str()),
            // Such as the character set of `tput sgr0`: signs, then one letter.
            Some(' '..='/') => after_sequence(after.as_str(), |c| matches!(c, ' '..='/')),
            Some('0'..='~') => after.as_str(),
            Some(other) => &rest[rest.len() - after.as_str().len() - other.len_utf8()..],
            None => "",
        };
    }
    out.push_str(rest);
    out
}

/// The text after the parameters of a sequence and the letter that ends it.
fn after_sequence(text: &str, is_parameter: impl Fn(char) -> bool) -> &str {
    let rest = text.trim_start_matches(is_parameter);
    let mut after = rest.chars();
    match after.next() {
        Some('0'..='~') => after.as_str(),
        // It is cut short.
        Some(_) | None => rest,
    }
}

/// The text after one for the terminal. One without an end is taken for words.
fn after_text(text: &str) -> &str {
    let ends = [("\u{7}", 1), ("\u{1b}\\", 2), ("\u{9c}", 2)];
    let end = ends.into_iter().filter_map(|(end, long)| text.find(end).map(|at| at + long)).min();
    end.map_or(text, |end| &text[end..])
}

fn level(word: &str) -> Option<Level> {
    let word = word.trim().trim_matches(['[', ']']);
    Some(match word.to_ascii_uppercase().as_str() {
        "ERROR" | "ERR" | "FATAL" | "PANIC" | "DPANIC" | "CRITICAL" | "SEVERE" | "E" | "F" => Level::Error,
        "WARN" | "WARNING" | "W" => Level::Warn,
        "INFO" | "NOTICE" | "I" => Level::Info,
        "DEBUG" | "FINE" | "D" => Level::Debug,
        "TRACE" | "FINER" => Level::Trace,
        // zap writes levels below debug as `LEVEL(-3)`, slog as `DEBUG-4`.
        other if other.starts_with("LEVEL(-") || other.starts_with("DEBUG-") => Level::Trace,
        _ => return None,
    })
}

/// Fields that say which object and reconcile a line is about, and are not shown as fields.
const ABOUT: [&str; 9] = [
    "controller",
    "controllerGroup",
    "controllerKind",
    "namespace",
    "name",
    "reconcileID",
    "stacktrace",
    "resource.name",
    "resource.namespace",
];

/// Takes the fields of an entry in.
fn take_fields(entry: &mut Entry, fields: &Map<String, Value>) {
    let word = |key: &str| fields.get(key).and_then(Value::as_str);
    // The Java Operator SDK names it so in its context.
    let resource = |key: &str| word(key).or_else(|| word(&format!("resource.{key}")));
    entry.object = match (fields.get("object"), resource("namespace"), resource("name")) {
        (_, Some(namespace), Some(name)) if !namespace.is_empty() => Some(format!("{namespace}/{name}")),
        (_, _, Some(name)) => Some(name.to_owned()),
        (Some(Value::String(object)), _, _) => Some(object.clone()),
        (Some(Value::Object(object)), _, _) => object_name(object),
        _ => None,
    };
    entry.name = word(LineName::FIELD).and_then(LineName::read);
    let named = entry.name.is_some();
    let kind = word("controllerKind").map(str::to_owned);
    let same = |value: &Value| value.as_object().and_then(object_name) == entry.object;
    let shown: Vec<(String, String)> = fields
        .iter()
        .filter(|(key, value)| {
            let repeats = kind.as_deref() == Some(key.as_str()) && same(value);
            let names = named && *key == LineName::FIELD;
            !ABOUT.contains(&key.as_str()) && *key != "object" && !repeats && !names
        })
        .map(|(key, value)| {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let text = if mask::is_secret_name(key) { "***".to_owned() } else { text };
            (key.clone(), text)
        })
        .collect();
    entry.fields.extend(shown);
}

fn object_name(object: &Map<String, Value>) -> Option<String> {
    let name = object.get("name")?.as_str()?;
    match object.get("namespace").and_then(Value::as_str).filter(|namespace| !namespace.is_empty()) {
        Some(namespace) => Some(format!("{namespace}/{name}")),
        None => Some(name.to_owned()),
    }
}

/// One JSON object: zap, slog, kopf, logback and others, whose keys differ little.
fn json(line: &str) -> Option<Entry> {
    let Value::Object(mut fields) = serde_json::from_str(line.strip_prefix('{').map(|_| line)?).ok()? else {
        return None;
    };
    let mut take = |keys: &[&str]| {
        keys.iter().find_map(|key| match fields.remove(*key) {
            Some(Value::String(text)) => Some(text),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(_) | None => None,
        })
    };
    let message = take(&["msg", "message", "event"])?;
    let said = take(&["level", "severity", "levelname", "lvl"]);
    let logger =
        take(&["logger", "logger_name", "loggerName", "target", "name_of_logger"]).unwrap_or_default();
    let stack = take(&["stacktrace", "stack_trace", "exception"]);
    for clock in ["ts", "time", "timestamp", "@timestamp", "caller", "source", "@version", "level_value"] {
        fields.remove(clock);
    }
    let mut entry = Entry { level: said.as_deref().and_then(level), logger, message, ..Entry::default() };
    entry.more.extend(stack.iter().flat_map(|stack| stack.lines()).map(|line| line.replace('\t', "    ")));
    take_fields(&mut entry, &fields);
    Some(entry)
}

/// zap's console: `time TAB LEVEL TAB [logger TAB] message [TAB {json}]`.
fn console(line: &str) -> Option<Entry> {
    let mut parts: Vec<&str> = line.split('\t').collect();
    if parts.len() < 3 || !parts[0].starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let said = level(parts[1])?;
    let fields = match parts.last().map(|last| serde_json::from_str(last)) {
        Some(Ok(Value::Object(fields))) if parts.len() > 3 => {
            parts.pop();
            fields
        }
        _ => Map::new(),
    };
    let (logger, message) = match &parts[2..] {
        [] => return None,
        [message] => (String::new(), (*message).to_owned()),
        // The caller, such as `cmd/main.go:12`, may stand before the message.
        [.., caller, message] if caller.rsplit_once(".go:").is_some() && parts.len() == 4 => {
            (String::new(), (*message).to_owned())
        }
        [logger, rest @ ..] => ((*logger).to_owned(), rest.join(" ")),
    };
    let mut entry = Entry { level: Some(said), logger, message, ..Entry::default() };
    take_fields(&mut entry, &fields);
    Some(entry)
}

/// klog: `I1123 08:00:00.000000   12 file.go:3] message k="v"`.
fn klog(line: &str) -> Option<Entry> {
    let (head, message) = line.split_once("] ")?;
    let (first, rest) = head.split_at_checked(1)?;
    let said = match first {
        "I" => Level::Info,
        "W" => Level::Warn,
        "E" | "F" => Level::Error,
        _ => return None,
    };
    let mut words = rest.split_whitespace();
    let is_day =
        words.next().is_some_and(|day| day.len() == 4 && day.bytes().all(|byte| byte.is_ascii_digit()));
    let place = words.last()?;
    if !is_day || !place.contains(':') {
        return None;
    }
    // Structured messages are quoted and followed by pairs.
    let (text, fields) = match message.strip_prefix('"').and_then(|rest| rest.split_once('"')) {
        Some((text, rest)) => (text.to_owned(), pairs(rest)),
        None => (message.to_owned(), Some(Map::new())),
    };
    let mut entry = Entry { level: Some(said), message: text, ..Entry::default() };
    take_fields(&mut entry, &fields.unwrap_or_default());
    Some(entry)
}

/// kopf: `[time] logger [LEVEL   ] [ns/name] text`, with and without the logger.
fn kopf(line: &str) -> Option<Entry> {
    let (_time, rest) = line.strip_prefix('[')?.split_once("] ")?;
    let (logger, rest) = rest.split_once('[')?;
    let (said, rest) = rest.split_once("] ")?;
    let said = level(said)?;
    let (object, message) = match rest.strip_prefix('[').and_then(|rest| rest.split_once("] ")) {
        Some((object, message)) => (Some(object.to_owned()), message),
        None => (None, rest),
    };
    let logger = logger.trim().to_owned();
    Some(Entry { level: Some(said), logger, message: message.to_owned(), object, ..Entry::default() })
}

/// slog's text and logfmt: pairs only, one of which is the message.
fn logfmt(line: &str) -> Option<Entry> {
    let mut fields = pairs(line)?;
    let mut take =
        |keys: &[&str]| keys.iter().find_map(|key| fields.remove(*key)?.as_str().map(str::to_owned));
    let message = take(&["msg", "message"])?;
    let said = take(&["level", "lvl", "severity"]);
    let logger = take(&["logger", "target"]).unwrap_or_default();
    for clock in ["ts", "time", "timestamp", "caller", "source"] {
        fields.remove(clock);
    }
    let mut entry = Entry { level: said.as_deref().and_then(level), logger, message, ..Entry::default() };
    take_fields(&mut entry, &fields);
    Some(entry)
}

/// `k=v k="v w"`; `None` where something else stands between.
fn pairs(text: &str) -> Option<Map<String, Value>> {
    let mut found = Map::new();
    let mut rest = text.trim();
    while !rest.is_empty() {
        let (key, after) = rest.split_once('=')?;
        let named =
            !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || matches!(c, '_' | '.' | '-' | '/'));
        if !named {
            return None;
        }
        let (value, left) = match after.strip_prefix('"') {
            Some(quoted) => {
                let end = closing_quote(quoted)?;
                (quoted[..end].replace("\\\"", "\"").replace("\\n", "\n"), &quoted[end + 1..])
            }
            None => {
                let end = after.find(' ').unwrap_or(after.len());
                (after[..end].to_owned(), &after[end..])
            }
        };
        found.insert(key.to_owned(), Value::String(value));
        rest = left.trim_start();
    }
    (!found.is_empty()).then_some(found)
}

fn closing_quote(text: &str) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in text.char_indices() {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at),
            _ => {}
        }
    }
    None
}

/// `time LEVEL rest`, as logback, tracing-subscriber and many others write: the level among the first words.
fn worded(line: &str) -> Option<Entry> {
    if !line.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let (word, rest) = after_thread(line).or_else(|| {
        let word =
            line.split_whitespace().take(5).skip(1).find(|word| word.len() > 1 && level(word).is_some())?;
        line.split_once(word).map(|(_, rest)| (word, rest))
    })?;
    let rest = rest.trim_start_matches([' ', ']', ':']);
    let field = |name: &str, ends: &[char]| {
        let (_, after) = rest.split_once(name)?;
        let end = after.find(ends).unwrap_or(after.len());
        Some(after[..end].to_owned())
    };
    // As kube-rs names the span of a reconcile; a reason is of several words.
    let (object, reason) = (field("object.ref=", &[' ', '}', ',']), field("object.reason=", &['}', ',']));
    let object = object.or_else(|| resource_id(rest)).or_else(|| in_brackets(rest));
    Some(Entry { level: level(word), message: rest.to_owned(), object, reason, ..Entry::default() })
}

/// The level, and what follows it, where a thread stands between it and the time. Its name may have many
/// words: `12:00:01.2 [Controller Starter for: a] INFO rest`.
fn after_thread(line: &str) -> Option<(&str, &str)> {
    let (time, rest) = line.split_once(" [")?;
    let (_, rest) =
        rest.split_once("] ").filter(|_| time.split_whitespace().all(|word| level(word).is_none()))?;
    let word = rest.split_whitespace().next().filter(|word| word.len() > 1 && level(word).is_some())?;
    rest.split_once(word).map(|(_, rest)| (word, rest))
}

/// The object in `ResourceID{name='a', namespace='b'}`, as the Java Operator SDK names it.
fn resource_id(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("ResourceID{name='")?;
    let (name, rest) = rest.split_once('\'')?;
    let namespace =
        rest.strip_prefix(", namespace='").and_then(|rest| rest.split_once('\'')).map(|(name, _)| name);
    Some(namespace.map_or(name.to_owned(), |namespace| format!("{namespace}/{name}")))
}

/// An object in brackets, such as `[default/demo]`.
fn in_brackets(text: &str) -> Option<String> {
    let is_name = |part: &str| {
        let is_label = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '.');
        !part.is_empty() && part.chars().all(is_label)
    };
    let inside = |part: &str| part.split_once(']').map(|(inside, _)| inside.to_owned());
    let is_object = |inside: &String| inside.split_once('/').is_some_and(|(a, b)| is_name(a) && is_name(b));
    text.split('[').skip(1).filter_map(inside).find(is_object)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(line: &str) -> String {
        let entry = parse(line);
        let level = entry.level.map_or("-".to_owned(), |level| format!("{level:?}"));
        format!("{level}|{}|{}", entry.logger, entry.text())
    }

    #[test]
    fn each_shape_gives_level_logger_object_and_fields() {
        let cases = [
            (
                "2026-11-23T08:00:00Z\tINFO\tsetup\tstarting manager\t{\"version\": \"1\"}",
                "Info|setup|starting manager version=1",
            ),
            (
                "2026-11-23T08:00:00Z\tERROR\tReconciler error\t{\"controller\": \"podset\", \"controllerKind\": \"PodSet\", \"PodSet\": {\"name\":\"demo\",\"namespace\":\"default\"}, \"namespace\": \"default\", \"name\": \"demo\", \"reconcileID\": \"a\", \"error\": \"no luck\"}",
                "Error||Reconciler error: no luck · default/demo",
            ),
            ("2026-11-23T08:00:00Z\tDEBUG\tcmd/main.go:12\thello", "Debug||hello"),
            (
                "{\"level\":\"info\",\"ts\":1.5,\"logger\":\"a\",\"msg\":\"b\",\"password\":\"c\"}",
                "Info|a|b password=***",
            ),
            ("{\"time\":\"t\",\"level\":\"WARN\",\"msg\":\"b\",\"n\":3}", "Warn||b n=3"),
            (
                "E1123 08:00:00.123456   12 reflector.go:3] \"Failed to watch\" err=\"no\" pod=\"a/b\"",
                "Error||Failed to watch: no pod=a/b",
            ),
            ("I1123 08:00:00.123456   12 main.go:3] plain text", "Info||plain text"),
            ("time=2026-11-23T08:00:00Z level=INFO msg=\"a b\" n=3", "Info||a b n=3"),
            (
                "[2026-11-23 08:00:00,000] kopf.objects         [INFO    ] [default/demo] Creation is processed",
                "Info|kopf.objects|Creation is processed · default/demo",
            ),
            (
                "2026-11-23 08:00:00,000 WARN  [io.jav.ope] (main) careful",
                "Warn||[io.jav.ope] (main) careful",
            ),
            (
                "2026-11-23T08:00:00.1Z  INFO reconciling object{object.ref=Foo.v1.a/b.default object.reason=object updated}: ctl: done",
                "Info||reconciling object{object.ref=Foo.v1.a/b.default object.reason=object updated}: ctl: done · Foo.v1.a/b.default",
            ),
            (
                "22:42:58.435 [Controller Starter for: greeting] INFO  i.j.o.Operator - started",
                "Info||i.j.o.Operator - started",
            ),
            (
                "22:42:58.435 [pool-1-thread-2] WARN  [default/hello] c.e.R - no luck",
                "Warn||[default/hello] c.e.R - no luck · default/hello",
            ),
            (
                "22:42:58.435 [a] ERROR c.e.R - failed ExecutionScope{ resource id: ResourceID{name='hello', namespace='b'}, version: 3}",
                "Error||c.e.R - failed ExecutionScope{ resource id: ResourceID{name='hello', namespace='b'}, version: 3} · b/hello",
            ),
            (
                "{\"level\":\"INFO\",\"message\":\"b\",\"resource.name\":\"hello\",\"resource.namespace\":\"c\"}",
                "Info||b · c/hello",
            ),
            ("\u{1b}[31mred\u{1b}[0m text", "-||red text"),
            ("\u{1b}]0;TITLE\u{7}title set", "-||title set"),
            (
                "see \u{1b}]8;;http://a/\u{1b}\\the page\u{1b}]8;;\u{1b}\\ for more",
                "-||see the page for more",
            ),
            ("bold\u{1b}(B\u{1b}[m and plain", "-||bold and plain"),
            ("\u{1b}]0;no end", "-||0;no end"),
            ("a\u{1b}Pq#0\u{1b}\\b\u{9b}1mc\u{1b}", "-||abc"),
            ("just words", "-||just words"),
            ("panic: oh", "Error||panic: oh"),
            ("2026-11-23T08:00:00Z\tINFO\ta\tb\t{\"opdev\": \"4711.12\", \"n\": 3}", "Info|a|b n=3"),
            ("{\"level\":\"info\",\"msg\":\"b\",\"opdev\":\"a word\"}", "Info||b opdev=a word"),
        ];
        for (line, expected) in cases {
            assert_eq!(told(line), expected, "{line}");
        }
    }

    #[test]
    fn the_span_of_a_reconcile_says_why_it_runs() {
        let reason = |line: &str| parse(line).reason;
        let line = "2026-11-23T08:00:00Z  INFO reconciling object{object.ref=Foo.v1.a/b.default object.reason=object updated}: ctl: done";
        assert_eq!(reason(line).as_deref(), Some("object updated"));
        assert_eq!(
            reason("2026-11-23T08:00:00Z  INFO reconciling object{object.ref=Foo.v1.a/b.default}: done"),
            None
        );
    }

    #[test]
    fn an_exception_of_java_belongs_to_the_line_before_it() {
        let text = "22:42:58.435 [a] WARN  c.e.R - tried in vain\njava.lang.IllegalStateException: no luck\n\tat c.e.R.go(R.java:7)\n\
            Caused by: java.io.IOException: gone\n\t... 3 more\n22:42:59.000 [a] INFO  c.e.R - next";
        let mut joiner = Joiner::default();
        let mut entries: Vec<Entry> = text.lines().filter_map(|line| joiner.push(line)).collect();
        entries.extend(joiner.flush());
        let told: Vec<_> = entries.iter().map(|entry| (entry.message.as_str(), entry.more.len())).collect();
        assert_eq!(told, [("c.e.R - tried in vain", 4), ("c.e.R - next", 0)]);
        assert!(
            !is_exception("Some.Thing: a word")
                && !is_exception("an Error came")
                && is_exception("a.b.CError")
        );
    }

    #[test]
    fn a_stack_belongs_to_the_error_before_it() {
        let text = "2026-11-23T08:00:00Z\tERROR\tsetup\tproblem\t{\"error\": \"x\"}\nmain.main\n\t/p/main.go:20\n\
            runtime.main\n\t/go/proc.go:1\n2026-11-23T08:00:01Z\tINFO\tnext";
        let mut joiner = Joiner::default();
        let mut entries: Vec<Entry> = text.lines().filter_map(|line| joiner.push(line)).collect();
        entries.extend(joiner.flush());
        assert_eq!(entries.len(), 2);
        assert_eq!(entries[0].more, ["main.main", "    /p/main.go:20", "runtime.main", "    /go/proc.go:1"]);
        assert_eq!(entries[1].message, "next");
    }
}
