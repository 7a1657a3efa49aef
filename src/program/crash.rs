//! Why a process ended, read off its last lines: panics of Go with the first frame inside the project,
//! exceptions of Python and Java, else its last error. Also when a process that ended is started again. Pure.

use super::logs;
use opdev_event::{Level, Place};
use std::path::Path;
use std::time::Duration;

/// Why a process ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Reason {
    pub(super) message: Option<String>,
    pub(super) place: Option<Place>,
    pub(super) hint: Option<String>,
}

/// How long each start in a row waits for after an end without being asked.
const WAITS: [Duration; 4] =
    [Duration::from_millis(200), Duration::from_secs(1), Duration::from_secs(5), Duration::from_secs(15)];
/// A process that ended sooner has not come up.
pub(super) const SHORT: Duration = Duration::from_secs(10);
/// Ends of this kind in a row after which nothing is tried any more.
pub(super) const MOST: u32 = 3;

/// Ends in a row of one program.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Crashes {
    short: u32,
    all: u32,
}

impl Crashes {
    /// Takes one in; the answer is after how long the program is started again, `None` for not at all.
    pub(super) fn next(&mut self, ran: Duration) -> Option<Duration> {
        if ran < SHORT {
            self.short += 1;
        } else {
            *self = Crashes::default();
        }
        self.all += 1;
        if self.short >= MOST {
            return None;
        }
        Some(WAITS[(self.all as usize - 1).min(WAITS.len() - 1)])
    }
}

/// Reads the last lines. `module` is the path of the project's Go module, for binaries with trimmed paths.
pub(super) fn reason(lines: &[String], root: &Path, module: &str) -> Reason {
    let found = panic(lines, root, module).or_else(|| traceback(lines, root));
    let mut found = found.or_else(|| java_exception(lines)).unwrap_or_else(|| last_error(lines));
    found.hint = found.message.as_deref().and_then(hint);
    found
}

/// The hint that helps, by the program's last words.
fn hint(message: &str) -> Option<String> {
    let says = |words: &str| message.contains(words);
    let text = if says("address already in use") {
        "another program uses this port: stop it, or give this program another port under `operator.args` in opdev.yaml"
    } else if says("leader election namespace") {
        "outside a cluster leader election needs a namespace: turn it off under `operator.args` in opdev.yaml, such as \
         --leader-elect=false"
    } else if says("in-cluster") || says("incluster") || says("KUBERNETES_SERVICE_HOST") {
        "the program takes the configuration of a pod: let it load the kubeconfig that KUBECONFIG names, as ctrl.GetConfig and \
         clientcmd's default rules do"
    } else if says("no such file") && (says("kubeconfig") || says(".kube/")) {
        "the program reads a kubeconfig of its own: let it load the one that KUBECONFIG names, and take a path out of its code \
         or its arguments"
    } else if says("must be set") || says("environment variable") || says("env var") {
        "set the variable under `operator.env` in opdev.yaml"
    } else if says("flag provided but not defined") || says("unknown flag") {
        "the program does not know one of its arguments: correct `operator.args` in opdev.yaml"
    } else if says("k8s-webhook-server") || says("tls.crt") {
        "the program serves webhooks and finds no certificate: on the embedded control plane opdev makes one"
    } else {
        return None;
    };
    Some(text.to_owned())
}

/// The ends of a line whose panic was caught and went on; the longer one since Go 1.25.
const REPANICKED: [&str; 2] = [" [recovered]", " [recovered, repanicked]"];

/// A panic or a fatal error of Go.
fn panic(lines: &[String], root: &Path, module: &str) -> Option<Reason> {
    let at =
        lines.iter().rposition(|line| line.starts_with("panic: ") || line.starts_with("fatal error: "))?;
    let message =
        REPANICKED.iter().fold(lines[at].as_str(), |line, end| line.trim_end_matches(end)).to_owned();
    let place = lines[at..].iter().find_map(|line| frame(line, root, module));
    Some(Reason { message: Some(message), place, hint: None })
}

/// A line of a stack, such as `\t/home/me/op/cmd/main.go:12 +0x1d`, where it lies in the project.
pub(super) fn frame(line: &str, root: &Path, module: &str) -> Option<Place> {
    let text = line.strip_prefix('\t')?;
    let text = text.split(" +0x").next()?;
    let (path, number) = text.rsplit_once(':')?;
    let number = number.parse().ok()?;
    let inside = Path::new(path).strip_prefix(root).ok().map(|path| path.display().to_string());
    let of_module = || {
        let rest = path.strip_prefix(module).filter(|_| !module.is_empty())?;
        Some(rest.strip_prefix('/')?.to_owned())
    };
    let file = inside.or_else(of_module)?;
    if file.starts_with("vendor/") || file.starts_with(".opdev/") {
        return None;
    }
    Some(Place { file, line: number, column: 0 })
}

/// An exception of Python: the last frame inside the project and the line that names it.
fn traceback(lines: &[String], root: &Path) -> Option<Reason> {
    let at = lines.iter().rposition(|line| line.starts_with("Traceback (most recent call last):"))?;
    let after = &lines[at + 1..];
    let end = after.iter().position(|line| !line.starts_with(' ') && !line.is_empty())?;
    let place = after[..end].iter().rev().find_map(|line| {
        let (path, rest) = line.trim().strip_prefix("File \"")?.split_once("\", line ")?;
        let number: String = rest.chars().take_while(char::is_ascii_digit).collect();
        let path = Path::new(path);
        let file = path.strip_prefix(root).ok().or_else(|| path.is_relative().then_some(path))?;
        Some(Place { file: file.display().to_string(), line: number.parse().ok()?, column: 0 })
    });
    Some(Reason { message: Some(after[end].clone()), place, hint: None })
}

/// The words of an exception of Java, and of the innermost one that caused it: what failed in the end tells
/// most.
fn java_exception(lines: &[String]) -> Option<Reason> {
    let causes = || {
        lines.iter().enumerate().filter_map(|(at, line)| Some((at, line.trim().strip_prefix("Caused by: ")?)))
    };
    let (last, cause) = causes().next_back()?;
    // Without its stack it is a word in a text. An error that comes later tells why the process ended.
    let is_error = |line: &&String| logs::parse(line).level == Some(Level::Error);
    let has_stack = lines.get(last + 1).is_some_and(|next| next.trim_start().starts_with("at "));
    if !has_stack || lines[last + 1..].iter().any(|line| is_error(&line)) {
        return None;
    }
    let begins = |line: &&String| line.starts_with("Exception in thread") || logs::is_exception(line);
    let before = || lines[..last].iter().rev();
    let first = before().find(begins).or_else(|| before().find(is_error));
    let class = |text: &str| {
        let (class, words) = text.split_once(": ").unwrap_or((text, ""));
        let name = class.rsplit('.').next().unwrap_or(class);
        if words.is_empty() { name.to_owned() } else { format!("{name}: {words}") }
    };
    let outer = first.map(|line| logs::parse(line).text()).filter(|outer| !outer.contains(cause));
    let message = outer.map_or_else(|| class(cause), |outer| format!("{outer}: {}", class(cause)));
    Some(Reason { message: Some(message), ..Reason::default() })
}

/// The last line that is an error by its shape, else the last line at all.
fn last_error(lines: &[String]) -> Reason {
    let is_error = |line: &&String| {
        logs::parse(line).level == Some(Level::Error) || line.starts_with("Exception in thread")
    };
    let line = lines.iter().rev().find(is_error);
    let line = line.or_else(|| lines.iter().rev().find(|line| !line.trim().is_empty()));
    Reason { message: line.map(|line| logs::parse(line).text()), ..Reason::default() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn lines(text: &str) -> Vec<String> {
        text.lines().map(str::to_owned).collect()
    }

    #[test]
    fn a_panic_names_the_first_frame_inside_the_project() {
        let text = "2026-11-23T08:00:00Z\tINFO\tsetup\tstarting manager\n\
            panic: runtime error: invalid memory address or nil pointer dereference [recovered]\n\
            [signal SIGSEGV: segmentation violation code=0x1 addr=0x0 pc=0x1]\n\
            \n\
            goroutine 52 [running]:\n\
            sigs.k8s.io/controller-runtime/pkg/internal/controller.(*Controller).Reconcile.func1()\n\
            \t/root/go/pkg/mod/sigs.k8s.io/controller-runtime@v0.24.1/pkg/internal/controller/controller.go:108 +0x1a5\n\
            github.com/me/op/controllers.(*R).Reconcile(...)\n\
            \t/home/me/op/controllers/podset_controller.go:77 +0x2f\n\
            main.main()\n\
            \t/home/me/op/main.go:12 +0x1d\n";
        let found = reason(&lines(text), Path::new("/home/me/op"), "github.com/me/op");
        assert_eq!(
            found.message.as_deref(),
            Some("panic: runtime error: invalid memory address or nil pointer dereference")
        );
        assert_eq!(found.place.unwrap().to_string(), "controllers/podset_controller.go:77");
        // Trimmed paths begin with the module.
        let trimmed = text.replace("/home/me/op", "github.com/me/op");
        let found = reason(&lines(&trimmed), Path::new("/home/me/op"), "github.com/me/op");
        assert_eq!(found.place.unwrap().to_string(), "controllers/podset_controller.go:77");
    }

    #[test]
    fn without_a_panic_the_last_error_is_the_reason() {
        let text = "2026-11-23T08:00:00Z\tINFO\tsetup\tstarting\n\
            2026-11-23T08:00:00Z\tERROR\tsetup\tproblem running manager\t{\"error\": \"listen tcp :8081: bind: address already in use\"}\n\
            main.main\n\
            \t/home/me/op/cmd/main.go:200\n";
        let found = reason(&lines(text), Path::new("/home/me/op"), "m");
        assert_eq!(
            found.message.as_deref(),
            Some("problem running manager: listen tcp :8081: bind: address already in use")
        );
        expect!["another program uses this port: stop it, or give this program another port under `operator.args` in opdev.yaml"]
        .assert_eq(&found.hint.unwrap());
        assert_eq!(reason(&lines("no\nway\n\n"), Path::new("/"), "").message.as_deref(), Some("way"));
        assert_eq!(reason(&[], Path::new("/"), ""), Reason::default());
    }

    #[test]
    fn an_exception_of_python_names_its_last_frame_in_the_project() {
        let text = "Traceback (most recent call last):\n  File \"/usr/lib/python3/kopf/x.py\", line 3, in run\n    f()\n  File \"/p/op.py\", line 9, in g\n    boom()\nValueError: no\n";
        let found = reason(&lines(text), Path::new("/p"), "");
        assert_eq!(found.message.as_deref(), Some("ValueError: no"));
        assert_eq!(found.place.unwrap().to_string(), "op.py:9");
    }

    #[test]
    fn an_exception_of_java_names_the_innermost_cause() {
        let text = "2026-11-23 08:00:00,123 ERROR [io.qua.run.Application] (main) Failed to start application\n\
            java.lang.RuntimeException: Failed to start quarkus\n\tat io.quarkus.A.b(A.java:1)\n\
            Caused by: io.fabric8.OuterException: it fails\n\tat c.D.e(D.java:2)\n\
            Caused by: io.javaoperatorsdk.MissingCRDException: 'a.example.com' v1 CRD was not found\n\tat c.F.g(F.java:3)\n\t... 9 more\n";
        let found = reason(&lines(text), Path::new("/p"), "");
        expect!["java.lang.RuntimeException: Failed to start quarkus: MissingCRDException: 'a.example.com' v1 CRD was not found"]
            .assert_eq(&found.message.unwrap());
        let later = format!("{text}2026-11-23 08:00:01,000 ERROR [a] (main) Port 8080 is in use\n");
        let message = reason(&lines(&later), Path::new("/p"), "").message;
        assert_eq!(message.as_deref(), Some("[a] (main) Port 8080 is in use"));
        let word = reason(&lines("it was Caused by: nothing\nCaused by: a word"), Path::new("/p"), "");
        assert_eq!(word.message.as_deref(), Some("Caused by: a word"));
    }

    #[test]
    fn three_short_lives_in_a_row_are_enough() {
        let (short, long) = (Duration::from_secs(1), Duration::from_secs(60));
        let mut crashes = Crashes::default();
        assert_eq!(crashes.next(short), Some(Duration::from_millis(200)));
        assert_eq!(crashes.next(short), Some(Duration::from_secs(1)));
        assert_eq!(crashes.next(long), Some(Duration::from_millis(200)));
        assert_eq!(crashes.next(short), Some(Duration::from_secs(1)));
        assert_eq!(crashes.next(short), Some(Duration::from_secs(5)));
        assert_eq!(crashes.next(short), None);
    }
}
