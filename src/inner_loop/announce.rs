//! The first notices about a cluster: warnings about settings, and how far the cluster is protected.

use opdev_cluster::Connection;
use opdev_event::sink::EventSink;
use opdev_event::{Cluster, Event, Level, Notice, Protection};
use opdev_os::small_file::small_text;
use opdev_project::Project;

use jiff::Timestamp;

/// Says what the user has to hear first about a cluster and the project.
pub(super) async fn announce(project: &Project, connection: &Connection, events: &EventSink) {
    for diagnostic in &project.diagnostics {
        let place = diagnostic.place.as_ref().map(ToString::to_string).unwrap_or_default();
        let message = format!("{place}: {}", diagnostic.message);
        notice(events, Level::Warn, message, diagnostic.hint.clone()).await;
    }
    for told in for_other_tools(project) {
        notice(events, Level::Warn, told, None).await;
    }
    if let Some(warning) = &connection.warning {
        notice(events, Level::Warn, warning.clone(), None).await;
    }
    if let Some(found) = &connection.certificates {
        let message =
            format!("webhook servers on this machine find tls.crt and tls.key in {}", found.folder.display());
        notice(events, Level::Info, message, None).await;
    }
    let Cluster { name, marks, server, protection, .. } = &connection.cluster;
    match protection {
        Protection::Local => {}
        Protection::ReadOnly => {
            let message = format!(
                "read-only: the context {name} is not clearly local ({marks}), so opdev neither applies CRDs nor reconciles"
            );
            let hint = format!(
                "if this cluster is yours to change, unlock it with its name (key U), start opdev with --allow-context \
                 {name}, or add it to allowContexts in your own config.yaml"
            );
            notice(events, Level::Warn, message, Some(hint)).await;
        }
        Protection::Confirmed => {
            let message = format!(
                "the context {name} is not clearly local ({marks}); --allow-context or your own config.yaml allows writes to it"
            );
            notice(events, Level::Warn, message, None).await;
        }
    }
    if connection.cluster.insecure {
        let message = format!(
            "the certificate of {server} goes unchecked: anybody in between can read and change what is sent"
        );
        let hint = format!("remove insecure-skip-tls-verify from the cluster of context {name}");
        notice(events, Level::Warn, message, Some(hint)).await;
    }
}

/// Entries that another tool could not read in the project's `PROJECT`: opdev and newer releases of
/// kubebuilder can.
fn for_other_tools(project: &Project) -> Vec<String> {
    let text = small_text(&project.root.join("PROJECT")).unwrap_or_default();
    opdev_scaffold::unreadable_for_operator_sdk(&text)
}

/// Tells the user something.
pub(super) async fn notice(events: &EventSink, level: Level, message: String, hint: Option<String>) {
    let notice = Notice { at: Timestamp::now(), level, message, hint, object: None };
    events.emit(Event::Noticed(notice)).await;
}
