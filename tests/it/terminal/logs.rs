//! Logs of pods on the screen, from a cluster that has them.

use super::leaving::opdev_on;
use super::runs::lines;
use super::{SIZE, with_sample};
use crate::clusters::door::Door;
use crate::clusters::logs::{pods, restart, text};
use crate::inner_loop::demo_project;
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn several_pods_by_time_one_alone_and_the_run_before() {
    let (_folder, project) = demo_project();
    let door = Door::open().await;
    let kubelet = door.kubelet();
    let kubeconfig = door.kubeconfig(&project, "opdev", &json!({}));
    let mut pty = opdev_on(&project, &kubeconfig, &[]);
    pty.wait_for_frame(SIZE);
    with_sample(&mut pty);
    let all = pods(&door, 3).await;
    let container = text(&all[0], "/spec/containers/0/name");
    let names: Vec<String> = all.iter().map(|pod| text(pod, "/metadata/name")).collect();
    for name in &names {
        kubelet.write(name, &container, &format!("hello from {name}"));
    }
    pty.keys("Oz");
    pty.wait_for("3 containers");
    for name in &names {
        // By its end, by which they differ, and with the line in full.
        let end = name.rsplit('-').next().unwrap();
        pty.wait_for(&format!("{end} hello from {name}"));
    }
    kubelet.write(&names[1], &container, "\u{1b}[31mred\u{1b}[0m and live");
    pty.wait_for("and live");
    // One alone, in the order of the list.
    pty.keys("x");
    pty.wait_until("one log", |screen| lines(screen, "hello from ") == 1);
    pty.keys("xxx");
    pty.wait_for("3 containers");
    // The log of a container before its restart.
    pty.keys("t");
    pty.wait_for("No container of Memcached memcached-sample was restarted");
    kubelet.write(&names[0], &container, "out of memory");
    restart(&door, &all[0]).await;
    kubelet.restart(&names[0], &container);
    pty.wait_for("before the restart");
    pty.wait_for("out of memory");
    pty.wait_for("this run has ended");
    kubelet.write(&names[0], &container, "a new beginning");
    pty.keys("t");
    pty.wait_for("a new beginning");
    pty.wait_without("out of memory");
    pty.keys("q");
    pty.wait_for("Leave opdev?");
    pty.keys("\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}
