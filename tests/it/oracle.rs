//! Real helm3 (3.19), helm4 (4.1), helm4_3 and kubectl, from the folder in `OPDEV_ORACLES`
//! (`tests/oracles/install DIR` fills one). Tests that need them carry `#[cfg_attr(not(oracles), ignore =
//! "needs OPDEV_ORACLES")]`.

use std::path::PathBuf;

/// The path of `helm3`, `helm4` or `kubectl`; panics where it is missing, so that nothing passes unseen.
#[allow(dead_code)]
pub(crate) fn oracle(name: &str) -> PathBuf {
    let folder = std::env::var_os("OPDEV_ORACLES").expect("OPDEV_ORACLES names no folder");
    let path = PathBuf::from(folder).join(name);
    assert!(path.exists(), "{} is missing: run tests/oracles/install", path.display());
    path
}

/// The newest Helm 4 that was compared, where it could be fetched.
pub(crate) fn newest_helm() -> Option<PathBuf> {
    let path = PathBuf::from(std::env::var_os("OPDEV_ORACLES")?).join("helm4_3");
    path.exists().then_some(path)
}
