//! The numbers of the inner loop: from process start to a ready API, and from a saved template to the last
//! write. `cargo bench --bench inner_loop` prints medians of 20; absolute times, so compare only runs of one
//! machine.
#![allow(clippy::unwrap_used, clippy::print_stdout, dead_code, missing_docs)]

#[path = "../tests/it/inner_loop.rs"]
mod inner_loop;

use inner_loop::Opdev;
use opdev_event::{Event, ObjectTask, Outcome};
use std::time::{Duration, Instant};

#[path = "../tests/it/gadget.rs"]
mod gadget;

const RUNS: usize = 20;

fn main() {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        print("control plane started, in process", &plane_starts().await);
        print("inner loop: start to API ready", &api_ready().await);
        print("saved template to last acknowledged write", &saves().await);
        let (established, reconciled) = saved_types().await;
        print("saved type to established CRD", &established);
        print("saved type to reconciler on the new type", &reconciled);
        print("saved reconciler to reconciled", &saved_programs().await);
    });
}

fn print(what: &str, times: &[Duration]) {
    let mut sorted = times.to_vec();
    sorted.sort();
    let ms = |at: usize| sorted[at].as_secs_f64() * 1e3;
    println!(
        "{what:<45} median {:7.2} ms   min {:7.2}   max {:7.2}",
        ms(sorted.len() / 2),
        ms(0),
        ms(sorted.len() - 1)
    );
}

async fn plane_starts() -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let begun = Instant::now();
        let plane = opdev_controlplane::ControlPlane::start().await.unwrap();
        plane.client().apiserver_version().await.unwrap();
        times.push(begun.elapsed());
        plane.stop().await;
    }
    times
}

async fn api_ready() -> Vec<Duration> {
    let mut times = Vec::new();
    for _ in 0..RUNS {
        let opdev = Opdev::start().await;
        let ready = opdev.wait("the start", 0, |event| match event {
            Event::Started(started) => Some(started.api_ready),
            _ => None,
        });
        times.push(ready.await);
        opdev.stop().await;
    }
    times
}

async fn saves() -> Vec<Duration> {
    let mut opdev = Opdev::start().await;
    let mark = opdev.mark();
    opdev.ask(ObjectTask::Apply { path: "samples/memcached.yaml".to_owned() }).await;
    opdev.reconcile("an install", mark, |reconcile| reconcile.outcome == Outcome::Installed).await;
    let mut times = Vec::new();
    for run in 0..RUNS {
        let mark = opdev.mark();
        let (old, new) = if run % 2 == 0 { ("conn-limit", "max-conns") } else { ("max-conns", "conn-limit") };
        opdev.edit("charts/memcached/templates/deployment.yaml", |text| text.replace(old, new));
        let took = opdev.wait("the reload", mark, |event| match event {
            Event::ReloadSettled(settled) => Some(settled.took),
            _ => None,
        });
        times.push(took.await);
    }
    opdev.stop().await;
    times
}

/// A field more, or less, on each save.
async fn saved_types() -> (Vec<Duration>, Vec<Duration>) {
    let opdev = gadget::start().await;
    let (mut established, mut reconciled) = (Vec::new(), Vec::new());
    for run in 0..RUNS {
        let mark = opdev.mark();
        let (old, new) = (
            "}\n\n// GadgetStatus",
            format!(
                "\n\t// +optional\n\tExtra{run} string `json:\"extra{run},omitempty\"`\n}}\n\n// GadgetStatus"
            ),
        );
        opdev.edit(gadget::TYPES, |text| text.replace(old, &new));
        let took = opdev.wait("the type", mark, |event| match event {
            Event::TypeChanged(changed) => Some(changed.took),
            _ => None,
        });
        established.push(took.await);
        reconciled.push(settled(&opdev, mark).await);
    }
    opdev.stop().await;
    (established, reconciled)
}

/// A child's data changes on each save.
async fn saved_programs() -> Vec<Duration> {
    let opdev = gadget::start().await;
    let mut times = Vec::new();
    for run in 0..RUNS {
        let mark = opdev.mark();
        let (old, new) = (format!("\"two\", {}", run + 2), format!("\"two\", {}", run + 3));
        opdev.edit(gadget::RECONCILER, |text| text.replace(&old, &new));
        times.push(settled(&opdev, mark).await);
    }
    opdev.stop().await;
    times
}

async fn settled(opdev: &Opdev, mark: usize) -> Duration {
    opdev
        .wait("the reload", mark, |event| match event {
            Event::ReloadSettled(settled) => Some(settled.took),
            _ => None,
        })
        .await
}
