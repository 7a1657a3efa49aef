//! Descriptions of the built-in definitions and their fields in the Go types of Kubernetes, line by line, and
//! what the API makes of that, in the words of `kubectl explain`. Apart from the facts, for hardly anybody
//! asks: they are decoded for each who does, and not kept.

use crate::facts::inflate;
use std::collections::HashMap;
use std::ops::Range;

static DESCRIPTIONS: &[u8] = include_bytes!("assets/descriptions.tsv.gz");

/// All descriptions.
#[derive(Debug)]
pub struct Descriptions {
    text: String,
    /// Where the lines of a definition are in the text.
    lines: HashMap<Box<str>, Range<usize>>,
}

struct About {
    comment: String,
    /// The API says it, too.
    told: bool,
}

impl Descriptions {
    /// Inflates them: a megabyte, some milliseconds. What somebody asks for is decoded then.
    pub fn read() -> Descriptions {
        let text = String::from_utf8(inflate(DESCRIPTIONS)).expect("embedded descriptions are UTF-8");
        let mut lines: HashMap<Box<str>, Range<usize>> = HashMap::new();
        let mut at = 0;
        for line in text.split_inclusive('\n') {
            let end = at + line.len();
            // The lines of a definition follow each other.
            if let Some((definition, _)) = line.split_once('\t') {
                match lines.get_mut(definition) {
                    Some(known) => known.end = end,
                    None => drop(lines.insert(definition.into(), at..end)),
                }
            }
            at = end;
        }
        Descriptions { text, lines }
    }

    fn about(&self, definition: &str, path: &str) -> Option<About> {
        let lines = self.text.get(self.lines.get(definition)?.clone())?.lines();
        let mut of_path = lines.filter_map(|line| {
            let mut parts = line.split('\t').skip(1);
            (parts.next()? == path).then_some(parts)
        });
        let mut parts = of_path.next()?;
        let comment = serde_json::from_str(parts.next()?).expect("embedded descriptions are JSON texts");
        Some(About { comment, told: parts.next().is_none() })
    }

    /// The API's description of a definition, such as `io.k8s.api.core.v1.Pod`.
    pub fn definition(&self, name: &str) -> Option<String> {
        self.field(name, "")
    }

    /// The API's description of a field of a definition.
    pub fn field(&self, definition: &str, field: &str) -> Option<String> {
        let about = self.about(definition, field)?;
        about.told.then(|| spoken(&about.comment))
    }

    /// The comment of the Go type behind a definition (an empty path), a field of it, `field[]` for the items
    /// of a list or `field.*` for the values of a map; without markers.
    pub fn comment(&self, definition: &str, path: &str) -> Option<String> {
        Some(self.about(definition, path)?.comment)
    }
}

/// The description that the API makes of a comment: one line for each paragraph, and for each indented line.
fn spoken(comment: &str) -> String {
    let mut out = String::with_capacity(comment.len());
    for line in comment.lines() {
        let line = line.trim_end_matches(' ');
        if line == "---" {
            break;
        }
        if line.trim_start_matches(' ').starts_with("TODO") {
            continue;
        }
        if line.is_empty() {
            out.pop();
            out.push_str("\n\n");
        } else if line.starts_with([' ', '\t']) {
            out.pop();
            out.push('\n');
            out.push_str(line);
            out.push('\n');
        } else {
            out.push_str(line);
            out.push(' ');
        }
    }
    out.trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::facts::facts;

    #[test]
    fn every_definition_of_a_kind_says_what_it_is() {
        let descriptions = Descriptions::read();
        let kinds =
            facts().resources().iter().filter_map(|resource| facts().definition_name(&resource.gvk()));
        let silent: Vec<&str> = kinds.filter(|name| descriptions.definition(name).is_none()).collect();
        assert_eq!(silent, [""; 0]);
        let pod = "io.k8s.api.core.v1.Pod";
        assert!(descriptions.field(pod, "spec").is_some() && descriptions.field(pod, "no").is_none());
    }

    #[test]
    fn the_api_joins_the_lines_of_a_paragraph_and_leaves_notes_out() {
        let comment = "One\ntwo.\n\nTODO: more.\nThree:\n\tfour\n---\nfive";
        assert_eq!(spoken(comment), "One two.\n\nThree:\n\tfour");
    }

    #[test]
    fn what_the_api_does_not_say_is_in_the_comments_alone() {
        let descriptions = Descriptions::read();
        let capabilities = "io.k8s.api.core.v1.Capabilities";
        assert_eq!(descriptions.field(capabilities, "add[]"), None);
        let items = descriptions.comment(capabilities, "add[]");
        assert_eq!(items.as_deref(), Some("Capability represent POSIX capabilities type"));
    }
}
