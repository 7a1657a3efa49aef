//! `Impersonate-User` and what goes with it: who somebody wants to be, and whether he may.
//! Knows the verb `impersonate` and the constrained modes of Kubernetes 1.36 (`impersonate:user-info`,
//! `impersonate-on:user-info:list` and their like).

use http::HeaderMap;
use opdev_admission::authorization::Attributes;
use opdev_apimachinery::error::Status;
use opdev_apimachinery::identity::{ANONYMOUS, AUTHENTICATED, User, service_account_of};
use opdev_handlers::path::decoded;
use opdev_registry::{Registry, forbidden};
use std::borrow::Cow;
use std::collections::BTreeMap;

const UNAUTHENTICATED: &str = "system:unauthenticated";
const IDENTITY: &str = "authentication.k8s.io";

/// The values of the impersonation headers.
#[derive(Debug, Default)]
struct Asked {
    name: String,
    uid: String,
    groups: Vec<String>,
    extra: BTreeMap<String, Vec<String>>,
}

/// The user that the request counts for: the one the headers name, where `user` may impersonate that one;
/// else `user`.
pub(super) fn impersonated<'a>(
    registry: &Registry,
    user: &'a User,
    headers: &HeaderMap,
    wanted: &dyn Fn() -> Attributes,
) -> Result<Cow<'a, User>, Status> {
    let Some(asked) = asked(headers)? else { return Ok(Cow::Borrowed(user)) };
    let wanted = wanted();
    let allowed = |attributes: &Attributes| registry.authorize(user, attributes);
    let legacy = as_a_whole(&asked).iter().try_for_each(allowed);
    if let Err(refusal) = legacy {
        let Some(mode) = mode(&asked) else { return Err(refusal) };
        let mut on = wanted.clone();
        on.verb = format!("impersonate-on:{mode}:{}", wanted.verb);
        allowed(&on)?;
        constrained(&asked, mode).iter().try_for_each(|attributes| match unfit(attributes) {
            Some(why) => Err(forbidden(user, attributes, why)),
            None => allowed(attributes),
        })?;
    }
    Ok(Cow::Owned(become_of(asked)))
}

fn asked(headers: &HeaderMap) -> Result<Option<Asked>, Status> {
    if !headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        return Ok(None);
    }
    let text = |value: &http::HeaderValue| value.to_str().unwrap_or_default().to_owned();
    let one = |name: &str| headers.get(name).map(text).unwrap_or_default();
    let mut asked = Asked {
        name: one("impersonate-user"),
        uid: one("impersonate-uid"),
        groups: headers.get_all("impersonate-group").iter().map(text).collect(),
        extra: BTreeMap::new(),
    };
    for (name, value) in headers {
        if let Some(key) = name.as_str().strip_prefix("impersonate-extra-") {
            let key = decoded(key).unwrap_or_else(|| key.to_owned()).to_lowercase();
            asked.extra.entry(key).or_default().push(text(value));
        }
    }
    if !asked.name.is_empty() {
        return Ok(Some(asked));
    }
    if asked.uid.is_empty() && asked.groups.is_empty() && asked.extra.is_empty() {
        return Ok(None);
    }
    let list = |texts: &[String]| texts.iter().map(|text| format!("{text:?}")).collect::<Vec<_>>().join(", ");
    let groups = match asked.groups.as_slice() {
        [] => "(nil)".to_owned(),
        groups => format!("{{{}}}", list(groups)),
    };
    let extra: Vec<String> =
        asked.extra.iter().map(|(key, values)| format!("{key:?}:[]string{{{}}}", list(values))).collect();
    let extra = if extra.is_empty() { "(nil)".to_owned() } else { format!("{{{}}}", extra.join(", ")) };
    Err(Status::bad_request(format!(
        "requested &user.DefaultInfo{{Name:\"\", UID:{:?}, Groups:[]string{groups}, \
         Extra:map[string][]string{extra}}} without impersonating a user name",
        asked.uid
    )))
}

/// The requests that the verb `impersonate` must be allowed on: all of them.
fn as_a_whole(asked: &Asked) -> Vec<Attributes> {
    let on =
        |group: &str, resource: &str, name: &str| Attributes::on("impersonate", group, resource, "", name);
    let mut all = vec![match service_account_of(&asked.name) {
        Some((namespace, name)) => Attributes::on("impersonate", "", "serviceaccounts", namespace, name),
        None => on("", "users", &asked.name),
    }];
    all.extend(asked.groups.iter().map(|group| on("", "groups", group)));
    if !asked.uid.is_empty() {
        all.push(on(IDENTITY, "uids", &asked.uid));
    }
    all.extend(extras(asked, "impersonate"));
    all
}

fn extras(asked: &Asked, verb: &str) -> Vec<Attributes> {
    let pairs = asked.extra.iter().flat_map(|(key, values)| values.iter().map(move |value| (key, value)));
    pairs
        .map(|(key, value)| {
            let mut on = Attributes::on(verb, IDENTITY, "userextras", "", value);
            on.subresource.clone_from(key);
            on
        })
        .collect()
}

/// The constrained mode that fits who is asked for; `None` where there is none.
fn mode(asked: &Asked) -> Option<&'static str> {
    let bare = asked.uid.is_empty() && asked.groups.is_empty() && asked.extra.is_empty();
    if service_account_of(&asked.name).is_some() {
        return bare.then_some("serviceaccount");
    }
    if asked.name.starts_with("system:node:") {
        return bare.then_some("arbitrary-node");
    }
    Some("user-info")
}

/// The requests that the constrained verb must be allowed on.
fn constrained(asked: &Asked, mode: &str) -> Vec<Attributes> {
    let verb = format!("impersonate:{mode}");
    if let Some((namespace, name)) = service_account_of(&asked.name) {
        return vec![Attributes::on(&verb, IDENTITY, "serviceaccounts", namespace, name)];
    }
    let on = |resource: &str, name: &str| Attributes::on(&verb, IDENTITY, resource, "", name);
    if let Some(node) = asked.name.strip_prefix("system:node:") {
        return vec![on("nodes", node)];
    }
    let mut all = Vec::new();
    if !asked.uid.is_empty() {
        all.push(on("uids", &asked.uid));
    }
    all.extend(asked.groups.iter().map(|group| on("groups", group)));
    all.extend(extras(asked, &verb));
    all.push(on("users", &asked.name));
    all
}

/// Why it may not be had in a constrained mode whatever the roles say.
fn unfit(attributes: &Attributes) -> Option<&'static str> {
    (attributes.resource == "groups" && attributes.name == opdev_admission::authorization::MASTERS)
        .then_some("impersonating the system:masters group is not allowed")
}

fn become_of(asked: Asked) -> User {
    let mut groups = asked.groups;
    if let Some((namespace, name)) = service_account_of(&asked.name).filter(|_| groups.is_empty()) {
        groups = User::service_account(namespace, name).groups;
    }
    let known = |groups: &[String], group: &str| groups.iter().any(|found| found == group);
    if asked.name == ANONYMOUS {
        if !known(&groups, UNAUTHENTICATED) {
            groups.push(UNAUTHENTICATED.to_owned());
        }
    } else if !known(&groups, AUTHENTICATED) && !known(&groups, UNAUTHENTICATED) {
        groups.push(AUTHENTICATED.to_owned());
    }
    User { name: asked.name, uid: asked.uid, groups, extra: asked.extra }
}
