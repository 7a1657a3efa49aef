//! The operator's own program on a cluster that goes away for a while: it goes on, and hears why there is no
//! answer.

use super::door::Door;
use crate::inner_loop::Opdev;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, ListParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use opdev_event::{Event, ProcessState};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_cluster_that_goes_away_is_unavailable_to_the_program_and_comes_back() {
    let door = Door::open().await;
    let folder = tempfile::tempdir().unwrap();
    let choice = door.choice(folder.path(), "opdev", &json!({}));
    let opdev = Opdev::start_against(choice, |root| {
        let settings = "operator:\n  command: [sh, op.sh]\n  stopAfter: 1s\n";
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        std::fs::write(root.join("op.sh"), "exec sleep 1000\n").unwrap();
    })
    .await;
    let pids = |opdev: &Opdev| -> Vec<u32> {
        let events = opdev.since(0).into_iter();
        let pids = events.filter_map(|event| match event {
            Event::ProcessChanged(run) => match run.state {
                ProcessState::Running { pid, .. } => Some(pid),
                _ => None,
            },
            _ => None,
        });
        pids.collect()
    };
    opdev
        .wait("the program", 0, |event| match event {
            Event::ProcessChanged(run) => matches!(run.state, ProcessState::Running { .. }).then_some(()),
            _ => None,
        })
        .await;
    // The test itself is the program.
    let kubeconfig = Kubeconfig::read_from(opdev.root.join(".opdev/process.kubeconfig")).unwrap();
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    // A refusal is to be seen, not tried again for a minute.
    config.default_retry = false;
    let maps: Api<ConfigMap> = Api::default_namespaced(Client::try_from(config).unwrap());
    maps.list(&ListParams::default()).await.unwrap();

    door.kill();
    let refused = maps.list(&ListParams::default()).await.unwrap_err();
    assert!(
        matches!(&refused, kube::Error::Api(status) if status.code == 503
            && status.message.contains("opdev has no answer from the cluster to GET /api/v1/namespaces/default/configmaps")),
        "{refused:?}"
    );
    door.restart().await;
    maps.list(&ListParams::default()).await.unwrap();
    assert_eq!(pids(&opdev).len(), 1, "one start is enough");
    opdev.stop().await;
}
