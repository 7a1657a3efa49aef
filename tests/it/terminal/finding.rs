//! Finding in a terminal: palette, jump, filters, order, help, namespaces, keys bound anew while it runs,
//! storms of sizes, and a terminal that goes away.

use super::runs::{edit, lines, opdev};
use super::{SIZE, apply, quit};
use crate::inner_loop::demo_project;
use crate::masked::masked;
use crate::pty::Pty;
use expect_test::expect;
use portable_pty::CommandBuilder;
use rustix::process::Signal;
use std::fs;
use std::path::Path;

/// `opdev run --embedded` with settings of one's own, which live below `home`.
fn opdev_with_settings(project: &Path, home: &Path) -> Pty {
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded"]);
    command.cwd(project);
    command.env("XDG_CONFIG_HOME", home);
    Pty::start(command, SIZE)
}

#[test]
fn things_are_found_by_a_few_letters() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "memcached-sample");
    pty.wait_until("running pods", |screen| lines(screen, " Running ") == 3);

    // The palette: by name, with keys, and why not.
    pty.keys(":");
    pty.wait_for("─ Commands ");
    pty.keys("held");
    pty.wait_for("not now: no change needs your answer");
    pty.keys("\u{1b}");
    pty.wait_without("─ Commands ");
    pty.keys(":apply\r");
    pty.wait_for("type to narrow");
    pty.keys("\u{1b}");
    pty.wait_without("type to narrow");

    // The jump: to a child of the selected one, and on from where it was left.
    pty.keys("\u{10}");
    pty.wait_for("Go to anything");
    pty.keys("service memcached-sample\r");
    pty.wait_for("▸ ○ Service memcached-sample");
    pty.keys("\u{10}");
    pty.wait_for("service memcached-sample");
    pty.keys("\u{1b}");
    pty.wait_without("Go to anything");

    // Words, expressions, and what cannot be one.
    pty.keys("1/");
    pty.wait_for("filter custom resources:");
    pty.keys("/(/");
    pty.wait_for("is no regular expression");
    pty.keys("\u{15}!sample\r");
    pty.wait_for("No custom resource passes the filter");
    pty.keys("\u{1b}");
    pty.wait_for("● Memcached");

    // The order, with its mark; a namespace; all of them.
    pty.keys("S");
    pty.wait_for("NAME↑");
    pty.keys("I");
    pty.wait_for("NAME↓");
    pty.keys(":ns default\r");
    pty.wait_for("n:default");
    pty.keys("gn");
    pty.wait_for("all namespaces");
    pty.keys("\r");
    pty.wait_without("n:default");

    // The help is searched.
    pty.keys("?/");
    pty.wait_for("esc shows all");
    pty.keys("replicas");
    pty.wait_for("Set the replicas");
    // Two at once would be alt-esc.
    pty.keys("\u{1b}");
    pty.wait_for("/ finds");
    pty.keys("\u{1b}");
    pty.wait_without("/ finds");
    quit(pty);
}

#[test]
fn places_are_links_where_the_terminal_knows_them_and_any_file_opens_in_the_editor() {
    let link = "\u{1b}]8;;file://";
    for (known, settings) in
        [(true, None), (false, None), (true, Some("links: false\n")), (false, Some("links: true\n"))]
    {
        let (folder, project) = demo_project();
        let template = project.join("charts/memcached/templates/deployment.yaml");
        let editor = project.join("editor.sh");
        fs::write(&editor, "echo \"$@\" >> \"$(dirname \"$0\")/opened\"; echo editor-was-here\n").unwrap();
        let home = folder.path().join("settings");
        fs::create_dir_all(home.join("opdev")).unwrap();
        fs::write(home.join("opdev/config.yaml"), settings.unwrap_or_default()).unwrap();
        let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
        command.args(["run", "--embedded"]);
        command.cwd(&project);
        for name in ["VTE_VERSION", "KONSOLE_VERSION", "WT_SESSION", "TMUX", "TERM_PROGRAM"] {
            command.env_remove(name);
        }
        if known {
            command.env("TERM_PROGRAM", "WezTerm");
        }
        command.env("KUBE_EDITOR", format!("sh {}", editor.display()));
        command.env("XDG_CONFIG_HOME", &home);
        let mut pty = Pty::start(command, SIZE);
        pty.wait_for("to apply a sample");
        edit(&template, |text| text.replacen("{{", "{{ nope", 1));
        pty.wait_for("✗ deployment.yaml:");
        pty.wait_for("ctrl-o opens");
        // Links follow the frame; what another key shows comes after them.
        pty.keys("?");
        pty.wait_for("esc closes");
        pty.keys("\u{1b}");
        pty.wait_without("esc closes");
        let on = settings.map_or(known, |text| text.contains("true"));
        let raw = pty.raw();
        assert_eq!(raw.contains(link), on, "{known} {settings:?}");
        if on {
            // The cells of the place are written once more between the two ends of the link.
            let (_, after) = raw.split_once(&format!("{link}{}#", template.display())).unwrap();
            let (inside, _) = after.split_once("\u{1b}]8;;\u{1b}\\").unwrap();
            assert!(inside.contains("deployment.yaml:"), "{inside:?}");
        }
        // The screen is the same, whatever the terminal knows.
        assert!(!pty.screen().contains("file://"), "{}", pty.screen());
        pty.keys("\u{f}");
        let opened = || fs::read_to_string(project.join("opened")).unwrap_or_default();
        pty.wait_for_written("editor-was-here", 1);
        expect![[r#"
            TMP/demo/charts/memcached/templates/deployment.yaml
        "#]]
        .assert_eq(&masked(&opened()));
        // A key that is typed before the frame is back would be the editor's.
        pty.wait_for("ctrl-o opens");
        pty.keys("\u{10}");
        pty.wait_for("Go to anything");
        pty.keys("podset types");
        pty.wait_for("opens in your editor");
        pty.keys("\r");
        pty.wait_for_written("editor-was-here", 2);
        expect![[r#"
            TMP/demo/charts/memcached/templates/deployment.yaml
            TMP/demo/config/types/app/v1alpha1/podset_types.go
        "#]]
        .assert_eq(&masked(&opened()));
        pty.wait_for("ctrl-o opens");
        quit(pty);
    }
}

#[test]
fn the_log_is_searched_and_held() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys("L");
    pty.wait_for("[Log]");
    pty.keys("\u{13}");
    pty.wait_for(" held");
    pty.keys("\u{13}");
    pty.wait_without(" held");
    pty.keys("4\\");
    pty.wait_for("find:");
    pty.keys("no-such-line\r");
    pty.wait_for("is not in these lines");
    pty.keys("\u{1b}");
    pty.wait_without("no-such-line");
    quit(pty);
}

#[test]
fn keys_and_themes_follow_the_settings_while_it_runs() {
    let (folder, project) = demo_project();
    let home = folder.path().join("home");
    fs::create_dir_all(home.join("opdev")).unwrap();
    let config = home.join("opdev/config.yaml");
    fs::write(&config, "keys:\n  help: f1\n  quit: [Q, ctrl-q]\n").unwrap();
    let mut pty = opdev_with_settings(&project, &home);
    pty.wait_for("to apply a sample");
    pty.wait_for("f1 help");
    pty.keys("\u{1b}OP");
    pty.wait_for("all keys");
    pty.keys("\u{1b}");
    pty.wait_without("all keys");

    // A mistake is told with its place, and the keys stay.
    fs::write(&config, "keys:\n  help: f1\n  quitt: Q\n").unwrap();
    pty.wait_for("config.yaml:3:3: there is no action `quitt`");
    pty.wait_for("did you mean `quit`?");
    pty.wait_for("f1 help");
    fs::write(&config, "keys:\n  help: f2\ntheme: dark\n").unwrap();
    pty.wait_without("there is no action");
    pty.wait_for("f2 help");
    pty.keys("\u{1b}OQ");
    pty.wait_for("all keys");
    pty.keys("\u{1b}");
    pty.wait_without("all keys");
    assert!(pty.raw().contains("38;2;"), "the dark theme has colours of its own");

    // The project's own file has its say, too, and the user's wins.
    fs::write(project.join("opdev.yaml"), "keys:\n  help: f3\n  apply: A\n").unwrap();
    pty.wait_for("A apply");
    pty.wait_for("f2 help");
    quit(pty);
}

#[test]
fn the_mouse_is_reported_only_where_it_is_wanted() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    assert!(!pty.raw().contains("\u{1b}[?1000h"), "off by default, so that text can be selected");
    pty.keys("\u{1b}m");
    pty.wait_until("a mouse", |screen| screen.mouse_protocol_mode() != vt100::MouseProtocolMode::None);
    // A click on the pane of reconciles.
    pty.keys("\u{1b}[<0;80;8M\u{1b}[<0;80;8m");
    pty.wait_for("▸3 Reconciles");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    assert!(pty.raw().contains("\u{1b}[?1000l"), "the mouse is given back");
}

#[test]
fn a_storm_of_sizes_ends_in_a_whole_screen() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "memcached-sample");
    for round in 0..60_u16 {
        pty.resize((20 + round * 7 % 200, 5 + round * 5 % 60));
        if round % 7 == 0 {
            pty.keys("\tj\u{1b}[B");
        }
    }
    for (size, text) in [((40, 10), "[1 CRs]"), ((80, 24), "Custom resources"), (SIZE, "Owned")] {
        pty.resize(size);
        pty.wait_for_frame(size);
        pty.keys("1");
        pty.wait_for(text);
    }
    pty.wait_until("running pods", |screen| lines(screen, " Running ") == 3);
    quit(pty);
}

#[test]
fn a_key_that_comes_with_a_change_of_size_is_not_lost() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    for round in 0..40_u16 {
        pty.resize((90 + round % 20, 30));
        pty.keys("?");
        pty.wait_for("esc closes");
        pty.resize((110 + round % 20, 36));
        pty.keys("\r");
        pty.wait_without("esc closes");
    }
    quit(pty);
}

#[test]
fn a_terminal_that_goes_away_ends_the_run() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    pty.keys(":");
    pty.wait_for("─ Commands ");
    pty.signal(Signal::HUP);
    pty.wait_exit();
    pty.assert_restored();
}

/// The API server's own tables, against the embedded control plane: opened by any of a kind's names, kept
/// current, acted in, left; and a name that is none.
#[test]
fn any_kind_has_a_table() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "memcached-sample");
    pty.wait_until("running pods", |screen| lines(screen, " Running ") == 3);

    pty.keys(":po\r");
    pty.wait_until("three rows with the server's columns", |screen| {
        let text = screen.contents();
        text.contains("RESTARTS") && text.contains("pods · 3") && lines(screen, "1/1") == 3
    });
    // The selected object is read whole.
    pty.keys("\r");
    pty.wait_for("generateName:");
    pty.keys("\u{1b}");
    // A pod that is deleted here is made anew, and the table follows.
    let name = |screen: &vt100::Screen| {
        let text = screen.contents();
        let line = text
            .lines()
            .find(|line| line.contains("▸ ") && line.contains("1/1"))
            .unwrap_or_default()
            .to_owned();
        line.split_whitespace().find(|word| word.starts_with("memcached-sample-")).map(str::to_owned)
    };
    let mut before = None;
    pty.wait_until("a selected pod", |screen| {
        before = name(screen);
        before.is_some()
    });
    let before = before.unwrap();
    pty.keys("D");
    pty.wait_for("[y] Delete");
    pty.keys("y");
    pty.wait_until("another pod in its place", |screen| {
        let text = screen.contents();
        text.contains("pods · 3") && lines(screen, &before) == 0 && lines(screen, "1/1") == 3
    });

    // A kind that nothing else of the screen reads, and one that is none.
    pty.keys(":crd\r");
    pty.wait_for("memcacheds.cache.my.domain");
    pty.wait_for("CREATED AT");
    pty.keys(":deploymnets\r");
    pty.wait_for("the API server serves no kind deploymnets; near it is deployments.apps");
    pty.keys("\u{1b}");
    pty.wait_for("Custom resources");
    quit(pty);
}

/// Commands of the user's own settings: one in the place of the screen, one beside it; and what a pane shows,
/// saved.
#[test]
fn own_commands_run_on_what_is_selected() {
    let (folder, project) = demo_project();
    let home = folder.path().join("config");
    fs::create_dir_all(home.join("opdev")).unwrap();
    let settings = "commands:\n- name: greet\n  key: ctrl-t\n  run: echo hello-{kind}-{name}; exit 3\n\
        - name: quiet\n  key: ctrl-y\n  run: [sh, -c, 'echo beside-$1', sh, '{name}']\n  background: true\n";
    fs::write(home.join("opdev/config.yaml"), settings).unwrap();
    let mut pty = opdev_with_settings(&project, &home);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "memcached-sample");
    pty.wait_until("running pods", |screen| lines(screen, " Running ") == 3);
    pty.keys("1\u{14}");
    pty.wait_for("hello-Memcached-memcached-sample");
    pty.wait_for("ended with 3; enter goes back to opdev");
    pty.keys("\r");
    pty.wait_for("Custom resources");
    pty.wait_without("enter goes back");
    pty.keys("\u{19}oL");
    pty.wait_for("beside-memcached-sample");
    pty.keys("1y");
    pty.wait_for("kind: Memcached");
    pty.keys(":save saved/mine.yaml\r");
    pty.wait_for("saved as saved/mine.yaml");
    assert!(fs::read_to_string(project.join("saved/mine.yaml")).unwrap().contains("kind: Memcached"));
    pty.keys(":save saved/mine.yaml\r");
    pty.wait_for("exists already, and stays as it is");
    pty.keys("\u{1b}");
    pty.wait_without("exists already");
    pty.keys("gw");
    pty.wait_for("saved as .opdev/saved/");
    quit(pty);
}
