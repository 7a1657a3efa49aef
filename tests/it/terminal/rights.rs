//! The operator with its own rights on the screen: what is missing, the change that adds it, the cure.

use super::{SIZE, apply, quit};
use crate::inner_loop::demo_project;
use crate::pty::Pty;
use crate::service_account::scaffold;
use portable_pty::CommandBuilder;

const RULE: &str = "networking.k8s.io";

#[test]
fn a_missing_rule_is_shown_added_after_its_diff_and_cures() {
    let (_folder, project) = demo_project();
    scaffold(&project);
    let file = project.join("config/rbac/role.yaml");
    let before = std::fs::read_to_string(&file).unwrap();
    let mut command = CommandBuilder::new(env!("CARGO_BIN_EXE_opdev"));
    command.args(["run", "--embedded", "--as-serviceaccount"]);
    command.cwd(&project);
    let mut pty = Pty::start(command, SIZE);
    pty.wait_for_frame(SIZE);
    pty.wait_for("to apply a sample");
    apply(&mut pty, "example-ingress");
    // A read is refused before a write: each round adds what is known by then.
    let cured = |screen: &vt100::Screen| {
        let text = screen.contents();
        // Before the rule is there it only looks so, while the refusal is not on the screen yet.
        let ruled = std::fs::read_to_string(&file).is_ok_and(|text| text.contains(RULE));
        ruled && text.contains("Ingress ") && !text.contains("forbidden")
    };
    for round in 0..6 {
        pty.wait_until("a missing rule or a cure", |screen| {
            screen.contents().contains("missing in ClusterRole manager-role (config/rbac/role.yaml)")
                || cured(screen)
        });
        if !pty.screen().contains("missing in") {
            break;
        }
        assert!(round < 5, "no end of missing rules:\n{}", pty.screen());
        let known = std::fs::read_to_string(&file).unwrap();
        pty.keys("A");
        // The screen may still show a reconcile before the last rule.
        pty.wait_until("what changes, or a cure", |screen| {
            let text = screen.contents();
            text.contains("+++ b/config/rbac/role.yaml") && text.contains("[w] Write") || cured(screen)
        });
        if !pty.screen().contains("[w] Write") {
            break;
        }
        // A later round adds verbs to the rule that is there: its group may be above what is shown.
        assert!(pty.screen().contains("- ingresses"), "{}", pty.screen());
        assert_eq!(std::fs::read_to_string(&file).unwrap(), known, "nothing is written before it was seen");
        pty.keys("\r");
        pty.wait_without("[w] Write");
    }
    pty.wait_until("the ingress", cured);
    let after = std::fs::read_to_string(&file).unwrap();
    assert!(after.starts_with(&before) && after.contains(RULE), "{after}");
    quit(pty);
}
