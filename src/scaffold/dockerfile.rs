//! The Dockerfile of a project whose operator is opdev or the Operator SDK's: what the operator reads has to
//! be copied into the image, and each new kind may add to that. A Dockerfile that copies nothing into
//! `${HOME}` is the user's own work and stays as it is.

use super::draft::Draft;

const DOCKERFILE: &str = "Dockerfile";
const RECONCILERS: &str = "config/reconcilers";

/// Adds what the operator reads and the Dockerfile does not copy yet, and says where its base runs no
/// scripts.
pub(super) fn pack(kind: &str, draft: &mut Draft<'_>) {
    let Some(text) = draft.read(DOCKERFILE) else { return };
    let has_scripts = !draft.list(RECONCILERS).is_empty();
    let mut paths: Vec<&str> = Vec::new();
    paths.extend(["watches.yaml", "opdev.yaml"].into_iter().filter(|path| draft.exists(path)));
    let types = if has_scripts { Some("api") } else { None };
    paths.extend(["helm-charts"].into_iter().chain(types).filter(|path| !draft.list(path).is_empty()));
    if has_scripts {
        paths.extend(["config/crd", RECONCILERS]);
    }
    paths.retain(|path| !copies(&text, path));
    if !paths.is_empty() {
        match with_copies(&text, &paths) {
            Some(text) => draft.update(DOCKERFILE, text),
            None => draft.warn(format!(
                "the Dockerfile copies nothing into ${{HOME}}, so it was left alone: add {}, which the operator reads",
                paths.join(", ")
            )),
        }
    }
    if has_scripts && let Some(base) = helm_operator(&text) {
        let how = if text.lines().any(|line| line.starts_with("ARG BASE=")) {
            "`docker build --build-arg BASE=REF .` takes it"
        } else {
            "name it after FROM"
        };
        draft.warn(format!(
            "{base}, the base of the Dockerfile, runs no scripts and no templates: in a cluster nothing would reconcile {kind}. \
             `opdev image --push REF` makes an image that does. For the Dockerfile, `opdev image --without-project --push REF` \
             makes a base that does: {how}"
        ));
    }
}

/// Returns true if a line copies a path, or all of the project.
fn copies(text: &str, path: &str) -> bool {
    let copied = |line: &str| {
        let mut words = line.split_whitespace().filter(|word| !word.starts_with("--"));
        words.next() == Some("COPY")
            && words.any(|word| matches!(word, "." | "./") || word.trim_end_matches('/') == path)
    };
    text.lines().any(copied)
}

/// The text with lines that copy paths, after the last one that copies something into `${HOME}`; `None` where
/// there is none.
fn with_copies(text: &str, paths: &[&str]) -> Option<String> {
    let into_home = |line: &&str| line.starts_with("COPY ") && line.contains(" ${HOME}/");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let last = text.lines().collect::<Vec<_>>().iter().rposition(into_home)?;
    let new = paths.iter().map(|path| format!("COPY {path} ${{HOME}}/{path}"));
    lines.splice(last + 1..last + 1, new);
    Some(lines.join("\n") + "\n")
}

/// The Operator SDK's image, where that is the base.
fn helm_operator(text: &str) -> Option<&str> {
    let bases =
        text.lines().filter_map(|line| line.strip_prefix("ARG BASE=").or_else(|| line.strip_prefix("FROM ")));
    bases.map(str::trim).find(|base| base.contains("helm-operator"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copies_stand_after_those_that_are_there() {
        let text = "FROM a\nCOPY watches.yaml ${HOME}/watches.yaml\nCOPY helm-charts/  ${HOME}/helm-charts\nWORKDIR ${HOME}\n";
        assert!(copies(text, "helm-charts") && !copies(text, "api"));
        assert_eq!(
            with_copies(text, &["api"]).unwrap(),
            "FROM a\nCOPY watches.yaml ${HOME}/watches.yaml\nCOPY helm-charts/  ${HOME}/helm-charts\nCOPY api ${HOME}/api\n\
             WORKDIR ${HOME}\n"
        );
        let own = "FROM a\nCOPY --chown=1 . /work\n";
        assert!(copies(own, "api"), "all of the project is there");
        assert_eq!(with_copies(own, &["api"]), None);
    }

    #[test]
    fn the_base_is_found_with_and_without_an_argument() {
        let named = "ARG BASE=quay.io/operator-framework/helm-operator:v1\nFROM ${BASE}\n";
        assert_eq!(helm_operator(named), Some("quay.io/operator-framework/helm-operator:v1"));
        assert_eq!(helm_operator("FROM quay.io/x/helm-operator:v1\n"), Some("quay.io/x/helm-operator:v1"));
        assert_eq!(helm_operator("FROM registry.example.com/opdev:1\n"), None);
    }
}
