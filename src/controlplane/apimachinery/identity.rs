//! The user who asks: found in a client certificate, in a token, or nowhere. Never decides what somebody may
//! do; `authorization` does.

use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The one who makes a request.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// The name: the certificate's common name, or `system:anonymous`.
    pub name: String,
    /// A ServiceAccount's uid, or what the request impersonates; empty where there is none.
    pub uid: String,
    /// The groups: the certificate's organizations and what every user of that sort is in.
    pub groups: Vec<String>,
    /// Other facts about the user, such as the credential's id.
    pub extra: BTreeMap<String, Vec<String>>,
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
        User { name: name.into(), groups, ..User::default() }
    }

    /// A ServiceAccount, as its tokens say who they are for.
    pub fn service_account(namespace: &str, name: &str) -> Self {
        let all = "system:serviceaccounts".to_owned();
        let own = format!("{all}:{namespace}");
        User::authenticated(service_account_name(namespace, name), [all, own])
    }

    /// As `userInfo` of reviews has it.
    pub fn info(&self) -> Value {
        let mut info = json!({"username": self.name, "groups": self.groups});
        if !self.uid.is_empty() {
            info["uid"] = Value::from(self.uid.as_str());
        }
        if !self.extra.is_empty() {
            info["extra"] = json!(self.extra);
        }
        info
    }

    /// The owner of this process, and everybody who has the kubeconfig.
    pub fn admin() -> Self {
        User::authenticated("kubernetes-admin", ["system:masters"])
    }

    /// A controller, as kube-controller-manager runs it with its own service account.
    pub fn controller(name: &str) -> Self {
        User::service_account("kube-system", name)
    }

    /// Nobody known; may read health and version.
    pub fn anonymous() -> Self {
        let groups = vec!["system:unauthenticated".to_owned()];
        User { name: ANONYMOUS.to_owned(), groups, ..User::default() }
    }

    /// Returns true if nobody is known.
    pub fn is_anonymous(&self) -> bool {
        !self.groups.iter().any(|group| group == AUTHENTICATED)
    }
}

/// The key of `extra` for the id of what somebody showed.
pub const CREDENTIAL: &str = "authentication.kubernetes.io/credential-id";
/// Everybody who is known.
pub const AUTHENTICATED: &str = "system:authenticated";
/// Whoever is not.
pub const ANONYMOUS: &str = "system:anonymous";
const SERVICE_ACCOUNT: &str = "system:serviceaccount:";

/// The user name of a ServiceAccount.
pub fn service_account_name(namespace: &str, name: &str) -> String {
    format!("{SERVICE_ACCOUNT}{namespace}:{name}")
}

/// Namespace and name of the ServiceAccount that a user name is for.
pub fn service_account_of(user: &str) -> Option<(&str, &str)> {
    let (namespace, name) = user.strip_prefix(SERVICE_ACCOUNT)?.split_once(':')?;
    (!namespace.is_empty() && !name.is_empty() && !name.contains(':')).then_some((namespace, name))
}

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
