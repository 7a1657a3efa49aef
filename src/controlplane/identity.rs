//! Who asks: the user that the server found in a client certificate, in a token, or nowhere.
//! Never decides what somebody may do; there is no authorization yet.

/// The one who makes a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct User {
    /// The name: the certificate's common name, or `system:anonymous`.
    pub name: String,
    /// The groups: the certificate's organizations and what every user of that sort is in.
    pub groups: Vec<String>,
}

impl User {
    /// Somebody who is in the group of all authenticated users too.
    pub fn authenticated<I, S>(name: impl Into<String>, groups: I) -> Self
    where
        I: IntoIterator<Item = S>,
        S: Into<String>,
    {
        let mut groups: Vec<String> = groups.into_iter().map(Into::into).collect();
        if !groups.iter().any(|group| group == AUTHENTICATED) {
            groups.push(AUTHENTICATED.to_owned());
        }
        User { name: name.into(), groups }
    }

    /// The one who owns this process, and whoever holds the kubeconfig.
    pub fn admin() -> Self {
        User::authenticated("kubernetes-admin", ["system:masters"])
    }

    /// A controller, as kube-controller-manager runs it with its own service account.
    pub fn controller(name: &str) -> Self {
        User::authenticated(
            format!("system:serviceaccount:kube-system:{name}"),
            ["system:serviceaccounts", "system:serviceaccounts:kube-system"],
        )
    }

    /// Nobody known; may read health and version.
    pub fn anonymous() -> Self {
        User { name: "system:anonymous".to_owned(), groups: vec!["system:unauthenticated".to_owned()] }
    }

    /// Whether nobody is known.
    pub fn is_anonymous(&self) -> bool {
        !self.groups.iter().any(|group| group == AUTHENTICATED)
    }
}

const AUTHENTICATED: &str = "system:authenticated";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_anonymous_user_is_anonymous() {
        assert!(User::anonymous().is_anonymous());
        assert!(!User::admin().is_anonymous());
        let user = User::authenticated("jane", ["dev"]);
        assert_eq!(user.groups, ["dev", "system:authenticated"]);
        assert_eq!(
            User::controller("job-controller").name,
            "system:serviceaccount:kube-system:job-controller"
        );
    }
}
