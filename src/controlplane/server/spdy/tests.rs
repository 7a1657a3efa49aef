//! The frames of a client, as zlib compresses their headers with the dictionary.

use super::*;
use bytes::Bytes;

/// `streamtype: error`, and then `streamtype: stdout` of the same text.
const ERROR: &str = "78f9e3c6a7c202a62346703a2b294a4dcc851625aca9a08006000000ffff";
const STDOUT: &str = "c22a054ccc29f9a52500000000ffff";

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> =
        hex.bytes().map(|digit| u8::try_from((digit as char).to_digit(16).unwrap()).unwrap()).collect();
    digits.chunks(2).map(|pair| pair[0] * 16 + pair[1]).collect()
}

fn opened(id: u32, headers: &str) -> Vec<u8> {
    let payload = [&id.to_be_bytes()[..], &[0; 6], &bytes(headers)].concat();
    let length = u8::try_from(payload.len()).unwrap();
    [&[0x80, 3, 0, SYN_STREAM, 0, 0, 0, length][..], &payload].concat()
}

#[test]
fn headers_are_read_with_the_dictionary() {
    let mut headers = Headers::new().unwrap();
    for (block, kind) in [(ERROR, "error"), (STDOUT, "stdout")] {
        assert_eq!(headers.read(&bytes(block)).unwrap()["streamtype"], kind);
    }
    assert!(headers.read(&[1, 2, 3]).is_err());
}

#[tokio::test]
async fn streams_are_accepted_written_and_closed() {
    let (mut client, server) = tokio::io::duplex(64 * 1024);
    let session = ExecSession { output: Bytes::from_static(b"PONG"), code: 0, streams: [false, true, false] };
    let work = tokio::spawn(async move { serve(server, &session, b"done", Duration::from_secs(60)).await });
    // A ping in between is answered.
    let ping = [0x80, 3, 0, PING, 0, 0, 0, 4, 0, 0, 0, 1];
    client.write_all(&[opened(1, ERROR), ping.to_vec(), opened(3, STDOUT)].concat()).await.unwrap();
    let reply = |id: u8, first: bool| {
        let payload = [&[0, 0, 0, id][..], &no_headers(first)].concat();
        let length = u8::try_from(payload.len()).unwrap();
        [&[0x80, 3, 0, SYN_REPLY, 0, 0, 0, length][..], &payload].concat()
    };
    let output = [0, 0, 0, 3, FIN, 0, 0, 4, b'P', b'O', b'N', b'G'];
    let error = [0, 0, 0, 1, FIN, 0, 0, 4, b'd', b'o', b'n', b'e'];
    let expected = [&reply(1, true)[..], &ping, &reply(3, false), &output, &error].concat();
    let mut read = vec![0; expected.len()];
    client.read_exact(&mut read).await.unwrap();
    assert_eq!(read, expected);
    drop(client);
    // The client has left: there is nobody to write to.
    let _ = work.await.unwrap();
}
