//! Tests of how rules merge, release by release.

use super::*;
use opdev_object::meta::Gvk;

fn rule(groups: &str, resources: &str, verbs: &str) -> Rule {
    let list = |text: &str| text.split(';').map(str::to_owned).collect();
    Rule { groups: list(groups), resources: list(resources), verbs: list(verbs), ..Rule::default() }
}

fn shown(rules: &[Rule], merging: Merging) -> Vec<String> {
    let text = |value: &Value| {
        let items = value.as_array().map(Vec::as_slice).unwrap_or_default();
        items.iter().map(|item| item.as_str().unwrap()).collect::<Vec<_>>().join(";")
    };
    let roles = roles(rules, "manager-role", merging);
    let role = |role: &Value| {
        role["rules"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| {
                let target = if one["nonResourceURLs"].is_null() { "resources" } else { "nonResourceURLs" };
                format!("{}|{}|{}", text(&one["apiGroups"]), text(&one[target]), text(&one["verbs"]))
            })
            .collect::<Vec<_>>()
    };
    roles.iter().flat_map(role).collect()
}

#[test]
fn rules_merge_in_the_order_of_the_newest_release() {
    let rules = [
        rule("apps", "deployments", "get;list"),
        rule("apps", "deployments", "watch;get"),
        rule("apps", "statefulsets", "get;list;watch"),
        rule("batch", "deployments;statefulsets", "watch;list;get"),
        rule("core", "pods", "get"),
        rule("", "pods", "*;list"),
        rule("cache.my.domain", "memcacheds/status;memcacheds", "get"),
    ];
    assert_eq!(
        shown(&rules, Merging::Star),
        [
            "|pods|*",
            "apps;batch|deployments;statefulsets|get;list;watch",
            "cache.my.domain|memcacheds;memcacheds/status|get"
        ]
    );
    assert_eq!(shown(&rules, Merging::Urls)[0], "|pods|*;get;list");
    // Before v0.16.2 the core group by name was another group while rules were merged.
    assert_eq!(shown(&rules, Merging::Groups)[0], "|pods|*;list");
    assert_eq!(shown(&rules, Merging::Groups).len(), 4);
    assert_eq!(shown(&rules, Merging::Verbs).len(), 8);
}

#[test]
fn nothing_is_lost_where_controller_gen_tosses_a_coin() {
    let rules = [rule("a;b", "x", "get"), rule("a", "x", "list"), rule("b", "x", "list")];
    assert_eq!(shown(&rules, Merging::Star), ["a;b|x|get;list"]);
}

#[test]
fn urls_names_and_namespaces() {
    let url = |url: &str| Rule { urls: vec![url.to_owned()], ..rule("", "", "get") };
    let bare = |mut rule: Rule| {
        rule.groups.clear();
        rule.resources.clear();
        rule
    };
    let rules = [bare(url("/metrics")), bare(url("/healthz"))];
    assert_eq!(shown(&rules, Merging::Star), ["|/healthz;/metrics|get"]);
    assert_eq!(shown(&rules, Merging::Groups).len(), 2);
    let mine = Rule { namespace: "park".to_owned(), ..rule("apps", "deployments", "get") };
    let named = Rule { role_name: "other".to_owned(), ..mine.clone() };
    let roles = roles(&[named, mine, rule("", "pods", "get")], "manager-role", Merging::Star);
    let file = file("role.yaml", &roles, "").unwrap().unwrap();
    assert_eq!(file.text.matches("---\n").count(), 3);
    assert!(file.text.starts_with("---\napiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\n"));
    let names: Vec<_> = roles.iter().map(|role| role["metadata"].to_string()).collect();
    assert_eq!(
        names,
        [
            r#"{"name":"manager-role"}"#,
            r#"{"name":"manager-role","namespace":"park"}"#,
            r#"{"name":"other","namespace":"park"}"#
        ]
    );
}

#[test]
fn without_markers_there_is_no_file() {
    assert_eq!(file("role.yaml", &roles(&[], "manager-role", Merging::Star), "").unwrap(), None);
}

#[test]
fn releases_merge_what_they_merge() {
    let found = ["v0.14.0", "v0.16.1", "v0.16.5", "v0.17.0", "v0.21.0", "master"].map(Merging::for_version);
    assert_eq!(
        found,
        [Merging::Verbs, Merging::Groups, Merging::Urls, Merging::Star, Merging::Star, Merging::Star]
    );
}

#[test]
fn charts_need_what_they_give() {
    let memcached = charts::ChartKind {
        gvk: Gvk::new("cache.my.domain", "v1alpha1", "Memcached"),
        creates: vec![
            Gvk::new("apps", "v1", "Deployment"),
            Gvk::new("", "v1", "Service"),
            Gvk::new("", "v1", "Service"),
            Gvk::new("fun.example.com", "v1", "Park"),
            Gvk::new("rbac.authorization.k8s.io", "v1", "ClusterRole"),
        ],
    };
    let (rules, guessed) = charts::rules(&[memcached]);
    assert_eq!(guessed, [Gvk::new("fun.example.com", "v1", "Park")]);
    assert_eq!(
        shown(&rules, Merging::Star),
        [
            "|events|create",
            "|namespaces|get",
            "|secrets;services|*",
            "apps|deployments|*",
            "cache.my.domain|memcacheds;memcacheds/finalizers;memcacheds/status|create;delete;get;list;patch;update;watch",
            "fun.example.com|parks|*",
            "rbac.authorization.k8s.io|clusterroles|*",
        ]
    );
}
