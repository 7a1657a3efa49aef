//! From one cluster to another on the same screen.

use super::leaving::{cluster, opdev_on};
use super::runs::lines;
use super::with_sample;
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use std::fs;
use std::net::TcpListener;
use std::path::Path;

const READY: &str = " 3/3";

/// Adds a context that leads to an address of this machine.
fn add_context(kubeconfig: &Path, name: &str, port: u16) {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let mut config: serde_json::Value = opdev_object::yaml::from_str(&text).unwrap();
    let mut add = |list: &str, entry| config[list].as_array_mut().unwrap().push(entry);
    let server = format!("http://127.0.0.1:{port}");
    add("clusters", serde_json::json!({"name": name, "cluster": {"server": server}}));
    let context = serde_json::json!({"cluster": name, "user": "nobody"});
    add("contexts", serde_json::json!({"name": name, "context": context}));
    add("users", serde_json::json!({"name": "nobody", "user": {}}));
    fs::write(kubeconfig, config.to_string()).unwrap();
}

/// Chooses a context, as who comes from k9s does.
fn choose(pty: &mut Pty, name: &str) {
    pty.keys(":");
    pty.wait_for("─ Commands ");
    pty.keys("ctx\r");
    pty.wait_for("Context");
    pty.keys(name);
    pty.wait_until("it alone", |screen| screen.contents().contains("1 of "));
    pty.keys("\r");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_context_is_chosen_and_the_screen_is_its_own() {
    let (_folder, project) = demo_project();
    let (plane, _listening, kubeconfig) = cluster(&project).await;
    // A server that refuses, and one that takes every connection and never says a word.
    let dead = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    add_context(&kubeconfig, "dead", dead);
    add_context(&kubeconfig, "silent", silent.local_addr().unwrap().port());
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    with_sample(&mut pty);

    // Nothing is left for what does not answer.
    choose(&mut pty, "dead");
    pty.wait_for("Leave opdev for context dead?");
    pty.keys("\r");
    pty.wait_for("opdev stays where it is (opdev)");
    pty.wait_without("Going to");
    pty.keys("\u{1b}");
    pty.wait_without("opdev stays where it is");
    choose(&mut pty, "silent");
    pty.wait_for("Leave opdev for");
    pty.keys("\r");
    pty.wait_for("Going to context silent");
    pty.keys("\u{1b}");
    pty.wait_without("Going to");
    pty.wait_until("the rows of before", |screen| lines(screen, READY) >= 2);

    // The embedded control plane is always there. It has its own rows and its own history.
    choose(&mut pty, "embedded");
    pty.wait_for("Leave opdev for the embedded control plane?");
    pty.keys("\r");
    pty.wait_until("the first screen of another cluster", |screen| {
        let text = screen.contents();
        text.contains(" · embedded ")
            && text.contains("to apply a sample")
            && !text.contains("memcached-sample 3/3")
    });
    assert!(!pty.screen().contains(" Running "), "{}", pty.screen());
    with_sample(&mut pty);

    // And back: what was left as it is, is there.
    choose(&mut pty, "opdev");
    pty.wait_until("the sample of the first cluster", |screen| {
        let text = screen.contents();
        text.contains(" · opdev v1.") && lines(screen, READY) >= 2
    });
    pty.keys("q");
    pty.wait_for("Leave opdev?");
    pty.keys("\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    assert_eq!(pty.raw().matches("\u{1b}[?1049h").count(), 1, "one screen for all of it");
    plane.stop().await;
}
