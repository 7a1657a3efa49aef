//! Proxies of the environment: what goes through them, how, and what is said where they are down.

use super::{Desk, archive, said};
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::Output;
use std::sync::mpsc;

/// A server that answers everything with a chart, and tells the head of each request. It speaks no TLS.
fn server() -> (String, mpsc::Receiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (tell, told) = mpsc::channel();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(mut stream) = stream else { return };
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") && stream.read(&mut byte).is_ok_and(|count| count == 1) {
                head.push(byte[0]);
                if head == [0x16] {
                    break;
                }
            }
            if head == [0x16] {
                continue;
            }
            let body = archive("web", "1.0.0");
            let _ = write!(stream, "HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n", body.len());
            let _ = stream.write_all(&body);
            if tell.send(String::from_utf8_lossy(&head).into_owned()).is_err() {
                return;
            }
        }
    });
    (address, told)
}

fn render(desk: &Desk, chart: &str, proxies: &[(&str, &str)]) -> Output {
    let mut command = desk.command(std::path::Path::new(env!("CARGO_BIN_EXE_opdev")));
    command.env_remove("NO_PROXY");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "no_proxy", "all_proxy"] {
        command.env_remove(name);
    }
    command.envs(proxies.iter().copied()).args(["render", "x", chart]).output().unwrap()
}

#[test]
fn plain_http_goes_by_an_absolute_address() {
    let desk = Desk::new("");
    let (address, told) = server();
    let by = format!("http://ann:p%20w@{address}");
    let output = render(&desk, "http://charts.invalid/web-1.0.0.tgz", &[("HTTP_PROXY", &by)]);
    let text = said(&output);
    assert!(output.status.success() && text.contains("of: \"1.0.0\""), "{text}");
    let head = told.recv().unwrap();
    assert!(head.starts_with("GET http://charts.invalid/web-1.0.0.tgz HTTP/1.1\r\n"), "{head}");
    // ann:p w
    assert!(head.contains("Proxy-Authorization: Basic YW5uOnAgdw=="), "{head}");
    assert!(head.to_lowercase().contains("host: charts.invalid\r\n"), "{head}");
}

#[test]
fn tls_goes_by_a_tunnel_and_this_machine_by_no_proxy() {
    let desk = Desk::new("");
    let (address, told) = server();
    let by = format!("http://{address}");
    render(&desk, "oci://registry.invalid:5000/web", &[("HTTPS_PROXY", &by)]);
    let head = told.recv().unwrap();
    assert!(head.starts_with("CONNECT registry.invalid:5000 HTTP/1.1\r\n"), "{head}");
    // A registry of this machine without TLS is asked without, as `opdev image` does.
    let (registry, asked) = server();
    for host in [registry.clone(), registry.replace("127.0.0.1", "localhost")] {
        let both = [("HTTPS_PROXY", by.as_str()), ("HTTP_PROXY", by.as_str())];
        let text = said(&render(&desk, &format!("oci://{host}/web"), &both));
        let head = asked.try_recv().unwrap_or_else(|_| panic!("nobody asked: {text}"));
        assert!(head.starts_with("GET /v2/web/tags/list"), "{head}");
    }
    assert!(told.try_recv().is_err(), "this machine was asked for by the proxy");
}

#[test]
fn a_proxy_that_is_down_is_named() {
    let desk = Desk::new("");
    let gone = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let by = format!("http://ann:sesame@{gone}");
    for (chart, name) in
        [("oci://registry.invalid/web", "HTTPS_PROXY"), ("http://charts.invalid/web-1.0.0.tgz", "HTTP_PROXY")]
    {
        let text = said(&render(&desk, chart, &[(name, &by)]));
        assert!(text.contains(&format!("through the proxy http://{gone}/ of {name}")), "{text}");
        assert!(!text.contains("sesame") && !text.contains("--plain-http"), "{text}");
    }
}
