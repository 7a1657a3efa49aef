//! `exec` in simulated pods with configured answers: real kubectl over WebSocket and over SPDY.

use super::tools::Cluster;
use opdev_controlplane::Config;
use std::time::Duration;

const POD: &str = "apiVersion: v1
kind: Pod
metadata: {name: app}
spec: {containers: [{name: c, image: i}]}
";
const UNPLACED: &str = "apiVersion: v1
kind: Pod
metadata: {name: nowhere}
spec: {nodeSelector: {a: b}, containers: [{name: c, image: i}]}
";

async fn exec(cluster: &Cluster, sockets: bool, arguments: &[&str]) -> (i32, String, String) {
    let mut command = cluster.command("kubectl", &[&["exec"], arguments].concat());
    command.env("KUBECTL_REMOTE_COMMAND_WEBSOCKETS", sockets.to_string());
    let output = tokio::time::timeout(Duration::from_secs(60), command.output()).await.unwrap().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap_or(-1), text(output.stdout), text(output.stderr))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[cfg_attr(not(oracles), ignore = "needs OPDEV_ORACLES")]
async fn commands_have_the_answers_that_were_asked_for() {
    let mut config = Config::default();
    config.exec = ["redis-cli ping=PONG", "broken=exit:3"].iter().map(|text| text.parse().unwrap()).collect();
    let cluster = Cluster::start_with(config).await;
    cluster.apply(POD).await;
    cluster.apply(UNPLACED).await;
    cluster.kubectl("wait pod/app --for=condition=Ready --timeout=60s").await;
    for sockets in [true, false] {
        let answered = exec(&cluster, sockets, &["app", "--", "redis-cli", "ping"]).await;
        assert_eq!((answered.0, answered.1.as_str()), (0, "PONG\n"), "{sockets} {answered:?}");
        let failed = exec(&cluster, sockets, &["app", "--", "sh", "-c", "broken"]).await;
        assert_eq!((failed.0, failed.1.as_str()), (3, ""), "{sockets} {failed:?}");
        for (arguments, said) in [
            (&["app", "--", "ls"][..], "the embedded control plane simulates pods"),
            (&["app", "-c", "other", "--", "broken"], "container other is not valid for pod app"),
            (&["nowhere", "--", "broken"], "pod nowhere does not have a host assigned"),
            (&["nobody", "--", "broken"], "pods \"nobody\" not found"),
        ] {
            let refused = exec(&cluster, sockets, arguments).await;
            assert!(refused.0 == 1 && refused.2.contains(said), "{sockets} {refused:?}");
        }
    }
    let told = cluster.kubectl("get events --field-selector reason=Simulated -o name").await;
    assert_eq!(told.lines().count(), 2, "{told}");
}
