//! Why an API server cannot be used, put into words: what failed, where that is written, why, and what to do.
//! Reads error texts of the transport; never repeats a credential.

use std::fmt;
use std::path::Path;

/// The fault that kept a call from being answered as it should.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nobody answers.
    Unreachable,
    /// Somebody answers whose certificate cannot be trusted, or who does not trust ours.
    Untrusted,
    /// The API server does not know who asks.
    Unauthorized,
    /// There is no credential to ask with.
    NoCredential,
}

/// An explained failure.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    /// The sort.
    pub(crate) fault: Fault,
    /// The step that failed, and why.
    pub(crate) what: String,
    /// Where that is written, such as `user jane in /home/jane/.kube/config`.
    pub(crate) place: String,
    /// The fix.
    pub(crate) hint: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if !self.place.is_empty() {
            write!(f, "\n  where: {}", self.place)?;
        }
        if !self.hint.is_empty() {
            write!(f, "\n  to do: {}", self.hint)?;
        }
        Ok(())
    }
}

impl std::error::Error for Problem {}

/// The names that explanations use.
#[derive(Clone, Debug, Default)]
pub(crate) struct Names {
    /// The context.
    pub(crate) context: String,
    /// Its cluster entry.
    pub(crate) cluster: String,
    /// Its user entry.
    pub(crate) user: String,
    /// The server's address, without user and password.
    pub(crate) server: String,
    /// Where the cluster entry is.
    pub(crate) cluster_file: String,
    /// Where the user entry is.
    pub(crate) user_file: String,
    /// The other way out of an error: `OR_EMBEDDED`, or nothing.
    pub(crate) or: &'static str,
}

/// The other way out for commands that have this flag.
pub(super) const OR_EMBEDDED: &str = ", or start with --embedded to work without a cluster";

impl Names {
    /// `cluster prod in /home/jane/.kube/config`.
    pub(crate) fn cluster_place(&self) -> String {
        format!("cluster {} in {}", self.cluster, self.cluster_file)
    }

    /// `user jane in /home/jane/.kube/config`.
    pub(crate) fn user_place(&self) -> String {
        if self.user.is_empty() {
            return format!("context {} names no user", self.context);
        }
        format!("user {} in {}", self.user, self.user_file)
    }

    /// The API server answered 401.
    pub(crate) fn refused(&self, credential: &str) -> Problem {
        let (context, server) = (&self.context, &self.server);
        Problem {
            fault: Fault::Unauthorized,
            what: format!(
                "the API server of context {context} ({server}) refuses the credentials (401 Unauthorized): {credential}"
            ),
            place: self.user_place(),
            hint: format!(
                "log in again as you do for kubectl, check with `kubectl --context {context} auth whoami`{}",
                self.or
            ),
        }
    }

    /// A call that got no answer; `why` is the transport's chain of errors.
    pub(crate) fn unanswered(&self, why: &str) -> Problem {
        let (context, server) = (&self.context, &self.server);
        let check = format!("check it with `kubectl --context {context} version`{}", self.or);
        let not_trusted = |what: &str, place: String, hint: &str| Problem {
            fault: Fault::Untrusted,
            what: format!("{what} (context {context}, {server})"),
            place,
            hint: format!("{hint}{}", self.or),
        };
        let has = |text: &str| why.contains(text);
        if has("UnknownIssuer") || has("CaUsedAsEndEntity") || has("BadSignature") {
            return not_trusted(
                "the API server's certificate is signed by an authority that the kubeconfig does not name",
                self.cluster_place(),
                "put the cluster's own authority into certificate-authority-data; after a cluster was made anew, write its kubeconfig anew",
            );
        }
        if has("NotValidForName") || has("certificate not valid for name") {
            let valid = why.split_once("certificate is only valid for ").map_or("", |(_, names)| names);
            let names = if valid.is_empty() { String::new() } else { format!("; it is for {}", cut(valid)) };
            return not_trusted(
                &format!("the API server's certificate is not for this name{names}"),
                self.cluster_place(),
                "set tls-server-name to a name that the certificate has",
            );
        }
        if has("certificate expired") || has("invalid peer certificate: Expired") {
            return not_trusted(
                "the API server's certificate has expired",
                self.cluster_place(),
                "have the cluster's certificates renewed",
            );
        }
        if has("received fatal alert") {
            let alert = why.split_once("received fatal alert: ").map_or("", |(_, alert)| alert);
            return not_trusted(
                &format!("the API server refuses the client certificate: {}", cut(alert)),
                self.user_place(),
                "write the user's client certificate anew",
            );
        }
        if has("InvalidContentType") {
            return not_trusted(
                "the server does not speak TLS",
                self.cluster_place(),
                "write http:// in its address if that is meant",
            );
        }
        Problem {
            fault: Fault::Unreachable,
            what: format!("the API server of context {context} ({server}) does not answer: {}", reason(why)),
            place: self.cluster_place(),
            hint: check,
        }
    }

    /// The user's credential cannot be had.
    pub(crate) fn no_credential(&self, what: &str, hint: &str) -> Problem {
        Problem {
            fault: Fault::NoCredential,
            what: format!("no credential for context {}: {what}", self.context),
            place: self.user_place(),
            hint: format!("{hint}{}", self.or),
        }
    }
}

/// The innermost cause, which is the one that helps.
fn reason(why: &str) -> String {
    let plain = [
        ("Connection refused", "the connection was refused: nothing listens there"),
        ("No route to host", "there is no route to it"),
        ("Network is unreachable", "the network is unreachable"),
        ("failed to lookup address", "its name cannot be resolved"),
        ("dns error", "its name cannot be resolved"),
        ("Connection reset", "the connection was reset"),
        ("deadline has elapsed", "the time ran out"),
        ("timed out", "the time ran out"),
        ("tunnel error", "the proxy does not let the connection through"),
        ("proxy", "the proxy does not let the connection through"),
    ];
    let known = plain.iter().find(|(text, _)| why.contains(text)).map(|(_, words)| *words);
    known.map_or_else(|| cut(why), str::to_owned)
}

fn cut(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default();
    line.chars().take(300).collect()
}

/// An address without user and password.
pub(crate) fn bare(address: &str) -> String {
    match address.split_once("://") {
        Some((scheme, rest)) => {
            let end = rest.find('/').unwrap_or(rest.len());
            let host = rest[..end].rsplit_once('@').map_or(&rest[..end], |(_, host)| host);
            format!("{scheme}://{host}{}", &rest[end..])
        }
        None => address.to_owned(),
    }
}

/// A path as the user knows it.
pub(crate) fn shown(path: &Path) -> String {
    path.display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    fn names() -> Names {
        Names {
            context: "prod".into(),
            cluster: "c".into(),
            user: "jane".into(),
            server: "https://10.0.0.1:6443".into(),
            cluster_file: "/k/config".into(),
            user_file: "/k/config".into(),
            or: OR_EMBEDDED,
        }
    }

    #[test]
    fn each_failure_says_what_where_and_what_to_do() {
        for (why, fault, what, place) in [
            (
                "client error (Connect): tcp connect error: Connection refused (os error 111)",
                Fault::Unreachable,
                "nothing listens there",
                "cluster c in /k/config",
            ),
            (
                "invalid peer certificate: UnknownIssuer",
                Fault::Untrusted,
                "does not name",
                "cluster c in /k/config",
            ),
            (
                "invalid peer certificate: NotValidForName",
                Fault::Untrusted,
                "not for this name",
                "cluster c in /k/config",
            ),
            (
                "received fatal alert: CertificateExpired",
                Fault::Untrusted,
                "CertificateExpired",
                "user jane in /k/config",
            ),
        ] {
            let problem = names().unanswered(why);
            assert_eq!(problem.fault, fault, "{why}");
            let text = problem.to_string();
            assert!(text.contains(what) && text.contains(place) && text.contains("--embedded"), "{text}");
        }
        expect![[r#"
            the API server of context prod (https://10.0.0.1:6443) refuses the credentials (401 Unauthorized): the token
              where: user jane in /k/config
              to do: log in again as you do for kubectl, check with `kubectl --context prod auth whoami`, or start with --embedded to work without a cluster"#]]
        .assert_eq(&names().refused("the token").to_string());
    }

    #[test]
    fn addresses_lose_their_passwords() {
        assert_eq!(bare("http://a:b@proxy:3128/x"), "http://proxy:3128/x");
        assert_eq!(bare("https://10.0.0.1:6443"), "https://10.0.0.1:6443");
    }
}
