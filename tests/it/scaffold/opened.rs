//! `opdev run` on a project that another tool could not read.

use crate::inner_loop::Opdev;
use opdev_event::{Event, Level};
use std::fs;

#[tokio::test(flavor = "multi_thread")]
async fn keys_that_operator_sdk_does_not_know_are_told_with_their_lines() {
    // As kubebuilder 4.15 writes it: the key at the top and that of the webhook are newer than the Operator
    // SDK.
    let project = "cliVersion: 4.15.0\ndomain: my.domain\nlayout:\n- go.kubebuilder.io/v4\nnamespaced: true\nprojectName: demo\nresources:\n\
                   - api:\n    crdVersion: v1\n    namespaced: true\n  group: cache\n  kind: Memcached\n  version: v1alpha1\n  \
                   webhooks:\n    defaulting: true\n    defaultingPath: /x\nversion: \"3\"\n";
    let opdev = Opdev::start_after(|root| fs::write(root.join("PROJECT"), project).unwrap()).await;
    let told: Vec<String> = opdev
        .since(0)
        .into_iter()
        .filter_map(|event| match event {
            Event::Noticed(notice) if notice.level == Level::Warn => Some(notice.message),
            _ => None,
        })
        .filter(|message| message.contains("operator-sdk"))
        .collect();
    let sentence = |line: u32, key: &str| {
        format!(
            "PROJECT:{line}: operator-sdk v1.42.3 does not know the key `{key}` and refuses the file; kubebuilder 4.14 and newer \
             read it"
        )
    };
    assert_eq!(told, [sentence(5, "namespaced"), sentence(16, "defaultingPath")]);
    opdev.stop().await;
}
