//! Tells the manager when its connection is lost and when it is back.

use crate::manager::ManagerRequest;
use tokio::sync::{mpsc, watch};

/// Hands on what the monitor of the connection says, until either of them ends.
pub async fn follow_connection(mut lost: watch::Receiver<bool>, manager: mpsc::Sender<ManagerRequest>) {
    while lost.changed().await.is_ok() {
        let lost = *lost.borrow_and_update();
        if manager.send(ManagerRequest::Connection { lost }).await.is_err() {
            return;
        }
    }
}
