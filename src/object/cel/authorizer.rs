//! `authorizer` of conditions: a question is put together call by call, and somebody else answers it.

pub(super) const AUTHORIZER: &str = "kubernetes.authorization.Authorizer";
pub(super) const PATH: &str = "kubernetes.authorization.PathCheck";
pub(super) const GROUP: &str = "kubernetes.authorization.GroupCheck";
pub(super) const RESOURCE: &str = "kubernetes.authorization.ResourceCheck";
pub(super) const DECISION: &str = "kubernetes.authorization.Decision";
/// A request whose permission is asked about.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Asked {
    /// Such as `get`.
    pub verb: String,
    /// API group.
    pub group: String,
    /// Plural.
    pub resource: String,
    /// Subresource, `""` for none.
    pub subresource: String,
    /// Namespace, `""` for all.
    pub namespace: String,
    /// Name, `""` for all.
    pub name: String,
    /// A path that is no resource.
    pub path: Option<String>,
    /// Namespace and name of the ServiceAccount, where it is not the one who makes the request.
    pub service_account: Option<(String, String)>,
}

/// The decision on a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// It is.
    pub allowed: bool,
    /// Why, where that is known.
    pub reason: String,
}

/// Knows who may do what.
pub trait Authorizer {
    /// Decides.
    fn decide(&self, wanted: &Asked) -> Verdict;
    /// The resource that the request itself is about.
    fn request_resource(&self) -> Asked;
}

/// A question that is put together, or its answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Check {
    /// The kind, one of those above.
    pub(super) kind: &'static str,
    pub(super) asked: Asked,
    pub(super) verdict: Verdict,
}

impl Check {
    /// A check of a kind, about this request.
    pub(super) fn new(kind: &'static str, asked: Asked) -> Self {
        Check { kind, asked, verdict: Verdict::default() }
    }
}
