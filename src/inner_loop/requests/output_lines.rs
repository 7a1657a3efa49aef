//! The lines that a program prints.

use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, BufReader};

/// Bytes of a line; a longer one comes in parts.
pub(super) const LONGEST: u64 = 16 << 10;

/// Hands each line of a stream on until it ends, without its end.
pub(super) async fn each_line(stream: Option<impl AsyncRead + Unpin>, mut take: impl FnMut(&str)) {
    let Some(stream) = stream else { return };
    let mut reader = BufReader::new(stream);
    let mut bytes = Vec::new();
    while (&mut reader).take(LONGEST).read_until(b'\n', &mut bytes).await.is_ok_and(|read| read > 0) {
        take(String::from_utf8_lossy(&bytes).trim_end_matches(['\n', '\r']));
        bytes.clear();
    }
}
