//! Programs that elect their leader by an annotation of an object, as older versions of client-go do, and
//! programs that look for their kubeconfig in a variable of their own. Skipped where there is no Python.

use super::program::{OPERATOR, with_operator};
use super::{told, torture};

const ARGS: [&str; 6] = ["--scenario", "recreate", "--only", "crash,restart", "--level", "quick"];

/// Goes before the loop of the operator: nothing is reconciled without the lead, and no lead ends by itself.
const ELECTION: &str = r#"
LEADER = "control-plane.alpha.kubernetes.io/leader"
HOLDER = json.dumps({"holderIdentity": "process-%d-%d" % (os.getpid(), time.time_ns()), "leaseDurationSeconds": 86400})
LOCKS = "/api/v1/namespaces/default/LOCK"

def leads():
    try:
        lock = call("GET", LOCKS + "/gadget-lead")
    except urllib.error.HTTPError as error:
        if error.code != 404:
            raise
        call("POST", LOCKS, {"metadata": {"name": "gadget-lead", "annotations": {LEADER: HOLDER}}})
        return True
    marks = lock["metadata"].setdefault("annotations", {})
    if LEADER in marks:
        return marks[LEADER] == HOLDER
    marks[LEADER] = HOLDER
    call("PUT", LOCKS + "/gadget-lead", lock)
    return True

while not leads():
    time.sleep(0.05)
"#;

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn the_lead_of_a_killed_program_in_an_older_lock_is_freed() {
    let start = OPERATOR.find("GADGETS = ").unwrap();
    for lock in ["configmaps", "endpoints"] {
        let election = ELECTION.replace("LOCK\"", &format!("{lock}\""));
        let operator = format!("{}{election}\n{}", &OPERATOR[..start], &OPERATOR[start..]);
        let (_folder, root) = with_operator(&operator, "  command: [python3, operator.py, --careful]\n");
        let output = torture(&root, &ARGS);
        let text = told(&output);
        assert_eq!(output.status.code(), Some(0), "{lock}: {text}");
        assert!(text.contains("restart") && text.contains("crash"), "{lock}: it was killed: {text}");
    }
}

#[test]
#[cfg_attr(not(python), ignore = "needs python3")]
fn a_variable_of_the_settings_names_the_kubeconfig() {
    let operator = OPERATOR.replace("os.environ[\"KUBECONFIG\"]", "os.environ[\"GADGET_CLUSTER\"]");
    assert_ne!(operator, OPERATOR);
    let command = "  command: [python3, operator.py, --careful]\n";
    let (_folder, root) =
        with_operator(&operator, &format!("{command}  env: {{GADGET_CLUSTER: $(KUBECONFIG)}}\n"));
    let output = torture(&root, &ARGS);
    assert_eq!(output.status.code(), Some(0), "{}", told(&output));

    let (_folder, root) = with_operator(&operator, command);
    let output = torture(&root, &ARGS);
    assert_eq!(output.status.code(), Some(3), "nothing leads it to the cluster: {}", told(&output));
}
