//! Content that comes from afar: the index of a chart repository, manifests, lists of tags, configs and
//! tokens of a registry, and the files in which Helm and Docker remember repositories and logins. A server on
//! loopback answers with the fuzzer's bytes, and the readers are called as the commands call them. Run it
//! without a proxy in the environment.

use opdev_pull::{Access, ChartRequest, Homes, ImageReference, download, download_image};
use opdev_os::sha256;
use serde_json::json;
use std::cell::RefCell;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// The kind of an input: its first byte.
pub const KINDS: [u8; 8] = *b"imctlwkr";

/// A request head is never longer: opdev has written it.
const HEAD: usize = 16 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// The answers of the server now.
#[derive(Default)]
struct Answers {
    kind: u8,
    body: Vec<u8>,
}

struct World {
    /// Host and port.
    host: String,
    folder: PathBuf,
    answers: Arc<Mutex<Answers>>,
}

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
}

/// Runs one input.
pub fn pull(data: &[u8]) {
    let Some((kind, body)) = data.split_first() else { return };
    if !KINDS.contains(kind) {
        return;
    }
    WORLD.with_borrow_mut(|world| {
        let world = world.get_or_insert_with(World::start);
        *world.answers.lock().unwrap_or_else(PoisonError::into_inner) =
            Answers { kind: *kind, body: body.to_vec() };
        world.ask(*kind, body);
    });
}

impl World {
    fn start() -> World {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port of this machine");
        let host = listener.local_addr().expect("its address").to_string();
        let folder = std::env::temp_dir().join(format!("opdev-fuzz-pull-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let answers: Arc<Mutex<Answers>> = Arc::default();
        let (for_thread, at) = (Arc::clone(&answers), host.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let answers = for_thread.lock().unwrap_or_else(PoisonError::into_inner);
                // A client that has hung up has read what it wanted.
                let _ = answer(stream, &answers, &at);
            }
        });
        World { host, folder, answers }
    }

    fn ask(&self, kind: u8, body: &[u8]) {
        let (repositories, logins) = (self.folder.join("repositories.yaml"), self.folder.join("config.json"));
        for (file, named) in [(&repositories, b'r'), (&logins, b'l')] {
            let text = if kind == named { body } else { b"" };
            std::fs::write(file, text).expect("a file in a folder of our own");
        }
        let homes = Homes { repositories, cached_indexes: self.folder.join("none"), logins: vec![logins] };
        let access = Access { plain_http: true, ..Access::default() };
        let chart = |reference: &str, repository: &str| {
            let request = ChartRequest {
                reference: reference.to_owned(),
                repository: repository.to_owned(),
                version: String::new(),
                access: access.clone(),
            };
            let _ = download(&request, &homes);
        };
        match kind {
            b'i' => chart("x", &format!("http://{}", self.host)),
            // No name is served here that a file of repositories could lead to, so that only the file is
            // read.
            b'r' => chart("no-such-name/x", ""),
            _ => chart(&format!("oci://{}/c", self.host), ""),
        }
        if matches!(kind, b'm' | b'c') {
            let image = ImageReference::parse(&format!("{}/c:1.0.0", self.host)).expect("a reference");
            let _ = download_image(&image, "amd64", &homes, &access);
        }
    }
}

/// Answers one request and hangs up.
fn answer(mut stream: TcpStream, answers: &Answers, host: &str) -> std::io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut head = Vec::new();
    let mut byte = [0; 1];
    while !head.ends_with(b"\r\n\r\n") && head.len() < HEAD && stream.read(&mut byte)? == 1 {
        head.push(byte[0]);
    }
    let head = String::from_utf8_lossy(&head).to_lowercase();
    let path = head.split(' ').nth(1).unwrap_or_default();
    let known = head.contains("\r\nauthorization: ");
    let body = &answers.body;
    let challenge = match answers.kind {
        b'l' if !known => Some(b"Basic realm=\"r\"".to_vec()),
        b'k' if !known => Some(format!("Bearer realm=\"http://{host}/token\",service=\"s\"").into_bytes()),
        // A header of one line; the rest of the input goes into it, too.
        b'w' if !known => {
            Some(body.iter().copied().filter(|byte| !matches!(byte, b'\r' | b'\n' | 0)).collect())
        }
        _ => None,
    };
    if let Some(challenge) = challenge.filter(|_| path.starts_with("/v2/")) {
        let head = [
            &b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\nConnection: close\r\nWWW-Authenticate: "[..],
        ];
        stream.write_all(&[&head.concat()[..], &challenge, b"\r\n\r\n"].concat())?;
        return stream.flush();
    }
    let config = sha256::named(body);
    let manifest = json!({"schemaVersion": 2, "config": {"digest": config}, "layers": []});
    let body = match answers.kind {
        b'i' if path.ends_with("/index.yaml") => body.clone(),
        b'k' if path.starts_with("/token") => body.clone(),
        b't' if path.contains("/tags/list") => body.clone(),
        b'c' if path.contains("/blobs/") => body.clone(),
        b'm' if path.contains("/manifests/") => body.clone(),
        _ if path.contains("/tags/list") => {
            br#"{"name": "c", "tags": ["1.0.0", "1.1.0-rc.1", "latest"]}"#.to_vec()
        }
        _ => manifest.to_string().into_bytes(),
    };
    let head = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), &body].concat())?;
    stream.flush()
}
