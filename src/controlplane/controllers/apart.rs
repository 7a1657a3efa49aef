//! Pods that have to be apart, or together: required affinity and anti-affinity, ports of the node, spread.
//! Preferences never count: the scheduler knows no scores.

use super::fields::{count, list, text};
use super::selector::Selector;
use crate::contract::View;
use opdev_apimachinery::attributes::{Lookup, PodField};
use opdev_object::meta;
use serde_json::Value;
use std::fmt;
use std::sync::Arc;

/// Why a node is not for a pod because of other pods.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Apart {
    Ports,
    AntiAffinity,
    OthersAntiAffinity,
    Affinity,
    Spread,
    SpreadLabel,
}

impl fmt::Display for Apart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Apart::Ports => "node(s) didn't have free ports for the requested pod ports",
            Apart::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Apart::OthersAntiAffinity => "node(s) didn't satisfy existing pods anti-affinity rules",
            Apart::Affinity => "node(s) didn't match pod affinity rules",
            Apart::Spread => "node(s) didn't match pod topology spread constraints",
            Apart::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
        })
    }
}

impl Apart {
    /// True where the node would fit if pods went away.
    pub(crate) fn is_others_fault(self) -> bool {
        !matches!(self, Apart::Affinity | Apart::SpreadLabel)
    }
}

const AFFINITY: &str = "/spec/affinity/podAffinity/requiredDuringSchedulingIgnoredDuringExecution";
const ANTI_AFFINITY: &str = "/spec/affinity/podAntiAffinity/requiredDuringSchedulingIgnoredDuringExecution";

/// The ports that a pod takes of its node: protocol, address, number.
fn ports(pod: &Value) -> impl Iterator<Item = (&str, &str, i64)> {
    let containers = ["/spec/containers", "/spec/initContainers"].into_iter().flat_map(|at| list(pod, at));
    let ports = containers.flat_map(|container| list(container, "/ports"));
    ports.filter(|port| count(port, "/hostPort") > 0).map(|port| {
        let protocol = match text(port, "/protocol") {
            "" => "TCP",
            protocol => protocol,
        };
        (protocol, text(port, "/hostIP"), count(port, "/hostPort"))
    })
}

fn spreads(pod: &Value) -> impl Iterator<Item = &Value> {
    let all = list(pod, "/spec/topologySpreadConstraints").iter();
    all.filter(|constraint| text(constraint, "/whenUnsatisfiable") != "ScheduleAnyway")
}

/// The placed pods that count for one that is to be placed.
pub(crate) struct Neighbours<'a> {
    view: &'a dyn View,
    pod: &'a Value,
    nodes: &'a [Arc<Value>],
    placed: Vec<Arc<Value>>,
}

impl<'a> Neighbours<'a> {
    /// Looks at other pods only where the pod, or one of them (`wary`), wants to be apart.
    pub(crate) fn new(view: &'a dyn View, pod: &'a Value, nodes: &'a [Arc<Value>], wary: bool) -> Self {
        let looks = [AFFINITY, ANTI_AFFINITY].iter().any(|at| !list(pod, at).is_empty())
            || spreads(pod).next().is_some();
        let placed = match looks || wary {
            true => view.select("pods", None, &Lookup::All, &|other| {
                !other.pod(PodField::Node).is_empty()
                    && !other.pod_finished()
                    && (looks || !other.pod(PodField::Wary).is_empty())
            }),
            false => Vec::new(),
        };
        Neighbours { view, pod, nodes, placed }
    }

    /// Why a node is not for the pod.
    pub(crate) fn refusal(&self, node: &Value) -> Option<Apart> {
        let own = super::fields::name(node);
        let here = || self.placed.iter().filter(|other| text(other, "/spec/nodeName") == own);
        let clash = |(protocol, address, port): (&str, &str, i64)| {
            let open = |address: &str| matches!(address, "" | "0.0.0.0");
            here().flat_map(|other| ports(other)).any(|(of, at, number)| {
                (of, number) == (protocol, port) && (open(at) || open(address) || at == address)
            })
        };
        if ports(self.pod).any(clash) {
            return Some(Apart::Ports);
        }
        if let Some(refused) = self.spread(node) {
            return Some(refused);
        }
        if !list(self.pod, AFFINITY).iter().all(|term| self.is_near(term, node)) {
            return Some(Apart::Affinity);
        }
        let near = |term: &Value, other: &Value| self.share(term, node, other);
        let meets = |term: &Value| {
            self.placed.iter().any(|other| near(term, other) && self.names(term, self.pod, other))
        };
        if list(self.pod, ANTI_AFFINITY).iter().any(meets) {
            return Some(Apart::AntiAffinity);
        }
        let minds = |other: &Arc<Value>| {
            list(other, ANTI_AFFINITY)
                .iter()
                .any(|term| near(term, other) && self.names(term, other, self.pod))
        };
        self.placed.iter().any(minds).then_some(Apart::OthersAntiAffinity)
    }

    /// True where a pod that the term names is near the node. The first pod of a group may be anywhere.
    fn is_near(&self, term: &Value, node: &Value) -> bool {
        if meta::label(node, text(term, "/topologyKey")).is_none() {
            return false;
        }
        let mut named = self.placed.iter().filter(|other| self.names(term, self.pod, other)).peekable();
        match named.peek() {
            None => self.names(term, self.pod, self.pod),
            Some(_) => named.any(|other| self.share(term, node, other)),
        }
    }

    /// True where a node and the node of a pod are in one place, as the term sees places.
    fn share(&self, term: &Value, node: &Value, other: &Value) -> bool {
        let key = text(term, "/topologyKey");
        let its = text(other, "/spec/nodeName");
        let its = self.nodes.iter().find(|node| super::fields::name(node) == its);
        let place = meta::label(node, key);
        place.is_some() && place == its.and_then(|node| meta::label(node, key))
    }

    /// True where a term of one pod names another.
    fn names(&self, term: &Value, of: &Value, other: &Value) -> bool {
        let space = meta::namespace(other).unwrap_or_default();
        let listed = list(term, "/namespaces").iter().any(|name| name == space);
        let by_label = term.get("namespaceSelector").filter(|selector| selector.is_object());
        let selected = by_label.is_some_and(|selector| {
            let space = self.view.get("namespaces", None, space);
            let selector = Selector::parse(Some(selector));
            space.zip(selector).is_some_and(|(space, selector)| selector.matches(&space))
        });
        let own =
            list(term, "/namespaces").is_empty() && by_label.is_none() && meta::namespace(of) == Some(space);
        (listed || selected || own)
            && Selector::parse(term.get("labelSelector")).is_some_and(|selector| selector.matches(other))
    }

    fn spread(&self, node: &Value) -> Option<Apart> {
        for constraint in spreads(self.pod) {
            let key = text(constraint, "/topologyKey");
            let Some(place) = meta::label(node, key) else { return Some(Apart::SpreadLabel) };
            let selector = Selector::parse(constraint.get("labelSelector"));
            let in_place = |place: &str| {
                let there = |other: &&Arc<Value>| {
                    let on = self
                        .nodes
                        .iter()
                        .find(|node| super::fields::name(node) == text(other, "/spec/nodeName"));
                    meta::namespace(other) == meta::namespace(self.pod)
                        && on.and_then(|node| meta::label(node, key)) == Some(place)
                        && selector.as_ref().is_some_and(|selector| selector.matches(other))
                };
                self.placed.iter().filter(there).count() as i64
            };
            let mut places: Vec<&str> = self.nodes.iter().filter_map(|node| meta::label(node, key)).collect();
            places.sort_unstable();
            places.dedup();
            let fewest = match count(constraint, "/minDomains") > places.len() as i64 {
                true => 0,
                false => places.iter().map(|place| in_place(place)).min().unwrap_or(0),
            };
            let own = i64::from(selector.as_ref().is_some_and(|selector| selector.matches(self.pod)));
            if in_place(place) + own - fewest > count(constraint, "/maxSkew").max(1) {
                return Some(Apart::Spread);
            }
        }
        None
    }
}
