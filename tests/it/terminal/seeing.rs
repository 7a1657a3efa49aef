//! An object and a reconcile in a terminal: opened, walked through, resized.

use super::SIZE;
use super::runs::{lines, opdev};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use opdev_controlplane::{ControlPlane, Listen};
use portable_pty::CommandBuilder;

fn apply(pty: &mut Pty) {
    pty.wait_for("to apply a sample");
    pty.keys("a");
    pty.wait_for("type to narrow");
    pty.keys("memcached-sample\r");
    pty.wait_until("three running pods, installed", |screen| {
        lines(screen, " Running ") == 3 && lines(screen, "created ") >= 1
    });
}

#[test]
fn a_reconcile_and_an_object_are_looked_into() {
    let (_folder, project) = demo_project();
    let mut pty = opdev(&project);
    apply(&mut pty);

    // The reconcile that installed, opened in place: cause, queue, steps, calls, what it wrote. It may have
    // asked what the API server serves, too.
    let tall = (SIZE.0, SIZE.1 + 10);
    pty.resize(tall);
    pty.wait_for_frame(tall);
    pty.keys("3Gz\r");
    pty.wait_until("the waterfall", |screen| {
        let text = screen.contents();
        ["⚑", "in the queue", "render", "patch", "+ Deployment memcached-sample", "~ status", "↻ again in"]
            .iter()
            .all(|part| text.contains(part))
    });
    for size in [(80, 24), (40, 10), SIZE] {
        pty.resize(size);
        pty.wait_for_frame(size);
    }
    pty.wait_for("in the queue");
    pty.keys("\u{1b}[D");
    pty.wait_without("in the queue");

    // The object: what it waits for, its conditions, its versions and who wrote them, the owners of its
    // fields.
    pty.keys("d");
    pty.wait_for("✓ nothing; it is reconciled again at");
    pty.keys("C");
    pty.wait_until("conditions over time", |screen| lines(screen, "█ True") >= 2);
    pty.keys("V");
    pty.wait_for("by reconcile #");
    pty.keys("<<<<<<<<");
    pty.wait_for("The first version that opdev has seen of it.");
    pty.keys(">");
    pty.wait_for("+   finalizers:");
    pty.keys("b");
    pty.wait_for("opdev (status) │ status:");
    pty.keys("L");
    // Applied right at the start it may be the start itself that the first reconcile is for.
    pty.wait_until("lines by reconcile", |screen| {
        let text = screen.contents();
        text.contains(" · created (you)") || text.contains(" · start of opdev")
    });
    pty.keys("O");
    pty.wait_for("runs no containers, so its pods have no logs");

    // A pod that was deleted stays for a while.
    pty.keys("z2");
    pty.wait_for("Owned");
    pty.keys("jj");
    pty.keys("D");
    pty.wait_for("[n] Keep it");
    pty.keys("y");
    pty.wait_for("1 deleted (");
    pty.keys("X");
    pty.wait_for("○ Pod");
    pty.keys("Gd");
    pty.wait_for("this is how it was last");
    pty.keys("D");
    pty.wait_for("what shows is how it was last");
    pty.keys("q");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
}

/// On another API server pods may have logs; this one's answer is told as it is.
#[test]
fn the_logs_of_pods_are_asked_for_where_the_cluster_may_have_them() {
    let (_folder, project) = demo_project();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let (plane, listening) = runtime.block_on(async {
        let plane = ControlPlane::start().await.unwrap();
        let listening = plane.listen(Listen::default()).await.unwrap();
        (plane, listening)
    });
    let kubeconfig = project.join("elsewhere.kubeconfig");
    std::fs::write(&kubeconfig, &listening.kubeconfig).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--kubeconfig", kubeconfig.to_str().unwrap()]);
    command.cwd(&project);
    let mut pty = Pty::start(command, SIZE);
    apply(&mut pty);
    pty.keys("O");
    pty.wait_until("the answer about three logs", |screen| lines(screen, ": pods/log of ") == 3);
    pty.keys("xz");
    pty.wait_until("one log alone", |screen| lines(screen, ": pods/log of ") == 1);
    pty.keys("q");
    pty.wait_for("▸ Leave as is");
    pty.keys("\r");
    assert!(pty.wait_exit().success(), "{}", pty.screen());
    pty.assert_restored();
    runtime.block_on(async {
        drop(listening);
        plane.stop().await;
    });
}
