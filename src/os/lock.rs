//! Files that only one process may use: a lock beside them, held for as long as the process lives, with words
//! about who holds it. The kernel lets go of it when a process dies, however it does.

use super::private_folder::PrivateFolder;
use anyhow::{Context as _, Result};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::fs::{File, TryLockError};
use std::io::{Read as _, Seek as _, Write as _};

/// A lock that is held until it is dropped.
#[derive(Debug)]
pub struct Lock(File);

/// The process that holds a lock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Since when.
    pub since: Timestamp,
    /// The command, such as `opdev run --plain`.
    pub what: String,
}

impl std::fmt::Display for Holder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let since = self.since.to_zoned(jiff::tz::TimeZone::system()).strftime("%Y-%m-%d %H:%M:%S");
        write!(f, "{} (process {}, since {since})", self.what, self.pid)
    }
}

impl Lock {
    /// Takes the lock of a file in a folder, which stands beside it, or says who has it. It is not named as
    /// the lock that kubectl makes while it changes a kubeconfig: where that is there already, kubectl
    /// refuses.
    ///
    /// # Errors
    /// Where the lock cannot be written.
    pub fn of(folder: &PrivateFolder, name: &str, what: &str) -> Result<Result<Lock, Holder>> {
        Lock::take(folder, &format!("{name}.opdev-lock"), what)
    }

    /// Takes the lock, or says who has it.
    ///
    /// # Errors
    /// Where the file cannot be written.
    pub fn take(folder: &PrivateFolder, name: &str, what: &str) -> Result<Result<Lock, Holder>> {
        let cannot = || format!("{} cannot be written", folder.path().join(name).display());
        let mut file = folder.open_file(name)?;
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        let before: Option<Holder> = serde_json::from_str(&text).ok();
        let unknown = || Holder { pid: 0, since: Timestamp::now(), what: "another process".to_owned() };
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(Err(before.unwrap_or_else(unknown))),
            // A file system without locks: what was written has to do.
            Err(TryLockError::Error(_)) => {
                if let Some(holder) =
                    before.filter(|holder| holder.pid != std::process::id() && is_alive(holder.pid))
                {
                    return Ok(Err(holder));
                }
            }
        }
        let holder = Holder { pid: std::process::id(), since: Timestamp::now(), what: what.to_owned() };
        let text = serde_json::to_string(&holder)?;
        file.set_len(0)
            .and_then(|()| file.rewind())
            .and_then(|()| file.write_all(text.as_bytes()))
            .and_then(|()| file.flush())
            .with_context(cannot)?;
        Ok(Ok(Lock(file)))
    }

    /// The holder of the lock that `of` takes of a file; nobody where it is free.
    ///
    /// # Errors
    /// Where the lock cannot be opened.
    pub fn holder_of(folder: &PrivateFolder, name: &str) -> Result<Option<Holder>> {
        Lock::holder(folder, &format!("{name}.opdev-lock"))
    }

    /// The holder of the lock of a file; nobody where it is free.
    ///
    /// # Errors
    /// Where the file cannot be opened.
    pub fn holder(folder: &PrivateFolder, name: &str) -> Result<Option<Holder>> {
        // An empty one is nobody's: no need to open it for writing, which a disk that is only read refuses.
        if folder.read(name)?.is_none_or(|text| text.is_empty()) {
            return Ok(None);
        }
        let mut file = folder.open_file(name)?;
        let mut text = String::new();
        let _ = file.read_to_string(&mut text);
        let known: Option<Holder> = serde_json::from_str(&text).ok();
        Ok(match file.try_lock_shared() {
            Ok(()) => None,
            Err(TryLockError::WouldBlock) => known,
            Err(TryLockError::Error(_)) => known.filter(|holder| is_alive(holder.pid)),
        })
    }
}

impl Drop for Lock {
    /// An empty file is nobody's.
    fn drop(&mut self) {
        let _ = self.0.set_len(0);
        let _ = self.0.unlock();
    }
}

/// Returns true if a process of this number runs.
pub fn is_alive(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    // A process of somebody else's may not be asked, but is there.
    pid.is_some_and(|pid| !matches!(rustix::process::test_kill_process(pid), Err(rustix::io::Errno::SRCH)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_at_a_time_and_the_other_is_told_who() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("lock");
        let take = |what| Lock::take(&PrivateFolder::of_file(&path).unwrap().0, "lock", what).unwrap();
        let first = take("opdev run").unwrap();
        let holder = take("opdev run --plain").unwrap_err();
        assert_eq!((holder.pid, holder.what.as_str()), (std::process::id(), "opdev run"));
        drop(first);
        assert!(take("opdev run").is_ok());
        // A file of a process that died locks nothing.
        std::fs::write(&path, r#"{"pid":1,"since":"2026-01-01T00:00:00Z","what":"opdev run"}"#).unwrap();
        assert!(take("opdev run").is_ok());
        assert!(is_alive(std::process::id()));
    }

    #[test]
    fn kubectl_may_lock_the_file_too() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["kubeconfig", "kubeconfig.yaml"] {
            let (private, name) = PrivateFolder::of_file(&folder.path().join(name)).unwrap();
            let _ours = Lock::of(&private, &name, "opdev run").unwrap().unwrap();
            assert!(Lock::of(&private, &name, "opdev serve").unwrap().is_err());
            File::create_new(folder.path().join(format!("{name}.lock"))).unwrap();
        }
    }
}
