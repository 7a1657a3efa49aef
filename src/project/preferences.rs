//! The settings of the terminal: keys, theme and mouse, from the user's `config.yaml` and the project's
//! `opdev.yaml`. Reads them at the start and after every save. What keys and colours mean is the terminal's
//! business.

use jiff::Timestamp;
use opdev_event::sink::EventSink;
use opdev_event::{
    Binding, Borders, Diagnostic, Event, Place, Preferences, Severity, ThemeChoice, UserCommand,
};
use opdev_object::spelling::nearest;
use opdev_object::yaml::{self, Kind, Node};
use opdev_os::private_folder::PrivateFolder;
use opdev_os::read;
use opdev_os::user_config;
use opdev_os::watcher::{WatchSet, Watcher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Where settings of the terminal stand.
#[derive(Clone, Debug)]
pub struct Files {
    /// The user's own folder, such as `~/.config/opdev`.
    user: Option<PathBuf>,
    /// The folder for what is remembered, such as `~/.local/state/opdev`.
    state: Option<PathBuf>,
    /// The project's root.
    root: PathBuf,
}

/// The file with the borders between the panes, in the folder for what is remembered.
const SCREEN: &str = "screen.json";

/// Keeps the borders between the panes for the next start. They are worth no message where that does not
/// work.
pub fn remember(borders: Borders) {
    let Some(folder) = user_config::state_folder() else { return };
    let write = || -> anyhow::Result<()> {
        if let Some(above) = folder.parent() {
            std::fs::create_dir_all(above)?;
        }
        PrivateFolder::make(&folder)?.write(SCREEN, &serde_json::to_vec(&borders)?)
    };
    if let Err(error) = write() {
        tracing::warn!("the borders between panes are not remembered: {error:#}");
    }
}

/// The borders that were remembered; what cannot be read was never moved.
fn remembered(folder: &Path) -> Option<Borders> {
    let text = PrivateFolder::open(folder).ok()??.read(SCREEN).ok()??;
    serde_json::from_slice(&text).ok()
}

/// The sections of `config.yaml`.
const SECTIONS: [&str; 7] = ["allowContexts", "commands", "glyphs", "keys", "links", "mouse", "theme"];
/// The places of the project's file, first match wins.
const PROJECT: [&str; 2] = ["opdev.yaml", "config/opdev.yaml"];

impl Files {
    /// The user's folder as the environment names it, and a project.
    pub fn of(root: &Path) -> Files {
        Files { user: user_config::folder(), state: user_config::state_folder(), root: root.to_owned() }
    }

    /// Reads both files. The user's wins, binding by binding: it comes last.
    fn read(&self) -> Preferences {
        let mut all = Preferences { at: Timestamp::now(), ..Preferences::default() };
        all.borders = self.state.as_deref().and_then(remembered);
        let project = PROJECT.into_iter().find(|file| self.root.join(file).is_file());
        if let Some(file) = project {
            read(&self.root.join(file), file, false, &mut all);
        }
        if let Some(folder) = &self.user {
            let file = folder.join("config.yaml");
            read(&file, &short(&file), true, &mut all);
            if let Some(theme) = &mut all.theme {
                let file = folder.join("themes").join(format!("{}.yaml", theme.name));
                // A name is no path: it must not lead out of the folder.
                let plain = theme.name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '_'));
                let text = read::text(&file).ok().filter(|_| plain);
                theme.file = text.map(|text| (short(&file), text));
            }
        }
        all
    }

    fn folders(&self) -> WatchSet {
        let mut flat = vec![self.root.clone(), self.root.join("config")];
        if let Some(folder) = &self.user {
            flat.extend(folder.parent().map(Path::to_owned));
            flat.extend([folder.clone(), folder.join("themes")]);
        }
        flat.retain(|folder| folder.is_dir());
        WatchSet { flat: flat.into_iter().collect(), ..WatchSet::default() }
    }

    /// Tells what the files say, now and whenever that has changed. Ends with its caller.
    pub async fn follow(self, events: EventSink, quiet: Duration, poll: bool) {
        let mut known = Preferences::default();
        // The watcher of the project's files reports a refusal of the kernel.
        let watcher = Watcher::start(quiet, poll).or_else(|_| Watcher::start(quiet, true));
        let Ok(mut watcher) = watcher else { return };
        loop {
            let folders = self.folders();
            if let Err(error) = watcher.watch(&folders, true) {
                tracing::warn!("changes of the settings are not seen: {error:#}");
            }
            let now = self.read();
            if (Preferences { at: known.at, ..now.clone() }) != known {
                known = now.clone();
                events.emit(Event::PreferencesChanged(Arc::new(now))).await;
            }
            let batch = watcher.next(&self.root).await;
            tracing::debug!("looking at the settings after a change of {} files", batch.paths.len());
        }
    }
}

/// A path as the user writes it.
fn short(path: &Path) -> String {
    let home = std::env::var_os("HOME").map(PathBuf::from);
    match home.as_deref().and_then(|home| path.strip_prefix(home).ok()) {
        Some(rest) => format!("~/{}", rest.display()),
        None => path.display().to_string(),
    }
}

/// Adds what one file says. A file that does not exist says nothing.
fn read(path: &Path, name: &str, own: bool, all: &mut Preferences) {
    match read::text(path) {
        Ok(text) => File { name, own, text: &text }.read(all),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
        Err(error) => {
            let place = Place { file: name.to_owned(), line: 0, column: 0 };
            all.problems.push(problem(place, format!("cannot be read: {error}"), None));
        }
    }
}

fn problem(place: Place, message: String, hint: Option<String>) -> Diagnostic {
    Diagnostic { severity: Severity::Error, message, place: Some(place), excerpt: None, hint, kind: None }
}

/// One file.
struct File<'a> {
    name: &'a str,
    own: bool,
    text: &'a str,
}

impl File<'_> {
    fn read(&self, all: &mut Preferences) {
        let node = match yaml::parse(self.text) {
            Ok(node) => node,
            Err(error) => {
                let place = Place { file: self.name.to_owned(), line: error.line, column: error.column };
                return all.problems.push(problem(place, error.message, None));
            }
        };
        let sections = match &node.kind {
            Kind::Mapping(sections) => sections,
            Kind::Null => return,
            Kind::Bool(_)
            | Kind::Int(_)
            | Kind::Uint(_)
            | Kind::Float(_)
            | Kind::String(_)
            | Kind::Sequence(_) => {
                let message = "must be a map of settings, such as `theme: dark`".to_owned();
                return all.problems.push(problem(self.place(&node), message, None));
            }
        };
        for (key, value) in sections {
            match key.as_str() {
                Some("keys") => self.keys(value, all),
                Some("theme") => self.theme(value, all),
                Some("glyphs") => all.ascii = self.glyphs(value, all).or(all.ascii),
                Some("mouse") => all.mouse = self.flag("mouse", value, all).or(all.mouse),
                Some("links") if self.own => all.links = self.flag("links", value, all),
                Some("commands") if self.own => self.commands(value, all),
                // A cloned repository must not make a key run something.
                Some("commands") => {
                    let message = "commands are taken from your own config.yaml only".to_owned();
                    let hint = "write them into ~/.config/opdev/config.yaml".to_owned();
                    all.problems.push(problem(self.place(key), message, Some(hint)));
                }
                // Read once, at the start, by `user_settings`.
                Some("allowContexts") if self.own => {}
                // The project's file holds more than this; `settings` judges it.
                name if self.own => {
                    let name = name.unwrap_or_default();
                    let hint = nearest(name, SECTIONS).map(|near| format!("did you mean `{near}`?"));
                    let hint = hint.or_else(|| Some(format!("there are {}", SECTIONS.join(", "))));
                    all.problems.push(problem(self.place(key), format!("unknown setting `{name}`"), hint));
                }
                _ => {}
            }
        }
    }

    fn place(&self, node: &Node) -> Place {
        Place { file: self.name.to_owned(), line: node.line, column: node.column }
    }

    fn flag(&self, name: &str, value: &Node, all: &mut Preferences) -> Option<bool> {
        if let Kind::Bool(on) = value.kind {
            return Some(on);
        }
        all.problems.push(problem(self.place(value), format!("{name} is true or false"), None));
        None
    }

    fn glyphs(&self, value: &Node, all: &mut Preferences) -> Option<bool> {
        match value.to_text().as_deref() {
            Some("ascii") => Some(true),
            Some("unicode") => Some(false),
            _ => {
                let message = "glyphs is ascii or unicode".to_owned();
                all.problems.push(problem(self.place(value), message, None));
                None
            }
        }
    }

    fn theme(&self, value: &Node, all: &mut Preferences) {
        match value.to_text() {
            Some(name) => {
                let place = self.place(value);
                all.theme = Some(ThemeChoice { name, place, own: self.own, file: None });
            }
            None if matches!(value.kind, Kind::Null) => {}
            None => {
                let message = "theme is the name of a theme, such as `dark`".to_owned();
                all.problems.push(problem(self.place(value), message, None));
            }
        }
    }

    fn keys(&self, value: &Node, all: &mut Preferences) {
        let Kind::Mapping(bindings) = &value.kind else {
            if !matches!(value.kind, Kind::Null) {
                let message = "keys is a map from actions to keys, such as `zoom: f`".to_owned();
                all.problems.push(problem(self.place(value), message, None));
            }
            return;
        };
        for (action, keys) in bindings {
            let names: Option<Vec<String>> = match &keys.kind {
                Kind::Null => Some(Vec::new()),
                Kind::Sequence(items) => items.iter().map(|item| self.key(item)).collect(),
                Kind::Bool(_)
                | Kind::Int(_)
                | Kind::Uint(_)
                | Kind::Float(_)
                | Kind::String(_)
                | Kind::Mapping(_) => {
                    self.key(keys).map(|key| if key.is_empty() { Vec::new() } else { vec![key] })
                }
            };
            match (action.to_text(), names) {
                (Some(action_id), Some(names)) => {
                    all.keys.push(Binding { action: action_id, keys: names, place: self.place(action) });
                }
                _ => {
                    let message = "an action takes a key, a list of keys, or nothing".to_owned();
                    all.problems.push(problem(self.place(keys), message, None));
                }
            }
        }
    }

    fn commands(&self, value: &Node, all: &mut Preferences) {
        if !matches!(value.kind, Kind::Sequence(_) | Kind::Null) {
            let message = "commands is a list; each has a name and what it runs".to_owned();
            return all.problems.push(problem(self.place(value), message, None));
        }
        for item in value.items() {
            match self.command(item) {
                Ok(command) => all.commands.push(command),
                Err(problem) => all.problems.push(*problem),
            }
        }
    }

    fn command(&self, item: &Node) -> Result<UserCommand, Box<Diagnostic>> {
        let wrong = |node: &Node, message: &str| {
            let hint = "such as `{name: top, key: g t, run: kubectl top pod {name} -n {ns}, kinds: [Pod], writes: false}`";
            Box::new(problem(self.place(node), message.to_owned(), Some(hint.to_owned())))
        };
        let Kind::Mapping(fields) = &item.kind else {
            return Err(wrong(item, "a command has a name and what it runs"));
        };
        let mut command = UserCommand {
            name: String::new(),
            key: None,
            run: Vec::new(),
            shell: false,
            kinds: Vec::new(),
            confirm: false,
            background: false,
            writes: true,
            place: self.place(item),
        };
        let texts = |node: &Node| -> Option<Vec<String>> {
            let Kind::Sequence(items) = &node.kind else { return None };
            items.iter().map(Node::to_text).collect()
        };
        for (key, value) in fields {
            let flag = || {
                let Kind::Bool(on) = value.kind else { return Err(wrong(value, "this is true or false")) };
                Ok(on)
            };
            match key.as_str().unwrap_or_default() {
                "name" => command.name = value.to_text().unwrap_or_default(),
                "key" => command.key = self.key(value).filter(|key| !key.is_empty()),
                "run" => match (texts(value), value.to_text()) {
                    (Some(words), _) => (command.run, command.shell) = (words, false),
                    (None, Some(line)) => (command.run, command.shell) = (vec![line], true),
                    (None, None) => return Err(wrong(value, "run is a line for sh, or a list of words")),
                },
                "kinds" => {
                    command.kinds = texts(value).ok_or_else(|| wrong(value, "kinds is a list of kinds"))?;
                }
                "confirm" => command.confirm = flag()?,
                "background" => command.background = flag()?,
                "writes" => command.writes = flag()?,
                other => return Err(wrong(key, &format!("a command has no `{other}`"))),
            }
        }
        if command.name.trim().is_empty() {
            return Err(wrong(item, "a command needs a name"));
        }
        if command.run.iter().all(|word| word.trim().is_empty()) {
            return Err(wrong(item, "a command needs something to run"));
        }
        Ok(command)
    }

    /// The name of a key as written: to YAML 1.1 a bare `y` is true, to the user it is a key.
    fn key(&self, node: &Node) -> Option<String> {
        match &node.kind {
            Kind::String(text) => Some(text.clone()),
            Kind::Null | Kind::Sequence(_) | Kind::Mapping(_) => None,
            Kind::Bool(_) | Kind::Int(_) | Kind::Uint(_) | Kind::Float(_) => {
                let line = self.text.lines().nth(node.line.saturating_sub(1) as usize)?;
                let rest = line.chars().skip(node.column.saturating_sub(1) as usize);
                Some(rest.take_while(|c| !c.is_whitespace() && !matches!(c, ',' | ']' | '}' | '#')).collect())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn of(text: &str, own: bool) -> Preferences {
        let mut all = Preferences::default();
        File { name: "config.yaml", own, text }.read(&mut all);
        all
    }

    #[test]
    fn keys_are_read_as_written() {
        let all = of(
            "keys:\n  new: y\n  zoom: [n, 5, \"g g\"]\n  reload:\n  held: ''\ntheme: dark\nmouse: on\n",
            true,
        );
        assert_eq!(all.problems, []);
        let keys: Vec<(&str, Vec<&str>, u32)> = all
            .keys
            .iter()
            .map(|b| (b.action.as_str(), b.keys.iter().map(String::as_str).collect(), b.place.line))
            .collect();
        let wanted = [
            ("new", vec!["y"], 2),
            ("zoom", vec!["n", "5", "g g"], 3),
            ("reload", vec![], 4),
            ("held", vec![], 5),
        ];
        assert_eq!(keys, wanted);
        assert_eq!((all.theme.unwrap().name.as_str(), all.mouse), ("dark", Some(true)));
    }

    #[test]
    fn what_is_wrong_has_its_place() {
        let told = |text: &str, own: bool| {
            let all = of(text, own);
            all.problems
                .iter()
                .map(|p| {
                    format!(
                        "{}: {} {}",
                        p.place.as_ref().unwrap(),
                        p.message,
                        p.hint.clone().unwrap_or_default()
                    )
                })
                .collect::<Vec<_>>()
        };
        assert_eq!(
            told("thme: dark\n", true),
            ["config.yaml:1:1: unknown setting `thme` did you mean `theme`?"]
        );
        assert_eq!(told("watches: x\n", false), Vec::<String>::new());
        assert_eq!(told("mouse: often\n", true), ["config.yaml:1:8: mouse is true or false "]);
        assert_eq!(told("glyphs: emoji\n", true), ["config.yaml:1:9: glyphs is ascii or unicode "]);
        assert_eq!(told("keys: [a]\n", true).len(), 1);
        assert_eq!(told("keys: {zoom: {a: b}}\n", true).len(), 1);
        assert!(told("keys: {zoom: [\n", true)[0].starts_with("config.yaml:"));
    }

    #[test]
    fn commands_are_the_users_own() {
        let text = "commands:\n- {name: top, key: g t, run: 'kubectl top pod {name}', kinds: [Pod], writes: false}\n\
            - name: restart\n  run: [kubectl, rollout, restart, \"{kind}/{name}\"]\n  confirm: true\n  background: true\n";
        let all = of(text, true);
        assert_eq!(all.problems, []);
        let [top, restart] = all.commands.as_slice() else { panic!("{:?}", all.commands) };
        assert_eq!(
            (top.key.as_deref(), top.shell, top.writes, top.confirm),
            (Some("g t"), true, false, false)
        );
        assert_eq!((restart.run.len(), restart.shell, restart.writes), (4, false, true));
        assert!(restart.confirm && restart.background && restart.place.line == 3);
        // A repository's file brings none.
        let theirs = of(text, false);
        assert_eq!(theirs.commands, []);
        expect!["commands are taken from your own config.yaml only"].assert_eq(&theirs.problems[0].message);
        for (text, told) in [
            ("commands: top", "commands is a list"),
            ("commands: [{run: a}]", "needs a name"),
            ("commands: [{name: a}]", "something to run"),
            ("commands: [{name: a, run: b, conirm: true}]", "has no `conirm`"),
            ("commands: [{name: a, run: b, writes: maybe}]", "true or false"),
        ] {
            let all = of(text, true);
            assert!(all.problems[0].message.contains(told), "{text}: {:?}", all.problems);
        }
    }

    #[test]
    fn the_users_file_comes_last_and_brings_its_theme() {
        let folder = tempfile::tempdir().unwrap();
        let (root, user) = (folder.path().join("project"), folder.path().join("opdev"));
        std::fs::create_dir_all(&root).unwrap();
        std::fs::create_dir_all(user.join("themes")).unwrap();
        std::fs::write(root.join("opdev.yaml"), "keys: {zoom: f}\ntheme: light\nmouse: true\n").unwrap();
        std::fs::write(user.join("config.yaml"), "keys: {zoom: F}\ntheme: mine\n").unwrap();
        std::fs::write(user.join("themes/mine.yaml"), "text: red\n").unwrap();
        let state = folder.path().join("state");
        let borders = Borders { lists: Some(420), ..Borders::default() };
        let kept = serde_json::to_vec(&borders).unwrap();
        PrivateFolder::make(&state).unwrap().write(SCREEN, &kept).unwrap();
        let all = Files { user: Some(user), state: Some(state), root }.read();
        assert_eq!(all.borders, Some(borders));
        assert_eq!(all.keys.last().unwrap().keys, ["F"]);
        let theme = all.theme.unwrap();
        assert_eq!(
            (theme.name.as_str(), theme.own, theme.file.unwrap().1.as_str()),
            ("mine", true, "text: red\n")
        );
        assert_eq!(all.mouse, Some(true));
    }
}
