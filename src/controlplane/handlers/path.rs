//! From a path to what it names. Never looks a resource up.

use opdev_object::go::duration;

/// The parts of a path under `/api/` or `/apis/`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    pub group: String,
    pub version: String,
    pub namespace: Option<String>,
    pub resource: String,
    pub name: Option<String>,
    pub subresource: Option<String>,
    /// The old form `/api/v1/watch/…`.
    pub(crate) watch: bool,
}

/// Undoes percent-encoding; `None` where it is no UTF-8.
pub fn decoded(text: &str) -> Option<String> {
    if !text.contains('%') {
        return Some(text.to_owned());
    }
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let hex = [bytes.next()?, bytes.next()?];
        out.push(u8::from_str_radix(std::str::from_utf8(&hex).ok()?, 16).ok()?);
    }
    String::from_utf8(out).ok()
}

impl Target {
    /// Reads a path; `None` where it names no resource.
    pub(crate) fn parse(path: &str) -> Option<Self> {
        let parts: Option<Vec<String>> =
            path.split('/').filter(|part| !part.is_empty()).map(decoded).collect();
        let mut parts = parts?.into_iter();
        let (group, version) = match parts.next()?.as_str() {
            "api" => (String::new(), parts.next()?),
            "apis" => (parts.next()?, parts.next()?),
            _ => return None,
        };
        let mut rest: Vec<String> = parts.collect();
        let watch = rest.first().is_some_and(|first| first == "watch");
        if watch {
            rest.remove(0);
        }
        let mut namespace = None;
        // `namespaces/NAME` is a namespace, and so are its own subresources; what else follows lives in it.
        if rest.first().is_some_and(|first| first == "namespaces") && rest.len() > 2 {
            let own =
                group.is_empty() && matches!(rest[2].as_str(), "status" | "finalize") && rest.len() == 3;
            if !own {
                namespace = Some(rest[1].clone());
                rest.drain(..2);
            }
        }
        let mut rest = rest.into_iter();
        let resource = rest.next()?;
        let name = rest.next();
        let subresource = rest.next();
        // A path behind a subresource belongs to proxies, which are not served.
        if rest.next().is_some() {
            return None;
        }
        Some(Target { group, version, namespace, resource, name, subresource, watch })
    }
}

/// The query of a request.
#[derive(Clone, Debug, Default)]
pub struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a raw query string.
    pub fn parse(raw: &str) -> Self {
        let pair = |pair: &str| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            Some((decoded(&name.replace('+', " "))?, decoded(&value.replace('+', " "))?))
        };
        Query(raw.split('&').filter(|p| !p.is_empty()).filter_map(pair).collect())
    }

    /// A parameter's first value, unless empty.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str()).filter(|v| !v.is_empty())
    }

    /// All values of a parameter.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(key, value)| key == name && !value.is_empty()).map(|(_, v)| v.as_str())
    }

    /// A boolean; `None` where it is not there. Present without a value means yes.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let (_, value) = self.0.iter().find(|(key, _)| key == name)?;
        Some(opdev_object::api_path::is_true(value))
    }

    /// Why `timeout` is no duration as Go writes them.
    pub fn wrong_timeout(&self) -> Option<String> {
        let said = self.get("timeout")?;
        let why = duration::parse(said).err()?;
        Some(format!("invalid timeout specified in the request URL - {why}"))
    }

    /// A whole number, where it is one.
    pub fn number(&self, name: &str) -> Option<i64> {
        self.get(name)?.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(path: &str) -> (Option<String>, String, Option<String>, Option<String>) {
        let t = Target::parse(path).unwrap();
        (t.namespace, t.resource, t.name, t.subresource)
    }

    #[test]
    fn paths_name_things() {
        let s = |text: &str| Some(text.to_owned());
        assert_eq!(target("/api/v1/pods"), (None, "pods".into(), None, None));
        assert_eq!(
            target("/api/v1/namespaces/a/pods/b/status"),
            (s("a"), "pods".into(), s("b"), s("status"))
        );
        assert_eq!(target("/api/v1/namespaces/a"), (None, "namespaces".into(), s("a"), None));
        assert_eq!(
            target("/api/v1/namespaces/a/finalize"),
            (None, "namespaces".into(), s("a"), s("finalize"))
        );
        assert_eq!(target("/api/v1/namespaces/a/pods"), (s("a"), "pods".into(), None, None));
        assert_eq!(
            target("/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Aadmin"),
            (None, "clusterroles".into(), s("system:admin"), None)
        );
        assert!(Target::parse("/api/v1/watch/pods").unwrap().watch);
        assert!(Target::parse("/apis/apps/v1").is_none());
    }

    #[test]
    fn timeouts_are_durations_of_go() {
        let wrong = |text: &str| Query(vec![("timeout".to_owned(), text.to_owned())]).wrong_timeout();
        for fine in ["0", "0s", "1h30m", "-1.5s", "+.5ms", "10µs"] {
            assert_eq!(wrong(fine), None, "{fine}");
        }
        let said = |why: &str| Some(format!("invalid timeout specified in the request URL - time: {why}"));
        assert_eq!(wrong("invalid"), said("invalid duration \"invalid\""));
        assert_eq!(wrong("10"), said("missing unit in duration \"10\""));
        assert_eq!(wrong("1d"), said("unknown unit \"d\" in duration \"1d\""));
        assert_eq!(wrong("1.2.3s"), said("missing unit in duration \"1.2.3s\""));
    }

    #[test]
    fn queries_are_read() {
        let query = Query::parse("a=1&b&labelSelector=app%3Dweb%2Ctier%20in%20%28a%29&dryRun=All&dryRun=All");
        assert_eq!(query.get("labelSelector"), Some("app=web,tier in (a)"));
        assert_eq!((query.flag("b"), query.flag("c"), query.number("a")), (Some(true), None, Some(1)));
        assert_eq!(query.all("dryRun").count(), 2);
    }
}
