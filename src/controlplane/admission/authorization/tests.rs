//! Requests that rules allow, words of refusals, and rights that may be granted, over roles in memory.

use super::*;
use expect_test::expect;
use std::collections::BTreeMap;

/// Roles and bindings by `kind namespace/name`.
#[derive(Default)]
struct Roles(BTreeMap<String, Arc<Value>>);

impl Roles {
    fn from_yaml(yaml: &str) -> Self {
        let mut roles = Roles::default();
        for object in yaml.split("---\n").map(|one| opdev_object::yaml::from_str(one).unwrap()) {
            let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
            let key = format!("{} {}/{}", object["kind"].as_str().unwrap(), text("namespace"), text("name"));
            roles.0.insert(key, Arc::new(object.clone()));
        }
        roles
    }

    fn all(&self, prefix: &str) -> Vec<Arc<Value>> {
        self.0.iter().filter(|(key, _)| key.starts_with(prefix)).map(|(_, found)| found.clone()).collect()
    }
}

impl Policy for Roles {
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>> {
        self.0.get(&format!("Role {namespace}/{name}")).cloned()
    }
    fn cluster_role(&self, name: &str) -> Option<Arc<Value>> {
        self.0.get(&format!("ClusterRole /{name}")).cloned()
    }
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>> {
        self.all(&format!("RoleBinding {namespace}/"))
    }
    fn cluster_role_bindings(&self) -> Vec<Arc<Value>> {
        self.all("ClusterRoleBinding ")
    }
}

const ROLES: &str = r#"
kind: ClusterRole
metadata: {name: workloads}
rules:
- {apiGroups: [apps], resources: [deployments, "*/scale"], verbs: [get, list, patch]}
- {apiGroups: [""], resources: [configmaps], resourceNames: [one, two], verbs: [get, update]}
- {nonResourceURLs: ["/metrics", "/debug/*"], verbs: [get]}
---
kind: ClusterRoleBinding
metadata: {name: everywhere}
subjects: [{kind: ServiceAccount, namespace: a, name: operator}]
roleRef: {kind: ClusterRole, name: workloads}
---
kind: Role
metadata: {namespace: a, name: pods}
rules: [{apiGroups: ["*"], resources: [pods], verbs: ["*"]}]
---
kind: RoleBinding
metadata: {namespace: a, name: pods}
subjects: [{kind: Group, name: "system:serviceaccounts:a"}, {kind: User, name: jane}]
roleRef: {kind: Role, name: pods}
---
kind: RoleBinding
metadata: {namespace: b, name: own}
subjects: [{kind: ServiceAccount, name: operator}, {kind: ServiceAccount, namespace: a, name: operator}]
roleRef: {kind: Role, name: gone}
---
kind: ClusterRoleBinding
metadata: {name: lost}
subjects: [{kind: User, name: jane}]
roleRef: {kind: ClusterRole, name: gone}
"#;

/// `verb group:resource/subresource namespace/name`, or `verb /path`.
fn wanted(text: &str) -> Attributes {
    let mut words = text.split(' ');
    let verb = words.next().unwrap();
    let what = words.next().unwrap();
    if what.starts_with('/') {
        return Attributes { verb: verb.to_owned(), path: Some(what.to_owned()), ..Attributes::default() };
    }
    let (group, resource) = what.split_once(':').unwrap();
    let (resource, sub) = resource.split_once('/').unwrap_or((resource, ""));
    let (namespace, name) = words.next().unwrap_or("/").split_once('/').unwrap();
    let mut wanted = Attributes::on(verb, group, resource, namespace, name);
    wanted.subresource = sub.to_owned();
    wanted
}

#[test]
fn rules_allow_what_they_name_and_nothing_else() {
    let roles = Roles::from_yaml(ROLES);
    let user = User::service_account("a", "operator");
    for (allowed, text) in [
        (true, "get apps:deployments c/x"),
        (true, "list apps:deployments"),
        (false, "watch apps:deployments c/"),
        (false, "get apps:deployments/status c/x"),
        (true, "patch apps:statefulsets/scale c/x"),
        (false, "patch apps:statefulsets c/x"),
        (false, "get :deployments c/x"),
        (true, "get :configmaps c/one"),
        (false, "get :configmaps c/three"),
        (false, "get :configmaps c/"),
        (true, "get /metrics"),
        (true, "get /debug/pprof"),
        (false, "get /debug"),
        (false, "post /metrics"),
        (true, "deletecollection :pods a/"),
        (true, "impersonate x.io:pods a/p"),
        (false, "get :pods/log a/p"),
        (false, "get :pods c/p"),
        (false, "get :pods"),
    ] {
        assert_eq!(decide(&roles, &user, &wanted(text)).allowed, allowed, "{text}");
    }
    assert!(decide(&roles, &User::admin(), &wanted("delete :nodes /n")).allowed);
    assert!(!decide(&roles, &User::authenticated("x", ["dev"]), &wanted("get :pods a/p")).allowed);
}

#[test]
fn a_decision_says_which_binding_or_which_roles_are_missing() {
    let roles = Roles::from_yaml(ROLES);
    let user = User::service_account("a", "operator");
    assert_eq!(
        decide(&roles, &user, &wanted("get apps:deployments c/x")).reason,
        r#"RBAC: allowed by ClusterRoleBinding "everywhere" of ClusterRole "workloads" to ServiceAccount "operator/a""#
    );
    assert_eq!(
        decide(&roles, &user, &wanted("get :pods a/x")).reason,
        r#"RBAC: allowed by RoleBinding "pods/a" of Role "pods" to Group "system:serviceaccounts:a""#
    );
    assert_eq!(
        decide(&roles, &user, &wanted("get :pods b/x")).reason,
        r#"RBAC: role.rbac.authorization.k8s.io "gone" not found"#
    );
    let own = User::service_account("b", "operator");
    assert!(!decide(&roles, &own, &wanted("get :pods b/x")).reason.is_empty());
    let jane = User::authenticated("jane", Vec::<String>::new());
    let (held, missing) = rules_for(&roles, &jane, "a");
    assert_eq!((held.len(), missing.len()), (1, 1));
    expect![[r#"clusterrole.rbac.authorization.k8s.io "gone" not found"#]]
        .assert_eq(rules_review(&roles, &jane, "a")["evaluationError"].as_str().unwrap());
    assert_eq!(
        wanted("get :pods/log a/x").cannot(&jane),
        r#"User "jane" cannot get resource "pods/log" in API group "" in the namespace "a""#
    );
    assert_eq!(wanted("get /x").cannot(&jane), r#"User "jane" cannot get path "/x""#);
}

#[test]
fn nobody_grants_what_he_does_not_hold() {
    let roles = Roles::from_yaml(ROLES);
    let user = User::service_account("a", "operator");
    let grant = |rules: &str| {
        let role = opdev_object::yaml::from_str(&format!("rules: {rules}")).unwrap();
        let authority = Attributes::on("escalate", GROUP, "roles", "a", "r");
        let grant = Grant { user: &user, namespace: "a", role: &role, authority };
        check_grant(&roles, &grant).map_err(|escalation| escalation.to_string())
    };
    assert_eq!(grant("[{apiGroups: [apps], resources: [deployments], verbs: [list, get]}]"), Ok(()));
    assert!(grant("[{apiGroups: [x], resources: [deployments/scale], verbs: [get]}]").is_err());
    assert_eq!(grant("[{apiGroups: [apps], resources: [statefulsets/scale], verbs: [get]}]"), Ok(()));
    assert_eq!(grant("[{nonResourceURLs: [/debug/x], verbs: [get]}]"), Ok(()));
    assert_eq!(
        grant(
            r#"[{apiGroups: [""], resources: [configmaps], resourceNames: [one, three], verbs: [get]},
                {apiGroups: [b], resources: [foos, bars], verbs: [get, list]}, {nonResourceURLs: [/x], verbs: [get]}]"#
        ),
        Err("user \"system:serviceaccount:a:operator\" (groups=[\"system:serviceaccounts\" \
             \"system:serviceaccounts:a\" \"system:authenticated\"]) is attempting to grant RBAC permissions not \
             currently held:\n\
             {APIGroups:[\"\"], Resources:[\"configmaps\"], ResourceNames:[\"three\"], Verbs:[\"get\"]}\n\
             {APIGroups:[\"b\"], Resources:[\"bars\"], Verbs:[\"get\" \"list\"]}\n\
             {APIGroups:[\"b\"], Resources:[\"foos\"], Verbs:[\"get\" \"list\"]}\n\
             {NonResourceURLs:[\"/x\"], Verbs:[\"get\"]}"
            .to_owned())
    );
    assert!(full_authority(&roles, &User::admin()) && !full_authority(&roles, &user));
}
