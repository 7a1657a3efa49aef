//! The program that opdev builds, starts and watches: the settings under `operator:` in `opdev.yaml`, and the
//! plan that comes of them and of the project's own files. Plain data.

use opdev_event::shell;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// `operator:` in `opdev.yaml`: one program, or a list of several.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Programs(pub Vec<Settings>);

impl<'de> Deserialize<'de> for Programs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct OneOrSeveral;
        impl<'de> Visitor<'de> for OneOrSeveral {
            type Value = Programs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a program, or a list of programs")
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Programs, A::Error> {
                Ok(Programs(vec![Settings::deserialize(MapAccessDeserializer::new(map))?]))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, seq: A) -> Result<Programs, A::Error> {
                Ok(Programs(Vec::deserialize(SeqAccessDeserializer::new(seq))?))
            }
        }
        from.deserialize_any(OneOrSeveral)
    }
}

/// One program of `operator:` in `opdev.yaml`; every field is optional.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(default, rename_all = "camelCase")]
pub struct Settings {
    /// The program and its first arguments, in any language.
    pub command: Option<Vec<String>>,
    /// The main package of a Go operator, such as `./cmd`, in place of `command`.
    pub go: Option<String>,
    /// Runs before each start of `command`; where it fails the old program goes on.
    pub build: Option<Vec<String>>,
    /// Globs of the files whose save leads to a build and a start, relative to `dir`.
    pub watch: Option<Vec<String>>,
    /// The working directory of build and program, relative to the project's root. Default: the root.
    pub dir: Option<String>,
    /// Environment variables of build and program.
    pub env: BTreeMap<String, String>,
    /// More arguments of the program.
    pub args: Vec<String>,
    /// The highest level of trace. Default `auto`.
    pub trace: TraceWish,
    /// The outcome for copy methods of the project's types before a build of a Go operator. Default `write`.
    pub generate: Generate,
    /// How long the program may take to stop before it is killed, such as `10s`. Default 10 seconds.
    pub stop_after: Option<String>,
    /// True if `go vet` looks at the packages of saved files of a Go operator. Default yes.
    pub vet: Option<bool>,
    /// The kinds that it reconciles. Default: those that no other program names.
    pub kinds: Vec<String>,
}

/// The highest level of trace that the user allows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum TraceWish {
    /// The highest that works.
    #[default]
    Auto,
    /// Files are added to the build of a Go operator.
    Inject,
    /// Nothing is added; calls and the log lines that name objects are read.
    Logs,
    /// Calls only.
    Wire,
}

impl TraceWish {
    /// Returns true if files may be added to the build.
    pub fn injects(self) -> bool {
        match self {
            TraceWish::Auto | TraceWish::Inject => true,
            TraceWish::Logs | TraceWish::Wire => false,
        }
    }

    /// Returns true if log lines that name an object belong to the reconcile of that object.
    pub fn reads_lines(self) -> bool {
        self != TraceWish::Wire
    }
}

/// The outcome for `zz_generated.deepcopy.go` files whose methods are not those of the types any more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Generate {
    /// They are written, as `make generate` does.
    #[default]
    Write,
    /// They take part in the build, and the project stays as it is.
    Overlay,
    /// They are left as they are.
    Off,
}

/// The way a program is built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Build {
    /// `go build` of one main package.
    Go {
        /// The package as the go command takes it, such as `./cmd`.
        package: String,
        /// Flags of the project's own build, without `-o` and `-ldflags`.
        flags: Vec<String>,
        /// The linker flags of the project's own build.
        ldflags: String,
    },
    /// A command of the user's.
    Command(Vec<String>),
    /// There is nothing to build.
    None,
}

/// The build, the command and the watched files of a program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The program in words, such as `go ./cmd` or `kopf run operator.py`.
    pub words: String,
    /// The place that names it: a file and a line or a key of it, in words.
    pub said_by: String,
    /// The working directory, absolute.
    pub dir: PathBuf,
    /// The way it is built.
    pub build: Build,
    /// The command with its arguments; for Go the binary is put before them.
    pub command: Vec<String>,
    /// Environment variables of build and program.
    pub env: BTreeMap<String, String>,
    /// Globs of the files whose save counts, relative to `dir`.
    pub watch: Vec<String>,
    /// True if it also reconciles the kinds of `watches.yaml`.
    pub charts: bool,
    /// The kinds that it reconciles; empty for all that no other program names.
    pub kinds: Vec<String>,
    /// The name of the lease that it takes, where its files say so.
    pub lease: Option<String>,
    /// The highest level of trace that the user allows.
    pub trace: TraceWish,
    /// The outcome for copy methods before a build.
    pub generate: Generate,
    /// How long it may take to stop.
    pub stop_after: Duration,
    /// True if `go vet` looks at the packages of saved files.
    pub vet: bool,
    /// Where a debugger waits for an editor, as `host:port`; `None` where a Go program runs without one.
    pub debug: Option<String>,
    /// The name under which the project's own build writes it, where that is said: containers start it under
    /// that name.
    pub binary: Option<String>,
}

/// The word in a command that stands for the path of the kubeconfig that opdev gives to the program.
pub const KUBECONFIG: &str = "$(KUBECONFIG)";

/// How long a program may take to stop unless the settings say otherwise.
pub(crate) const STOP_AFTER: Duration = Duration::from_secs(10);

impl Plan {
    /// The main package's folder of a Go program.
    pub fn main_package(&self) -> Option<PathBuf> {
        match &self.build {
            Build::Go { package, .. } => Some(self.dir.join(Path::new(package))),
            Build::Command(_) | Build::None => None,
        }
    }

    /// The commands that are run, whole: the program with the variables that are set for it, and its build,
    /// empty where there is none. This is what the user is asked about, so other words make another text.
    pub fn commands(&self) -> (String, String) {
        let variables = self.env.iter().map(|(name, value)| format!("{name}={}", shell::word(value)));
        let mut program: Vec<String> = Vec::new();
        let build = match &self.build {
            Build::Go { package, flags, ldflags } => {
                program.push(package.clone());
                let mut words = vec!["go".to_owned(), "build".to_owned()];
                words.extend(flags.iter().cloned());
                words.extend((!ldflags.is_empty()).then(|| format!("-ldflags={ldflags}")));
                words.push(package.clone());
                shell::line(&words)
            }
            Build::Command(words) => shell::line(words),
            Build::None => String::new(),
        };
        program.extend(self.command.iter().cloned());
        let program: Vec<String> = variables.chain([shell::line(&program)]).collect();
        (program.join(" "), build)
    }

    /// The build in words; `None` where there is nothing to build.
    pub fn build_words(&self) -> Option<String> {
        match &self.build {
            Build::Go { package, .. } => Some(format!("go build {package}")),
            Build::Command(words) => Some(words.join(" ")),
            Build::None => None,
        }
    }
}

/// The globs whose files matter to a program, by what its command or build looks like.
pub(crate) fn usual_globs(command: &[String], build: &Build) -> Vec<String> {
    let globs: &[&str] = match (build, command.first().map(String::as_str)) {
        (Build::Go { .. }, _) => &["**/*.go", "go.mod", "go.sum", "go.work"],
        (Build::Command(words), _) if words.first().is_some_and(|word| word == "cargo") => {
            &["**/*.rs", "**/Cargo.toml", "Cargo.lock"]
        }
        (_, Some("kopf" | "python" | "python3" | "uv" | "poetry")) => &["**/*.py", "pyproject.toml"],
        (_, Some("java" | "mvn" | "./mvnw" | "gradle" | "./gradlew")) => {
            &["src/**/*.java", "src/**/*.properties", "pom.xml", "*.gradle", "*.gradle.kts"]
        }
        (_, Some("node" | "npm" | "npx" | "deno" | "bun")) => &["**/*.ts", "**/*.js", "package.json"],
        (Build::Command(_) | Build::None, _) => {
            &["**/*.go", "**/*.rs", "**/*.py", "**/*.java", "**/*.ts", "**/*.js", "**/*.kt", "**/*.rb"]
        }
    };
    globs.iter().map(|glob| (*glob).to_owned()).collect()
}
