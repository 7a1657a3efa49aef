//! A web server on loopback that holds what a test puts on it, and remembers who asked for what.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// The server's answer for a path.
#[derive(Clone)]
pub(crate) struct Reply {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<u8>,
    /// The body ends before it is whole.
    cut: bool,
    /// The `Authorization` without which the answer is 401, and the challenge that goes with it.
    wants: Option<(String, String)>,
}

impl Reply {
    pub(crate) fn of(body: impl Into<Vec<u8>>) -> Reply {
        Reply { status: 200, headers: Vec::new(), body: body.into(), cut: false, wants: None }
    }

    pub(crate) fn to(address: &str) -> Reply {
        Reply::status(302).with("Location", address)
    }

    pub(crate) fn status(status: u16) -> Reply {
        Reply { status, ..Reply::of("") }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Reply {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    pub(crate) fn cut(self) -> Reply {
        Reply { cut: true, ..self }
    }

    pub(crate) fn behind(self, authorization: &str, challenge: &str) -> Reply {
        Reply { wants: Some((authorization.to_owned(), challenge.to_owned())), ..self }
    }
}

/// Path with query, and the header `Authorization`.
type Asked = (String, String);

pub(crate) struct Shelf {
    pub(crate) url: String,
    pub(crate) port: u16,
    replies: Arc<Mutex<BTreeMap<String, Reply>>>,
    asked: Arc<Mutex<Vec<Asked>>>,
}

impl Shelf {
    pub(crate) fn open() -> Shelf {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let shelf = Shelf {
            url: format!("http://127.0.0.1:{port}"),
            port,
            replies: Arc::default(),
            asked: Arc::default(),
        };
        let (replies, asked) = (Arc::clone(&shelf.replies), Arc::clone(&shelf.asked));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (replies, asked) = (Arc::clone(&replies), Arc::clone(&asked));
                std::thread::spawn(move || answer(stream, &replies, &asked));
            }
        });
        shelf
    }

    pub(crate) fn put(&self, path: &str, reply: Reply) {
        self.replies.lock().unwrap().insert(path.to_owned(), reply);
    }

    /// The requests since the last call.
    pub(crate) fn asked(&self) -> Vec<Asked> {
        std::mem::take(&mut self.asked.lock().unwrap())
    }
}

fn answer(stream: TcpStream, replies: &Mutex<BTreeMap<String, Reply>>, asked: &Mutex<Vec<Asked>>) {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let target = line.split(' ').nth(1).unwrap_or_default().to_owned();
    let (mut authorization, mut length) = (String::new(), 0_u64);
    loop {
        line.clear();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        match line.split_once(':') {
            Some((name, value)) if name.eq_ignore_ascii_case("authorization") => {
                value.trim().clone_into(&mut authorization);
            }
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => {
                length = value.trim().parse().unwrap();
            }
            Some(_) | None => {}
        }
    }
    // A client that sends something hears the answer once its body is read.
    let _ = std::io::copy(&mut (&mut reader).take(length), &mut std::io::sink());
    asked.lock().unwrap().push((target.clone(), authorization.clone()));
    let path = target.split('?').next().unwrap_or_default();
    let found = replies.lock().unwrap().get(path).cloned();
    let mut reply = found.unwrap_or_else(|| Reply { status: 404, ..Reply::of("{}") });
    if let Some((wanted, challenge)) = &reply.wants
        && *wanted != authorization
    {
        reply = Reply { status: 401, ..Reply::of("{}") }.with("WWW-Authenticate", challenge);
    }
    let mut head = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", reply.status, reply.body.len());
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    head.push_str("Connection: close\r\n\r\n");
    let body = if reply.cut { &reply.body[..reply.body.len() / 2] } else { &reply.body };
    let _ = reader.get_mut().write_all(&[head.as_bytes(), body].concat());
}
