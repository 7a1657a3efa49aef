//! Merging of rules as controller-gen does it: same target → verbs, then resources, groups and URLs, then
//! sorting. What is merged depends on the release. Where its own result depends on chance (two merged rules
//! with one target and different verbs: it keeps either), all verbs are kept here.

use super::Rule;
use std::collections::BTreeMap;

/// The merging of rules by a release of controller-gen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Merging {
    /// Verbs of rules with one target; before v0.16.
    Verbs,
    /// Also resources and groups; v0.16.0 and v0.16.1.
    Groups,
    /// Also URLs, and `core` is the core group from the start; from v0.16.2.
    Urls,
    /// A `*` takes the place of all verbs; from v0.17.
    Star,
}

impl Merging {
    /// The merging of a version such as `v0.18.0`; a text that is no version counts as the newest.
    pub fn for_version(version: &str) -> Merging {
        let mut numbers = version.trim_start_matches('v').split(['.', '-', '+']).map(str::parse::<u32>);
        match (numbers.next(), numbers.next(), numbers.next()) {
            (Some(Ok(0)), Some(Ok(0..=15)), _) => Merging::Verbs,
            (Some(Ok(0)), Some(Ok(16)), Some(Ok(0..=1))) => Merging::Groups,
            (Some(Ok(0)), Some(Ok(16)), _) => Merging::Urls,
            _ => Merging::Star,
        }
    }
}

/// The rules of one role, normalised and in order.
pub(super) fn merged(rules: Vec<Rule>, merging: Merging) -> Vec<Rule> {
    let mut rules = by_target(rules.into_iter().map(|rule| normal(rule, merging)));
    if merging >= Merging::Groups {
        rules = together(rules, |rule| &mut rule.resources);
        rules = together(rules, |rule| &mut rule.groups);
    }
    if merging >= Merging::Urls {
        rules = together(rules, |rule| &mut rule.urls);
    }
    rules.sort_by_cached_key(target);
    for rule in &mut rules {
        if merging < Merging::Urls {
            core_is_empty(&mut rule.groups);
        }
        if merging >= Merging::Star && rule.verbs.iter().any(|verb| verb == "*") {
            rule.verbs = vec!["*".to_owned()];
        }
    }
    rules
}

fn normal(mut rule: Rule, merging: Merging) -> Rule {
    if merging >= Merging::Urls {
        core_is_empty(&mut rule.groups);
    }
    for list in
        [&mut rule.groups, &mut rule.resources, &mut rule.resource_names, &mut rule.verbs, &mut rule.urls]
    {
        sort(list);
    }
    rule
}

fn core_is_empty(groups: &mut [String]) {
    for group in groups.iter_mut().filter(|group| *group == "core") {
        group.clear();
    }
}

fn sort(list: &mut Vec<String>) {
    list.sort();
    list.dedup();
}

/// The key that controller-gen sorts by.
fn target(rule: &Rule) -> String {
    [&rule.groups, &rule.resources, &rule.resource_names, &rule.urls].map(|list| list.join("&")).join(" + ")
}

fn by_target(rules: impl IntoIterator<Item = Rule>) -> Vec<Rule> {
    let mut found: BTreeMap<String, Rule> = BTreeMap::new();
    for rule in rules {
        match found.get_mut(&target(&rule)) {
            Some(known) => {
                known.verbs.extend(rule.verbs);
                sort(&mut known.verbs);
            }
            None => {
                found.insert(target(&rule), rule);
            }
        }
    }
    found.into_values().collect()
}

/// Rules that differ in one list only become one.
fn together(rules: Vec<Rule>, list: fn(&mut Rule) -> &mut Vec<String>) -> Vec<Rule> {
    let mut found: BTreeMap<(String, Vec<String>), Rule> = BTreeMap::new();
    for mut rule in rules {
        let mine = std::mem::take(list(&mut rule));
        let known = found.entry((target(&rule), rule.verbs.clone())).or_insert(rule);
        list(known).extend(mine);
        sort(list(known));
    }
    by_target(found.into_values())
}
