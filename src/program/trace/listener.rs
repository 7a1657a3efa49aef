//! The socket on which traced processes tell what they do, one JSON object a line. Whoever else writes to it,
//! or writes nonsense, is told of once and does no harm: lines are bounded, and so is the channel behind
//! them.

use jiff::Timestamp;
use opdev_facts::record::{Hello, ReconcileNow, Record, Traced};
use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWriteExt as _, BufReader};
use tokio::net::{UnixListener, UnixStream};
use tokio::sync::{mpsc, watch};
use tokio::task::JoinHandle;

/// Records that wait for the consumer. A process whose records find no room waits with writing and drops its
/// own.
const ROOM: usize = 8192;
/// Bytes of a line; a longer one is nonsense.
const LONGEST: u64 = 1 << 20;
/// Commands that wait for one process.
const COMMANDS: usize = 256;
/// Bytes of a path that every system takes for a socket.
const PATH: usize = 100;

/// Names that are looked at for sockets that were left.
const MOST_LOOKED_AT: usize = 10_000;

/// Listens for traced processes. Dropping it closes the socket and removes its file.
#[derive(Debug)]
pub struct Listener {
    path: PathBuf,
    processes: Arc<Mutex<BTreeMap<u64, mpsc::Sender<String>>>>,
    tells: watch::Receiver<bool>,
    accepting: JoinHandle<()>,
}

/// Why the socket could not be made.
#[derive(Debug)]
pub struct ListenError {
    path: PathBuf,
    source: std::io::Error,
}

impl fmt::Display for ListenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "cannot listen on the socket {}: {}", self.path.display(), self.source)
    }
}

impl std::error::Error for ListenError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// A place for the socket: in `folder` where the path is short enough for a socket, else below the folder for
/// temporary files. Another process of the same number never lives at the same time.
pub fn socket_path(folder: &Path) -> PathBuf {
    let id = std::process::id();
    let path = folder.join(format!("trace-{id}.sock"));
    if path.as_os_str().len() <= PATH {
        return path;
    }
    // One process may listen in several folders.
    let digest = Sha256::digest(folder.as_os_str().as_encoded_bytes());
    let name: String = digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect();
    std::env::temp_dir().join(format!("opdev-trace-{id}-{name}.sock"))
}

impl Listener {
    /// Listens on a socket that only this user can reach; a file that is left of an earlier one is replaced.
    /// Needs a tokio runtime. Every record comes out of the receiver in the order in which its process wrote
    /// it.
    ///
    /// # Errors
    /// Where the socket cannot be made: its folder is missing, or its path is longer than sockets allow.
    pub fn start(socket: &Path) -> Result<(Listener, mpsc::Receiver<Traced>), ListenError> {
        let failed = |source| ListenError { path: socket.to_owned(), source };
        match std::fs::remove_file(socket) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            Ok(()) | Err(_) => {}
        }
        remove_left(socket);
        let listener = UnixListener::bind(socket).map_err(failed)?;
        private(socket).map_err(failed)?;
        let (records, receiver) = mpsc::channel(ROOM);
        let processes = Arc::new(Mutex::new(BTreeMap::new()));
        let (say_tells, tells) = watch::channel(false);
        let heard = Heard { records, processes: Arc::clone(&processes), tells: Arc::new(say_tells) };
        let accepting = tokio::spawn(accept(listener, heard));
        Ok((Listener { path: socket.to_owned(), processes, tells, accepting }, receiver))
    }

    /// Tells whether a process has said that it tells of its reconciles.
    pub fn tells(&self) -> watch::Receiver<bool> {
        self.tells.clone()
    }

    /// Where it listens.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Asks the processes to put an object into the queue of its controller now. Says whether a process was
    /// there that could be asked; that it has the controller shows in the cause of the next reconcile.
    pub fn reconcile(&self, wish: &ReconcileNow) -> bool {
        let Ok(mut line) = serde_json::to_string(wish) else { return false };
        line.push('\n');
        let processes = self.processes.lock().unwrap_or_else(PoisonError::into_inner);
        processes.values().filter(|process| process.try_send(line.clone()).is_ok()).count() > 0
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.accepting.abort();
        _ = std::fs::remove_file(&self.path);
    }
}

/// Removes sockets that are named as this one is, but for the number of a process that lives no more: it was
/// killed.
fn remove_left(socket: &Path) {
    use std::os::unix::fs::FileTypeExt as _;
    let own = std::process::id().to_string();
    let name = socket.file_name().and_then(|name| name.to_str());
    let (Some(folder), Some((before, after))) =
        (socket.parent(), name.and_then(|name| name.split_once(own.as_str())))
    else {
        return;
    };
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten().take(MOST_LOOKED_AT) {
        let name = entry.file_name();
        let id = name.to_str().and_then(|name| name.strip_prefix(before)?.strip_suffix(after));
        let id = id.and_then(|id| Pid::from_raw(id.parse().ok()?));
        // The kind of the entry itself, never of what a link leads to.
        let is_socket = entry.file_type().is_ok_and(|kind| kind.is_socket());
        if is_socket && id.is_some_and(|id| test_kill_process(id) == Err(Errno::SRCH)) {
            _ = std::fs::remove_file(entry.path());
        }
    }
}

fn private(socket: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(socket, std::fs::Permissions::from_mode(0o600))
}

type Processes = Arc<Mutex<BTreeMap<u64, mpsc::Sender<String>>>>;

/// Where goes what processes say.
#[derive(Clone)]
struct Heard {
    records: mpsc::Sender<Traced>,
    processes: Processes,
    tells: Arc<watch::Sender<bool>>,
}

impl Heard {
    /// A process has said who it is. One in Python takes no commands.
    fn hello(&self, process: u64, hello: &Hello) {
        self.tells.send_if_modified(|tells| !std::mem::replace(tells, true));
        if hello.rung == Hello::KOPF {
            self.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(&process);
        }
    }
}

async fn accept(listener: UnixListener, heard: Heard) {
    let mut talks = tokio::task::JoinSet::new();
    let mut process = 0;
    loop {
        tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => {
                    process += 1;
                    let (commands, wanted) = mpsc::channel(COMMANDS);
                    let mut processes = heard.processes.lock().unwrap_or_else(PoisonError::into_inner);
                    processes.insert(process, commands);
                    drop(processes);
                    talks.spawn(talk(process, stream, wanted, heard.clone()));
                }
                Err(error) => {
                    tracing::warn!(%error, "a traced process could not be accepted");
                    tokio::task::yield_now().await;
                }
            },
            Some(_) = talks.join_next() => {}
            () = heard.records.closed() => return,
        }
    }
}

async fn talk(process: u64, stream: UnixStream, mut wanted: mpsc::Receiver<String>, heard: Heard) {
    let (reading, mut writing) = stream.into_split();
    let asking = async {
        while let Some(command) = wanted.recv().await {
            if writing.write_all(command.as_bytes()).await.is_err() {
                break;
            }
        }
        // A process that takes no commands may still tell.
        std::future::pending::<()>().await;
    };
    tokio::select! {
        () = hear(process, reading, &heard) => {}
        () = asking => {}
    }
    heard.processes.lock().unwrap_or_else(PoisonError::into_inner).remove(&process);
    _ = heard.records.send(Traced { process, at: Timestamp::now(), record: Record::Closed }).await;
}

/// Reads until the process closes its end, or writes what is too long to be a record.
async fn hear(process: u64, stream: impl AsyncRead + Unpin, heard: &Heard) {
    let mut stream = BufReader::new(stream);
    let mut line = Vec::new();
    loop {
        line.clear();
        let mut bounded = tokio::io::AsyncReadExt::take(&mut stream, LONGEST);
        let Ok(1..) = bounded.read_until(b'\n', &mut line).await else { return };
        let whole = line.last() == Some(&b'\n');
        let record = if whole {
            Record::read(&line)
        } else {
            Record::unreadable(&line, "the line is cut or longer than 1 MiB")
        };
        if let Record::Hello(hello) = &record {
            heard.hello(process, hello);
        }
        if heard.records.send(Traced { process, at: Timestamp::now(), record }).await.is_err() || !whole {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener as Plain;

    #[tokio::test]
    async fn sockets_of_processes_that_were_killed_go_and_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let mut ended = std::process::Command::new("true").spawn().unwrap();
        ended.wait().unwrap();
        let left = format!("trace-{}.sock", ended.id());
        let alive = format!("trace-{}.sock", rustix::process::getppid().unwrap().as_raw_nonzero());
        let others = ["other-1.sock".to_owned(), alive, "trace-x.sock".to_owned()];
        for name in others.iter().chain([&left]) {
            drop(Plain::bind(at(name)).unwrap());
        }
        let own = socket_path(folder.path());
        let (listener, _records) = Listener::start(&own).unwrap();
        assert!(!at(&left).exists());
        assert!(others.iter().all(|name| at(name).exists()) && own.exists());
        drop(listener);
        assert!(!own.exists());
    }
}
