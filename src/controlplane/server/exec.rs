//! The streams of a simulated `exec`, over WebSocket as kubectl and most libraries ask for them, and over
//! SPDY as client-go's older executor does. Never decides what is answered: `handlers` does.

use super::observed::{Answered, widened};
use super::{spdy, websocket};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use http::header::{
    CONNECTION, HeaderMap, HeaderName, HeaderValue, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY,
    SEC_WEBSOCKET_PROTOCOL, UPGRADE,
};
use http::{Request, Response, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use opdev_apimachinery::body::{Body, full};
use opdev_handlers::exec::ExecSession;
use serde_json::{Value, json};
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

const STREAM_PROTOCOL: HeaderName = HeaderName::from_static("x-stream-protocol-version");
/// Protocols over SPDY, the client's first one counts; those over WebSocket stand below.
const SPDY_PROTOCOLS: [&str; 4] =
    ["v4.channel.k8s.io", "v3.channel.k8s.io", "v2.channel.k8s.io", "channel.k8s.io"];
const SOCKET_PROTOCOLS: [&str; 5] = [
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v4.base64.channel.k8s.io",
    "channel.k8s.io",
    "base64.channel.k8s.io",
];
/// How long a client may take to leave after the answer.
const LAST_WAIT: Duration = Duration::from_secs(5);

const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const ERROR: u8 = 3;

/// A client's wish for streams.
pub(super) struct Streams {
    upgrade: OnUpgrade,
    way: Way,
}

enum Way {
    Socket { key: String, protocol: Option<&'static str> },
    Spdy { protocol: &'static str },
}

impl Streams {
    /// Takes the wish out of a request for an `exec`; `None` where there is none.
    pub(super) fn wanted<B>(request: &mut Request<B>) -> Option<Self> {
        if !request.uri().path().ends_with("/exec") {
            return None;
        }
        let way = way(request.headers())?;
        let upgrade = hyper::upgrade::on(&mut *request);
        Some(Streams { upgrade, way })
    }
}

fn way(headers: &HeaderMap) -> Option<Way> {
    let words = |name: HeaderName| -> Vec<String> {
        let all = headers.get_all(name).iter().filter_map(|value| value.to_str().ok());
        all.flat_map(|text| text.split(',')).map(|word| word.trim().to_owned()).collect()
    };
    let first = |asked: &[String], known: &[&'static str]| -> Option<&'static str> {
        asked.iter().find_map(|asked| known.iter().copied().find(|known| known == asked))
    };
    if websocket::asks_for_websocket(headers) {
        let asked = words(SEC_WEBSOCKET_PROTOCOL);
        let protocol = first(&asked, &SOCKET_PROTOCOLS);
        let key = headers.get(SEC_WEBSOCKET_KEY)?.to_str().ok()?.to_owned();
        return (asked.is_empty() || protocol.is_some()).then_some(Way::Socket { key, protocol });
    }
    let spdy = words(UPGRADE).iter().any(|word| word.eq_ignore_ascii_case("SPDY/3.1"));
    let asked = words(STREAM_PROTOCOL);
    let protocol = if asked.is_empty() { Some("channel.k8s.io") } else { first(&asked, &SPDY_PROTOCOLS) };
    protocol.filter(|_| spdy).map(|protocol| Way::Spdy { protocol })
}

/// Switches protocols where an `exec` is answered and the client wishes it.
pub(super) fn made<E>(
    streams: Option<Streams>,
    mut response: Answered<E>,
    stop: &CancellationToken,
) -> Answered<E>
where
    E: 'static,
{
    let Some(session) = response.extensions_mut().remove::<ExecSession>() else { return response };
    let Some(streams) = streams else { return response };
    let mut answer: Response<Body> = Response::new(full(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    match &streams.way {
        Way::Socket { key, protocol } => {
            headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
            if let Ok(accepted) = HeaderValue::from_str(&websocket::accept_key(key)) {
                headers.insert(SEC_WEBSOCKET_ACCEPT, accepted);
            }
            if let Some(protocol) = protocol {
                headers.insert(SEC_WEBSOCKET_PROTOCOL, HeaderValue::from_static(protocol));
            }
        }
        Way::Spdy { protocol } => {
            headers.insert(UPGRADE, HeaderValue::from_static("SPDY/3.1"));
            headers.insert(STREAM_PROTOCOL, HeaderValue::from_static(protocol));
        }
    }
    let work = async move {
        if let Err(error) = serve(streams, &session).await {
            tracing::debug!(%error, "the streams of an exec broke off");
        }
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(work));
    widened(answer)
}

async fn serve(streams: Streams, session: &ExecSession) -> io::Result<()> {
    let socket = TokioIo::new(streams.upgrade.await.map_err(io::Error::other)?);
    match streams.way {
        Way::Socket { protocol, .. } => {
            over_socket(socket, protocol.unwrap_or("channel.k8s.io"), session).await
        }
        Way::Spdy { protocol } => {
            let error = ended(protocol, session);
            spdy::serve(socket, session, &error, LAST_WAIT).await
        }
    }
}

/// The text of the stream of errors at the end: a `Status` since `v4`, and before it only what went wrong.
fn ended(protocol: &str, session: &ExecSession) -> Vec<u8> {
    let code = session.code;
    let failure = format!("command terminated with non-zero exit code: exit status {code}");
    if !protocol.starts_with("v4") && !protocol.starts_with("v5") {
        return if code == 0 { Vec::new() } else { failure.into_bytes() };
    }
    let status: Value = match code {
        0 => json!({"metadata": {}, "status": "Success"}),
        code => json!({"metadata": {}, "status": "Failure", "message": failure, "reason": "NonZeroExitCode",
            "details": {"causes": [{"reason": "ExitCode", "message": code.to_string()}]}}),
    };
    status.to_string().into_bytes()
}

/// Answers over WebSocket: each message has its channel in front.
async fn over_socket(
    socket: impl AsyncRead + AsyncWrite,
    protocol: &str,
    session: &ExecSession,
) -> io::Result<()> {
    let (reader, mut writer) = tokio::io::split(socket);
    let text = protocol.contains("base64");
    let message = |channel: u8, data: &[u8]| match text {
        true => (websocket::TEXT, format!("{channel}{}", STANDARD.encode(data)).into_bytes()),
        false => (websocket::BINARY, [&[channel], data].concat()),
    };
    let [_, stdout, stderr] = session.streams;
    // An empty message says that the connection is there.
    let lowest = if stdout {
        STDOUT
    } else if stderr {
        STDERR
    } else {
        ERROR
    };
    let mut messages = vec![message(lowest, b"")];
    if stdout && !session.output.is_empty() {
        messages.push(message(STDOUT, &session.output));
    }
    let error = ended(protocol, session);
    if !error.is_empty() {
        messages.push(message(ERROR, &error));
    }
    for (kind, payload) in messages {
        websocket::send(&mut writer, kind, &payload).await?;
    }
    websocket::send(&mut writer, websocket::CLOSE, &websocket::NORMAL.to_be_bytes()).await?;
    // Whatever the client still sends is read, so that nothing of the answer is lost.
    let (pings, _pinged) = mpsc::channel(1);
    let _ = tokio::time::timeout(LAST_WAIT, websocket::read(reader, pings)).await;
    writer.shutdown().await
}
