//! Kinds that a program watches and its cluster does not have, as controller-runtime says it in its log: it
//! asks again every ten seconds, and ends the program after two minutes.

/// The words that controller-runtime writes.
const SIGN: &str = "if kind is a CRD, it should be installed before calling Start";

/// A kind that the cluster does not have.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MissingKind {
    /// Such as `Certificate`.
    pub kind: String,
    /// Such as `cert-manager.io`.
    pub group: String,
    /// Such as `v1`; empty where the program asks for any.
    pub version: String,
}

impl MissingKind {
    /// Reads the text of a log line; kinds without a group are the cluster's own.
    pub(super) fn read(text: &str) -> Option<MissingKind> {
        if !text.contains(SIGN) {
            return None;
        }
        let (_, rest) = text.split_once("no matches for kind \"")?;
        let (kind, rest) = rest.split_once("\" in ")?;
        let quoted = rest.split_once('"')?.1.split_once('"')?.0;
        let (group, version) = match rest.starts_with("version") {
            true => quoted.split_once('/')?,
            false => (quoted, ""),
        };
        let own = |text: &str| text.to_owned();
        Some(MissingKind { kind: own(kind), group: own(group), version: own(version) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_read_from_what_controller_runtime_says() {
        let read = |text: &str| MissingKind::read(text).map(|one| [one.kind, one.group, one.version]);
        let of = |kind: &str, group: &str, version: &str| Some([kind, group, version].map(str::to_owned));
        let line = "if kind is a CRD, it should be installed before calling Start: no matches for kind \"Certificate\" in \
                    version \"cert-manager.io/v1\" kind=Certificate.cert-manager.io";
        assert_eq!(read(line), of("Certificate", "cert-manager.io", "v1"));
        let any = line.replace("version \"cert-manager.io/v1\"", "group \"cert-manager.io\"");
        assert_eq!(read(&any), of("Certificate", "cert-manager.io", ""));
        assert_eq!(read("no matches for kind \"Certificate\" in version \"cert-manager.io/v1\""), None);
        assert_eq!(read(&line.replace("cert-manager.io/v1", "v1")), None);
    }
}
