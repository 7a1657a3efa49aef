//! What envtest starts as etcd. The API server beside it keeps its objects itself, so this one only says that
//! it is well, which is all that envtest asks.

use super::flags::Flags;
use anyhow::{Context, Result, bail};
use std::io::Write as _;
use std::time::Duration;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

/// envtest looks through these lines for the flags it may use.
const HELP: &str = "etcd, played by opdev: answers /health, holds nothing

Usage: etcd [flags]

  --listen-client-urls 'http://localhost:2379'   where to answer /health
  --help                                         this text
  --version                                      which program this is

Taken and without effect, as any other flag:

  --advertise-client-urls
  --data-dir
  --listen-peer-urls
  --unsafe-no-fsync
";

const REQUEST_LIMIT: Duration = Duration::from_secs(5);

pub(super) fn run<S>(arguments: Vec<String>, stop: impl FnOnce() -> Result<S>) -> Result<()>
where
    S: Future<Output = &'static str>,
{
    let flags = Flags::parse(arguments);
    if flags.has("help") || flags.has("h") || flags.has("version") {
        let version = format!("etcd Version: opdev-{}\n", env!("CARGO_PKG_VERSION"));
        let text = if flags.has("version") { &version } else { HELP };
        std::io::stdout().write_all(text.as_bytes())?;
        return Ok(());
    }
    let urls = flags.get("listen-client-urls").unwrap_or("http://localhost:2379").to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(async {
        let stop = stop()?;
        for url in urls.split(',') {
            let Some(address) = url.trim().strip_prefix("http://") else {
                bail!("--listen-client-urls: {url} is not served: this etcd answers http:// only");
            };
            let address = address.trim_end_matches('/');
            let listener = TcpListener::bind(address)
                .await
                .with_context(|| format!("--listen-client-urls: cannot listen on {address}"))?;
            let address = listener.local_addr()?;
            writeln!(std::io::stderr(), "opdev as etcd: at http://{address}")?;
            tokio::spawn(async move {
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(tokio::time::timeout(REQUEST_LIMIT, answer(stream)));
                }
            });
        }
        stop.await;
        Ok(())
    })
}

/// Reads the head of one request and answers it.
async fn answer(mut stream: TcpStream) -> std::io::Result<()> {
    let mut head = Vec::new();
    while !head.windows(4).any(|end| end == b"\r\n\r\n") && head.len() < 16 * 1024 {
        let mut some = [0; 1024];
        let count = stream.read(&mut some).await?;
        if count == 0 {
            return Ok(());
        }
        head.extend_from_slice(&some[..count]);
    }
    let head = String::from_utf8_lossy(&head);
    let (code, body) = match head.split(' ').nth(1) {
        Some("/health") => ("200 OK", "{\"health\":\"true\",\"reason\":\"\"}"),
        _ => ("404 Not Found", "{\"error\":\"opdev plays this etcd: it answers /health and holds nothing\"}"),
    };
    let length = body.len();
    let answer = format!(
        "HTTP/1.1 {code}\r\nContent-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    );
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await
}
