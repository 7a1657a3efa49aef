//! Follows the files of the project, also after a bug.

use super::announce::notice;
use super::survive::survive;
use crate::reload::Reloader;
use opdev_event::Level;
use opdev_project::files;
use opdev_sources::load::Loaded;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// How often the watching of files begins anew after a bug, each time after a longer pause.
const RESTARTS: u32 = 5;

/// Follows the files of the project until `shutdown`. Where that trips over a bug it begins anew, with the
/// sources that serve.
pub(super) async fn follow_files(
    mut reloader: Reloader,
    mut first: (files::Memory, Option<Loaded>),
    shutdown: CancellationToken,
) {
    let events = reloader.events.clone();
    for restart in 0.. {
        let ended =
            shutdown.run_until_cancelled(survive("file watching", reloader.run(first, &shutdown))).await;
        let Some(Err(error)) = ended else { return };
        let pause = Duration::from_secs(1 << restart);
        let (last, again) = (restart == RESTARTS, pause.as_secs());
        let hint = match last {
            true => "what serves goes on serving, but saves are not seen; restart opdev".to_owned(),
            false => format!("what serves goes on serving; files are read and watched again in {again} s"),
        };
        notice(&events, Level::Error, format!("{error:#}"), Some(hint)).await;
        if last || shutdown.run_until_cancelled(tokio::time::sleep(pause)).await.is_none() {
            return;
        }
        first = (files::Memory::after(reloader.publish.borrow().clone()), None);
    }
}
