//! The part of an object that a write is about.

/// The part of an object that a request writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// The object; its status stays where that is a subresource.
    Main,
    /// Only the status.
    Status,
    /// The number of replicas, through the scale subresource.
    Scale,
    /// A pod's node, through the binding subresource.
    Binding,
    /// Only `spec.finalizers` of a namespace.
    Finalize,
    /// Only `spec.ephemeralContainers` of a pod.
    EphemeralContainers,
    /// Only the resources of a pod's containers.
    Resize,
    /// Only the conditions of a signing request.
    Approval,
}

impl Part {
    /// The part a subresource path writes; `None` where the subresource is no part of the object.
    pub fn of_subresource(name: &str) -> Option<Part> {
        Some(match name {
            "status" => Part::Status,
            "finalize" => Part::Finalize,
            "ephemeralcontainers" => Part::EphemeralContainers,
            "resize" => Part::Resize,
            "approval" => Part::Approval,
            _ => return None,
        })
    }

    /// The name of the subresource.
    pub fn subresource(self) -> Option<&'static str> {
        match self {
            Part::Main => None,
            Part::Status => Some("status"),
            Part::Scale => Some("scale"),
            Part::Binding => Some("binding"),
            Part::Finalize => Some("finalize"),
            Part::EphemeralContainers => Some("ephemeralcontainers"),
            Part::Resize => Some("resize"),
            Part::Approval => Some("approval"),
        }
    }
}
