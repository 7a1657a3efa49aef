//! opdev itself, for what it runs beside the screen.

use opdev_event::{BackgroundRun, RequestId};
use opdev_object::facts::minors;
use opdev_release::settings::HelmCompat;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The means to run opdev once more. Clones share what is under way.
#[derive(Clone, Debug)]
pub struct Opdev {
    pub(super) program: PathBuf,
    /// The options that this opdev was started with and that the commands take, too.
    pub(super) options: Vec<String>,
    under_way: Arc<Mutex<BTreeMap<RequestId, Arc<BackgroundRun>>>>,
}

impl Opdev {
    /// The program that runs now, with the Kubernetes and the Helm that it was started with.
    pub fn itself(compat: HelmCompat) -> Self {
        let program = std::env::current_exe().unwrap_or_else(|_| PathBuf::from("opdev"));
        let compat = HelmCompat::NAMED.iter().find(|(_, named)| *named == compat);
        let mut options = vec!["--kubernetes".to_owned(), minors::minor().to_owned()];
        options.extend(
            compat.into_iter().flat_map(|(name, _)| ["--helm-compat".to_owned(), (*name).to_owned()]),
        );
        Opdev { program, options, under_way: Arc::default() }
    }

    /// Runs that have not ended, as they were told last.
    pub(super) fn under_way(&self) -> MutexGuard<'_, BTreeMap<RequestId, Arc<BackgroundRun>>> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
