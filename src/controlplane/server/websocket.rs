//! Watches over WebSocket (RFC 6455), as fabric8 asks for them over HTTP/1.1, and so the Java Operator SDK
//! and Quarkus. Each event is one message: a text of JSON, or the bytes of protobuf. Never makes an event:
//! they are those of the answer over HTTP, so that an observer sees no difference.

use super::observed::Answered;
use super::observer::Copied;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::{Buf, Bytes, BytesMut};
use http::header::{
    CONNECTION, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, ORIGIN, SEC_WEBSOCKET_ACCEPT,
    SEC_WEBSOCKET_EXTENSIONS, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_PROTOCOL, SEC_WEBSOCKET_VERSION, UPGRADE,
};
use http::{Method, Request, Response, StatusCode};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use opdev_apimachinery::body::{Body, full};
use opdev_handlers::path::Query;
use sha1::{Digest, Sha1};
use std::io;
use std::pin::pin;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// The standard adds this to a client's key before it is hashed.
const ADDED: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
/// The longest event that is put together, in bytes. etcd takes less.
const LONGEST_EVENT: usize = 16 * 1024 * 1024;
/// How many pings wait for an answer; then the client waits.
const PINGS: usize = 4;
/// The longest payload of a ping, as the standard says.
const LONGEST_CONTROL: u64 = 125;

const FIN: u8 = 0x80;
const MASKED: u8 = 0x80;
pub(super) const TEXT: u8 = 1;
pub(super) const BINARY: u8 = 2;
pub(super) const CLOSE: u8 = 8;
const PING: u8 = 9;
const PONG: u8 = 10;

pub(super) const NORMAL: u16 = 1000;
const PROTOCOL_ERROR: u16 = 1002;
const TOO_BIG: u16 = 1009;

/// Why a connection broke off.
type Broken = Box<dyn std::error::Error + Send + Sync>;

/// A client's wish for a watch over WebSocket.
pub(super) struct Switch {
    upgrade: OnUpgrade,
    key: String,
    version: String,
    origin: String,
    protocols: Vec<String>,
}

impl Switch {
    /// Takes the wish out of a request, which is then one for a watch over HTTP; `None` where there is none.
    pub(super) fn wanted<B>(request: &mut Request<B>) -> Option<Self> {
        let (headers, uri) = (request.headers(), request.uri());
        let watches = Query::parse(uri.query().unwrap_or_default()).flag("watch") == Some(true)
            || uri.path().split('/').any(|part| part == "watch");
        if request.method() != Method::GET || !asks_for_websocket(headers) || !watches {
            return None;
        }
        let text = |name: &HeaderName| {
            headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned()
        };
        let protocols = text(&SEC_WEBSOCKET_PROTOCOL);
        let protocols = protocols.split(',').map(str::trim).filter(|name| !name.is_empty());
        let (key, version, origin) = (text(&SEC_WEBSOCKET_KEY), text(&SEC_WEBSOCKET_VERSION), text(&ORIGIN));
        let protocols = protocols.map(str::to_owned).collect();
        let upgrade = hyper::upgrade::on(&mut *request);
        for name in [
            CONNECTION,
            UPGRADE,
            SEC_WEBSOCKET_KEY,
            SEC_WEBSOCKET_VERSION,
            SEC_WEBSOCKET_PROTOCOL,
            SEC_WEBSOCKET_EXTENSIONS,
        ] {
            request.headers_mut().remove(name);
        }
        Some(Switch { upgrade, key, version, origin, protocols })
    }

    /// Why the server does not switch, in the order and words of the real one's library. That library wants
    /// an `Origin`, so that a server could refuse pages of others.
    fn refusal(&self) -> Option<(StatusCode, &'static str)> {
        if self.key.is_empty() {
            Some((StatusCode::BAD_REQUEST, "mismatch challenge/response"))
        } else if self.version != "13" {
            Some((StatusCode::BAD_REQUEST, "missing or bad WebSocket Version"))
        } else if !is_origin(&self.origin) {
            Some((StatusCode::FORBIDDEN, ""))
        } else if self.protocols.len() > 1 {
            // Nobody chooses among them.
            Some((StatusCode::BAD_REQUEST, ""))
        } else {
            None
        }
    }
}

/// Finds a request for a WebSocket by its headers, as the real server does.
pub(super) fn asks_for_websocket(headers: &HeaderMap) -> bool {
    let text =
        |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).unwrap_or_default();
    text(UPGRADE).eq_ignore_ascii_case("websocket")
        && text(CONNECTION).split(',').any(|part| part.trim().eq_ignore_ascii_case("upgrade"))
}

/// Go takes a path from the root, or a text with a scheme, for the URI of a request.
fn is_origin(text: &str) -> bool {
    let scheme = |scheme: &str| {
        scheme.starts_with(|first: char| first.is_ascii_alphabetic())
            && scheme.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '+' | '-' | '.'))
    };
    text.starts_with('/') || text.split_once(':').is_some_and(|(before, _)| scheme(before))
}

/// True where events follow.
fn is_watch<E>(response: &Answered<E>) -> bool {
    response.status() == StatusCode::OK && response.body().size_hint().exact().is_none()
}

/// The answer, or the refusal of a switch that cannot be made. What is no watch is answered over HTTP.
pub(super) fn checked<E>(switch: Option<&Switch>, response: Answered<E>) -> Answered<E>
where
    E: 'static,
{
    let Some((status, why)) = switch.filter(|_| is_watch(&response)).and_then(Switch::refusal) else {
        return response;
    };
    let mut refused: Response<Body> = Response::new(full(why));
    *refused.status_mut() = status;
    let headers = refused.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
    if why.ends_with("Version") {
        headers.insert(SEC_WEBSOCKET_VERSION, HeaderValue::from_static("13"));
    }
    super::observed::widened(refused)
}

/// Switches protocols where the client wishes it and events follow. These go out as messages until they end,
/// the client leaves, or `stop` fires.
pub(super) fn made<E>(switch: Option<Switch>, response: Answered<E>, stop: &CancellationToken) -> Answered<E>
where
    E: std::error::Error + Send + Sync + 'static,
{
    let Some(switch) = switch.filter(|_| is_watch(&response)) else { return response };
    let (parts, events) = response.into_parts();
    let mut answer: Response<Body> = Response::new(full(Bytes::new()));
    *answer.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = answer.headers_mut();
    headers.insert(UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(CONNECTION, HeaderValue::from_static("Upgrade"));
    let accepted = accept_key(&switch.key);
    for (name, text) in
        [(SEC_WEBSOCKET_ACCEPT, Some(&accepted)), (SEC_WEBSOCKET_PROTOCOL, switch.protocols.first())]
    {
        if let Some(value) = text.and_then(|text| HeaderValue::from_str(text).ok()) {
            headers.insert(name, value);
        }
    }
    let kind =
        parts.headers.get(CONTENT_TYPE).and_then(|kind| kind.to_str().ok()).unwrap_or_default().to_owned();
    let work = async move {
        if let Err(error) = serve(switch.upgrade, events, &kind).await {
            tracing::debug!(error, "a watch over WebSocket broke off");
        }
    };
    tokio::spawn(stop.clone().run_until_cancelled_owned(work));
    super::observed::widened(answer)
}

/// The answer to a client's key, by which it sees that it was read.
pub(super) fn accept_key(key: &str) -> String {
    STANDARD.encode(Sha1::digest(format!("{key}{ADDED}")))
}

async fn serve<B>(upgrade: OnUpgrade, events: B, content_type: &str) -> Result<(), Broken>
where
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    talk(TokioIo::new(upgrade.await?), events, content_type).await
}

/// Sends events as messages, until one of both ends.
async fn talk<S, B>(socket: S, mut events: B, content_type: &str) -> Result<(), Broken>
where
    S: AsyncRead + AsyncWrite,
    B: http_body::Body<Data = Bytes> + Unpin,
    B::Error: std::error::Error + Send + Sync + 'static,
{
    let (reader, mut writer) = tokio::io::split(socket);
    let (pings, mut pinged) = mpsc::channel(PINGS);
    let mut reads = pin!(read(reader, pings));
    let mut begun = BytesMut::new();
    let protobuf = !content_type.starts_with("application/json");
    let code = loop {
        tokio::select! {
            left = &mut reads => break left?,
            Some(payload) = pinged.recv() => send(&mut writer, PONG, &payload).await?,
            frame = events.frame() => {
                let Some(frame) = frame else { break NORMAL };
                let Ok(data) = frame?.into_data() else { continue };
                begun.extend_from_slice(&data);
                let whole = begun.split_to(Copied::end_of_events(&begun, content_type)).freeze();
                for mut event in Copied::pieces(&whole, content_type) {
                    if protobuf {
                        // A message has a length of its own.
                        event.advance(4);
                    }
                    send(&mut writer, if protobuf { BINARY } else { TEXT }, &event).await?;
                }
                if begun.len() > LONGEST_EVENT {
                    break TOO_BIG;
                }
            }
        }
    };
    send(&mut writer, CLOSE, &code.to_be_bytes()).await?;
    writer.shutdown().await?;
    Ok(())
}

/// Sends one message in one frame. What a server sends is not masked.
pub(super) async fn send(writer: &mut (impl AsyncWrite + Unpin), code: u8, payload: &[u8]) -> io::Result<()> {
    let mut frame = Vec::with_capacity(payload.len() + 10);
    frame.push(FIN | code);
    match (u8::try_from(payload.len()), u16::try_from(payload.len())) {
        (Ok(short @ ..=125), _) => frame.push(short),
        (_, Ok(length)) => {
            frame.push(126);
            frame.extend_from_slice(&length.to_be_bytes());
        }
        _ => {
            frame.push(127);
            frame.extend_from_slice(&(payload.len() as u64).to_be_bytes());
        }
    }
    frame.extend_from_slice(payload);
    writer.write_all(&frame).await?;
    writer.flush().await
}

/// Reads until the client leaves, and says with which code the server does. Only pings count: a client has
/// nothing to say in a watch.
pub(super) async fn read(
    mut reader: impl AsyncRead + Unpin,
    pings: mpsc::Sender<Vec<u8>>,
) -> io::Result<u16> {
    loop {
        let mut head = [0; 2];
        reader.read_exact(&mut head).await?;
        let [first, second] = head;
        let length = match second & !MASKED {
            126 => u64::from(reader.read_u16().await?),
            127 => reader.read_u64().await?,
            short => u64::from(short),
        };
        let (code, whole) = (first & 0x0f, first & FIN != 0);
        if second & MASKED == 0 || (code >= CLOSE && (length > LONGEST_CONTROL || !whole)) {
            return Ok(PROTOCOL_ERROR);
        }
        let mut mask = [0; 4];
        reader.read_exact(&mut mask).await?;
        match code {
            CLOSE => return Ok(NORMAL),
            PING => {
                let mut payload = Vec::new();
                (&mut reader).take(length).read_to_end(&mut payload).await?;
                payload.iter_mut().zip(mask.iter().cycle()).for_each(|(byte, mask)| *byte ^= mask);
                // The other side of the channel goes on for as long as this is asked to read.
                let _ = pings.send(payload).await;
            }
            _ => _ = tokio::io::copy(&mut (&mut reader).take(length), &mut tokio::io::sink()).await?,
        }
    }
}

#[cfg(test)]
mod tests;
