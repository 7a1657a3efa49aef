//! Schemas that the `values.schema.json` of a chart refers to by address. Helm fetches them in every render;
//! here they come from hosts that the user allows, once while opdev runs.

use crate::script::outside;
use opdev_client::recorder::Recorder;
use opdev_helm::engine::Fetch;
use opdev_script::contract::Fetch as Request;
use opdev_sources::Allow;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How long a server has to answer.
const PATIENCE: Duration = Duration::from_secs(15);
/// So many schemas are kept.
const KEPT: usize = 64;

/// Schemas by their addresses.
static SCHEMAS: Mutex<BTreeMap<String, Arc<Vec<u8>>>> = Mutex::new(BTreeMap::new());

/// Fetches a schema from an allowed host. The call belongs to the reconcile that needs it.
pub(super) fn fetching(allow: Allow, recorder: Option<Arc<Recorder>>) -> Arc<Fetch> {
    Arc::new(move |url| {
        let address = url.split('#').next().unwrap_or(url);
        if let Some(known) = kept(|schemas| schemas.get(address).cloned()) {
            return Ok(Vec::clone(&known));
        }
        let found = fetch(address, &allow, recorder.as_deref()).map_err(|why| {
            format!("{address} is not fetched: {why}; the schema may also lie in the chart")
        })?;
        kept(|schemas| {
            if schemas.len() >= KEPT {
                schemas.clear();
            }
            schemas.insert(address.to_owned(), Arc::new(found.clone()));
        });
        Ok(found)
    })
}

fn kept<T>(work: impl FnOnce(&mut BTreeMap<String, Arc<Vec<u8>>>) -> T) -> T {
    work(&mut SCHEMAS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn fetch(address: &str, allow: &Allow, recorder: Option<&Recorder>) -> Result<Vec<u8>, String> {
    let request = Request { url: address.to_owned(), ..Request::default() };
    let answer = outside::fetch(&request, allow, PATIENCE, recorder).map_err(|error| error.to_string())?;
    match answer.status {
        200..=299 => Ok(answer.body.into_bytes()),
        301..=308 => {
            let location = answer.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("location"));
            let to = location.map(|(_, to)| to.as_str()).unwrap_or_default();
            Err(format!("the server sends on to {to}; name that address in the schema"))
        }
        status => Err(format!("the server answers {status}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;

    /// Answers each request in turn; returns the host.
    fn server(answers: &'static [&'static str]) -> (String, std::thread::JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let serve = move || {
            for answer in answers {
                let (mut stream, _) = listener.accept().unwrap();
                let _ = stream.read(&mut [0; 4096]).unwrap();
                stream.write_all(answer.as_bytes()).unwrap();
            }
        };
        (host, std::thread::spawn(serve))
    }

    #[test]
    fn a_schema_comes_from_an_allowed_host_and_only_once() {
        let (host, served) = server(&[
            "HTTP/1.1 302 Found\r\nLocation: https://elsewhere.example.com/s.json\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 4\r\nConnection: close\r\n\r\ntrue",
        ]);
        let address = format!("http://{host}/s.json");
        let refused = fetching(Allow::default(), None)(&address).unwrap_err();
        assert!(refused.contains("add it to `allow.hosts` in opdev.yaml"), "{refused}");
        let fetch = fetching(Allow { hosts: vec![host], ..Allow::default() }, None);
        let elsewhere = fetch(&address).unwrap_err();
        assert!(elsewhere.contains("sends on to https://elsewhere.example.com/s.json"), "{elsewhere}");
        assert!(fetch(&address).unwrap_err().contains("the server answers 404"));
        assert_eq!(fetch(&address).unwrap(), b"true");
        served.join().unwrap();
        assert_eq!(fetch(&format!("{address}#/definitions/a")).unwrap(), b"true", "nobody answers any more");
    }
}
