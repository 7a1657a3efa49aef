//! Logs of pods on a cluster that has them.

use super::door::Door;
use super::kubelet::Kubelet;
use crate::inner_loop::Opdev;
use opdev_event::{Event, LogSource, ObjectTask, ViewRequest};
use serde_json::{Value, json};

/// The names of the sample's pods once they run.
pub(crate) async fn pods(door: &Door, many: usize) -> Vec<Value> {
    let list = async {
        loop {
            let request = http::Request::get("/api/v1/namespaces/default/pods").body(Vec::new()).unwrap();
            let list: Value = door.plane.client().request(request).await.unwrap();
            let all = list["items"].as_array().unwrap();
            let running = |pod: &&Value| pod.pointer("/status/containerStatuses/0/state/running").is_some();
            if all.iter().filter(running).count() == many {
                return all.clone();
            }
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(30), list).await.expect("no running pods")
}

pub(crate) fn text(pod: &Value, pointer: &str) -> String {
    pod.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
}

/// The container was restarted, as a kubelet says it.
pub(crate) async fn restart(door: &Door, pod: &Value) {
    let mut statuses = pod["status"]["containerStatuses"].clone();
    statuses[0]["restartCount"] = json!(1);
    statuses[0]["lastState"] = json!({"terminated": {"exitCode": 137, "reason": "OOMKilled"}});
    let path = format!("/api/v1/namespaces/default/pods/{}/status", text(pod, "/metadata/name"));
    let patch = json!({"status": {"containerStatuses": statuses}});
    let request = http::Request::patch(path).header("content-type", "application/merge-patch+json");
    let request = request.body(serde_json::to_vec(&patch).unwrap()).unwrap();
    door.plane.client().request::<Value>(request).await.unwrap();
}

/// Waits until what was told of a log since a mark is this.
async fn told(opdev: &Opdev, mark: usize, source: &LogSource, wanted: &[&str]) {
    let what = format!("{wanted:?}");
    opdev
        .wait_for_state(&what, |events| {
            let mut lines = Vec::new();
            for event in &events[mark..] {
                if let Event::PodLog(log) = event
                    && log.source == *source
                {
                    lines.extend(log.lines.iter().map(|line| line.text.as_str()));
                    lines.extend(log.ended.as_deref());
                }
            }
            assert!(lines.len() <= wanted.len(), "{lines:?} where {wanted:?} was told");
            (lines == wanted).then_some(())
        })
        .await;
}

async fn world() -> (Door, Opdev, tempfile::TempDir, Kubelet) {
    let door = Door::open().await;
    let kubelet = door.kubelet();
    let folder = tempfile::tempdir().unwrap();
    let mut opdev = Opdev::start_against(door.choice(folder.path(), "opdev", &json!({})), |_| {}).await;
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    (door, opdev, folder, kubelet)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_goes_on_after_a_rotation_and_ends_with_a_restart() {
    let (door, mut opdev, _folder, kubelet) = world().await;
    let all = pods(&door, 3).await;
    let pod = &all[0];
    let (name, container) = (text(pod, "/metadata/name"), text(pod, "/spec/containers/0/name"));
    let source = LogSource {
        namespace: "default".to_owned(),
        pod: name.clone(),
        uid: Some(text(pod, "/metadata/uid")),
        container: container.clone(),
        restarts: 0,
        previous: false,
    };
    let mark = opdev.mark();
    for i in 0..250 {
        kubelet.write(&name, &container, &format!("before {i}"));
    }
    opdev.begin(ViewRequest::PodLogs { sources: vec![source.clone()] }).await;
    // No more than the newest lines of the past.
    let past: Vec<String> = (50..250).map(|i| format!("before {i}")).collect();
    let mut wanted: Vec<&str> = past.iter().map(String::as_str).collect();
    told(&opdev, mark, &source, &wanted).await;
    kubelet.write(&name, &container, "live");
    wanted.push("live");
    told(&opdev, mark, &source, &wanted).await;
    // Twice the same line is two lines, and neither comes again after the log was opened anew.
    for _ in 0..2 {
        kubelet.write(&name, &container, "the same");
    }
    wanted.extend(["the same"; 2]);
    told(&opdev, mark, &source, &wanted).await;
    kubelet.rotate(&name, &container);
    // A line that is written before the old file is released may still come through it.
    kubelet.until_asked(&name, 2).await;
    kubelet.write(&name, &container, "after the rotation");
    wanted.push("after the rotation");
    told(&opdev, mark, &source, &wanted).await;
    let asked = kubelet.asked(&name);
    let again = asked.last().unwrap();
    assert!(asked.len() == 2 && again.contains("sinceTime=") && !again.contains("tailLines"), "{asked:?}");

    restart(&door, pod).await;
    kubelet.restart(&name, &container);
    wanted.push("the container was restarted");
    told(&opdev, mark, &source, &wanted).await;
    // The run before and the one of now are two logs.
    let before = LogSource { restarts: 1, previous: true, ..source.clone() };
    let now = LogSource { restarts: 1, ..source };
    kubelet.write(&name, &container, "once more");
    let mark = opdev.mark();
    opdev.begin(ViewRequest::PodLogs { sources: vec![before.clone(), now.clone()] }).await;
    told(&opdev, mark, &now, &["once more"]).await;
    let mut old = wanted[wanted.len() - 201..wanted.len() - 1].to_vec();
    old.push("this run has ended");
    told(&opdev, mark, &before, &old).await;
    assert!(kubelet.asked(&name).iter().any(|query| query.contains("previous=true")));
    opdev.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_goes_on_when_the_api_server_comes_back() {
    let (door, mut opdev, _folder, kubelet) = world().await;
    let all = pods(&door, 3).await;
    let (name, container) = (text(&all[0], "/metadata/name"), text(&all[0], "/spec/containers/0/name"));
    let source = LogSource {
        namespace: "default".to_owned(),
        pod: name.clone(),
        uid: None,
        container: container.clone(),
        restarts: 0,
        previous: false,
    };
    let mark = opdev.mark();
    kubelet.write(&name, &container, "one");
    opdev.begin(ViewRequest::PodLogs { sources: vec![source.clone()] }).await;
    told(&opdev, mark, &source, &["one"]).await;
    let mark = opdev.mark();
    door.kill();
    let broken = |event: &Event| match event {
        Event::PodLog(log) => log.ended.clone().filter(|why| why.contains("it is opened again")),
        _ => None,
    };
    opdev.wait("a word about it", mark, broken).await;
    kubelet.write(&name, &container, "while nobody listened");
    let mark = opdev.mark();
    door.restart().await;
    let line = |event: &Event| match event {
        Event::PodLog(log) => log.lines.first().map(|line| (line.text.clone(), log.ended.clone())),
        _ => None,
    };
    let (text, ended) = opdev.wait("the line", mark, line).await;
    assert_eq!((text.as_str(), ended), ("while nobody listened", None));
    opdev.stop().await;
}
