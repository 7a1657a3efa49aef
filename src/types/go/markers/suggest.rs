//! Words about a marker that has no effect: unknown, misspelt, too new for the pinned release, or standing
//! where it describes nothing. controller-gen passes over all of them in silence.

use super::inventory::{DECLARATIVE, Target, all};
use super::{lookup, split};
use crate::go::profile::Profile;
use opdev_object::spelling::distance;

/// The oddity and the remedy for a marker that was not understood on such a target; `None` where it belongs
/// to another tool.
pub(crate) fn unknown(text: &str, target: Target, profile: &Profile) -> Option<(String, String)> {
    let (short, full, _, _) = split(text);
    for other in [Target::Field, Target::Type, Target::Package] {
        let Some((name, definition)) = lookup(text, other) else { continue };
        if !profile.at_least(definition.since) {
            return Some((
                format!("+{name} is not known to controller-gen {profile} and has no effect"),
                "Pin a newer CONTROLLER_TOOLS_VERSION, or remove the marker.".to_owned(),
            ));
        }
        if other == target || definition.arguments == super::Arguments::Foreign {
            return None;
        }
        return Some((
            format!("+{name} has no effect on {}: it describes {}", target.words(), other.words()),
            format!("Move it to {}, or remove it.", other.words()),
        ));
    }
    if DECLARATIVE.iter().any(|tag| matches_tag(full, tag) || matches_tag(short, tag)) {
        let tag = full.split('(').next().unwrap_or(full);
        return Some((
            format!("+{tag} is not turned into a schema: controller-gen does not know this declarative tag"),
            "Say the same with a +kubebuilder:validation marker.".to_owned(),
        ));
    }
    let name = full.trim_end_matches(':');
    let word = name.split_whitespace().next().unwrap_or_default();
    if word != name && all().contains_key(word) {
        return Some((
            format!("+{name} has no effect: a marker is followed by nothing but its arguments"),
            format!("Write +{word} on a line of its own."),
        ));
    }
    // `kubebuilder:validation:nullable`: known under another prefix.
    let last = name.rsplit(':').next().unwrap_or(name);
    if last != name
        && let Some((known, _)) = lookup(&format!("+{last}"), target)
    {
        return Some((
            format!("+{name} is not a marker that controller-gen knows; it has no effect"),
            format!("Did you mean +{known}?"),
        ));
    }
    let ours = ["kubebuilder:", "k8s:"].iter().any(|prefix| name.starts_with(prefix));
    let candidates = [full, short, name];
    let best = all()
        .keys()
        .filter_map(|known| {
            let distance = candidates.iter().map(|written| distance(written, known)).min()?;
            Some((distance, known))
        })
        .min();
    let close = best.filter(|(distance, known)| {
        let allowed = if ours { 2 + known.len() / 8 } else { known.len().min(24) / 8 };
        *distance <= allowed
    });
    match close {
        Some((_, known)) => Some((
            format!("+{name} is not a marker that controller-gen knows; it has no effect"),
            format!("Did you mean +{known}?"),
        )),
        None if ours => Some((
            format!("+{name} is not a marker that controller-gen knows; it has no effect"),
            "Remove it, or check its spelling.".to_owned(),
        )),
        None => misprefixed(name),
    }
}

/// `kube:validation:Optional`, `kubebuilder.validation.Optional`: the end is right, the beginning is not.
fn misprefixed(name: &str) -> Option<(String, String)> {
    let (prefix, rest) = name.split_once([':', '.'])?;
    let rest = rest.replace('.', ":");
    let known = format!("kubebuilder:{rest}");
    let near = prefix.starts_with("kube") || distance(prefix, "kubebuilder") <= 3;
    (near && (all().contains_key(&known) || all().contains_key(known.rsplit_once(':')?.0))).then(|| {
        (
            format!("+{name} is not a marker that controller-gen knows; it has no effect"),
            format!("Did you mean +{known}?"),
        )
    })
}

fn matches_tag(name: &str, tag: &str) -> bool {
    name.strip_prefix(tag).is_some_and(|rest| rest.is_empty() || rest.starts_with('('))
}
