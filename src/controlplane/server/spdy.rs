//! As much of SPDY/3.1 as an `exec` needs: the client opens streams and names them in their headers, each is
//! accepted, and the server writes to those of the output and of errors. Headers are compressed with the
//! dictionary of the standard; those of the server are empty.

use bytes::Buf as _;
use flate2::{Decompress, FlushDecompress, Status};
use opdev_handlers::exec::ExecSession;
use std::collections::HashMap;
use std::io;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

/// The dictionary of headers in SPDY/3, as the standard prints it.
const DICTIONARY: &[u8] = include_bytes!("../assets/spdy3-headers.bin");
/// The longest frame that is read.
const LONGEST: usize = 64 * 1024;

const CONTROL: [u8; 2] = [0x80, 3];
const SYN_STREAM: u8 = 1;
const SYN_REPLY: u8 = 2;
const PING: u8 = 6;
const GO_AWAY: u8 = 7;
const FIN: u8 = 1;

/// A frame: a control frame of a type, or data.
enum Frame {
    Control(u8, Vec<u8>),
    Data,
}

/// The headers of a client's streams, which are one compressed text.
struct Headers {
    inflate: Decompress,
    /// True once the head of the compressed text was read.
    begun: bool,
}

impl Headers {
    fn new() -> io::Result<Self> {
        let mut inflate = Decompress::new(false);
        // The dictionary counts as what came before: here it comes before, in a block that is not compressed.
        let length = u16::try_from(DICTIONARY.len()).map_err(io::Error::other)?;
        let head = [&[0][..], &length.to_le_bytes(), &(!length).to_le_bytes()].concat();
        inflated(&mut inflate, &[&head, DICTIONARY].concat())?;
        Ok(Headers { inflate, begun: false })
    }

    /// The pairs in the next block of headers.
    fn read(&mut self, mut block: &[u8]) -> io::Result<HashMap<String, String>> {
        if !self.begun {
            // Two bytes of zlib and, where it names a dictionary, four of its sum.
            let named = block.get(1).is_some_and(|flags| flags & 0x20 != 0);
            block = block.get(if named { 6 } else { 2 }..).ok_or_else(broken)?;
            self.begun = true;
        }
        let text = inflated(&mut self.inflate, block)?;
        let mut rest = text.as_slice();
        let mut pairs = HashMap::new();
        for _ in 0..number(&mut rest)? {
            let (name, value) = (word(&mut rest)?, word(&mut rest)?);
            pairs.insert(name.to_lowercase(), value);
        }
        Ok(pairs)
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a frame of SPDY that makes no sense")
}

fn number(rest: &mut &[u8]) -> io::Result<u32> {
    rest.try_get_u32().map_err(|_| broken())
}

fn word(rest: &mut &[u8]) -> io::Result<String> {
    let length = usize::try_from(number(rest)?).map_err(io::Error::other)?;
    let (word, behind) = rest.split_at_checked(length).ok_or_else(broken)?;
    *rest = behind;
    Ok(String::from_utf8_lossy(word).into_owned())
}

/// The text in a piece of a compressed one, no more than a frame may be long.
fn inflated(inflate: &mut Decompress, mut block: &[u8]) -> io::Result<Vec<u8>> {
    let mut text = Vec::with_capacity(LONGEST);
    while !block.is_empty() {
        let before = inflate.total_in();
        let status =
            inflate.decompress_vec(block, &mut text, FlushDecompress::Sync).map_err(io::Error::other)?;
        let read = usize::try_from(inflate.total_in() - before).map_err(io::Error::other)?;
        if read == 0 || status == Status::StreamEnd {
            return Err(broken());
        }
        block = block.get(read..).ok_or_else(broken)?;
    }
    Ok(text)
}

async fn frame(reader: &mut (impl AsyncRead + Unpin)) -> io::Result<Frame> {
    let mut head = [0; 8];
    reader.read_exact(&mut head).await?;
    let [first, second, _, kind, _, a, b, c] = head;
    let length = usize::try_from(u32::from_be_bytes([0, a, b, c])).map_err(io::Error::other)?;
    if first & 0x80 == 0 {
        // Input of the command is read and dropped, whatever its length.
        let mut data = reader.take(length as u64);
        tokio::io::copy(&mut data, &mut tokio::io::sink()).await?;
        return Ok(Frame::Data);
    }
    if [first, second] != CONTROL || length > LONGEST {
        return Err(broken());
    }
    let mut payload = vec![0; length];
    reader.read_exact(&mut payload).await?;
    Ok(Frame::Control(kind, payload))
}

async fn control(writer: &mut (impl AsyncWrite + Unpin), kind: u8, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_be_bytes();
    let head = [CONTROL[0], CONTROL[1], 0, kind, 0, length[1], length[2], length[3]];
    writer.write_all(&[&head, payload].concat()).await
}

async fn data(writer: &mut (impl AsyncWrite + Unpin), stream: u32, payload: &[u8]) -> io::Result<()> {
    let length = u32::try_from(payload.len()).map_err(io::Error::other)?.to_be_bytes();
    let head = [FIN, length[1], length[2], length[3]];
    writer.write_all(&[&stream.to_be_bytes()[..], &head, payload].concat()).await
}

/// A compressed text of no headers: the number 0 in a block that is not compressed, and the mark that
/// flushes.
fn no_headers(first: bool) -> Vec<u8> {
    let head: &[u8] = if first { &[0x78, 0x01] } else { &[] };
    [head, &[0, 4, 0, 0xfb, 0xff, 0, 0, 0, 0], &[0, 0, 0, 0xff, 0xff]].concat()
}

/// Answers an `exec`: accepts the streams that were asked for, writes what is to be said, and waits until the
/// client leaves.
pub(super) async fn serve(
    socket: impl AsyncRead + AsyncWrite,
    session: &ExecSession,
    error: &[u8],
    last_wait: Duration,
) -> io::Result<()> {
    let (mut reader, mut writer) = tokio::io::split(socket);
    let mut headers = Headers::new()?;
    let mut streams: HashMap<String, u32> = HashMap::new();
    let expected = 1 + session.streams.iter().filter(|wanted| **wanted).count();
    while streams.len() < expected {
        match frame(&mut reader).await? {
            Frame::Control(SYN_STREAM, payload) => {
                let mut rest = payload.as_slice();
                let id = number(&mut rest)?;
                let block = rest.get(6..).ok_or_else(broken)?;
                let kind = headers.read(block)?.remove("streamtype").unwrap_or_default();
                let reply = [&id.to_be_bytes()[..], &no_headers(streams.is_empty())].concat();
                control(&mut writer, SYN_REPLY, &reply).await?;
                writer.flush().await?;
                streams.insert(kind, id);
            }
            Frame::Control(PING, payload) => control(&mut writer, PING, &payload).await?,
            Frame::Control(..) | Frame::Data => {}
        }
        writer.flush().await?;
    }
    for (kind, said) in [("stdout", &session.output[..]), ("stderr", b""), ("error", error)] {
        if let Some(stream) = streams.get(kind) {
            data(&mut writer, *stream, said).await?;
        }
    }
    writer.flush().await?;
    let left = async {
        loop {
            match frame(&mut reader).await? {
                Frame::Control(GO_AWAY, _) => return Ok::<(), io::Error>(()),
                Frame::Control(PING, payload) => {
                    control(&mut writer, PING, &payload).await?;
                    writer.flush().await?;
                }
                Frame::Control(..) | Frame::Data => {}
            }
        }
    };
    // However it ends, the answer is out.
    let _ = tokio::time::timeout(last_wait, left).await;
    writer.shutdown().await
}

#[cfg(test)]
mod tests;
