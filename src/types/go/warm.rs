//! Tests: what a generator makes after many edits is what one makes that has never seen anything before.

use super::golden::Disk;
use super::*;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// The files of a folder, some of them edited in memory.
struct Edited {
    disk: Disk,
    texts: RefCell<BTreeMap<String, Arc<str>>>,
}

impl Files for Edited {
    fn read(&self, path: &str) -> Option<Arc<str>> {
        self.texts.borrow().get(path).cloned().or_else(|| self.disk.read(path))
    }

    fn list(&self, dir: &str) -> Vec<String> {
        let texts = self.texts.borrow();
        let below = texts.keys().filter_map(|path| path.strip_prefix(dir)?.strip_prefix('/'));
        let mut names: BTreeSet<String> =
            below.filter(|rest| !rest.contains('/')).map(str::to_owned).collect();
        names.extend(self.disk.list(dir));
        names.into_iter().collect()
    }

    fn module_cache(&self) -> Option<String> {
        None
    }
}

/// A small generator, so that the same edits are made each time.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n.max(1)
    }
}

/// One edit of a text: most leave Go that can be read.
fn edit(text: &str, chance: &mut Chance) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    let at = chance.below(lines.len());
    match chance.below(11) {
        0 => lines.insert(at, String::new()),
        1 => lines.insert(at, "// A comment of its own.".to_owned()),
        2 => lines.push(format!("\n// More is more.\ntype More{at} struct {{\n\tA string `json:\"a\"`\n}}")),
        3 => lines.push(format!("\nfunc (t More{at}) MarshalText() ([]byte, error) {{ return nil, nil }}")),
        4 => drop(lines.remove(at)),
        5 => {
            let other = chance.below(lines.len());
            lines.swap(at, other);
        }
        6 => lines.truncate(at),
        7 => lines[at] = lines[at].chars().take(lines[at].chars().count() / 2).collect(),
        kind => {
            // Something small in one line that is likely to mean something.
            let (from, to) = [("string", "int64"), ("json:\"", "json:\"x"), ("=", "=1")][kind - 8];
            for step in 0..lines.len() {
                let line = (at + step) % lines.len();
                if lines[line].contains(from) {
                    lines[line] = lines[line].replacen(from, to, 1);
                    break;
                }
            }
        }
    }
    lines.join("\n")
}

#[test]
fn after_an_edit_all_is_as_if_made_from_nothing() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/types/go");
    let files = Edited { disk: Disk(root), texts: RefCell::default() };
    let packages = ["./...".to_owned()];
    let options = Options::default();
    let mut warm = Generator::new();
    let paths = warm.generate(&files, &packages, &options).read;
    assert!(paths.len() > 10, "{paths:?}");
    let mut chance = Chance(11);
    let mut whole = 0;
    for step in 0..120 {
        let path = &paths[chance.below(paths.len())];
        // Now and then the edits of a file are taken back.
        let text = if chance.below(3) == 0 { files.disk.read(path) } else { files.read(path) };
        let text = edit(&text.unwrap(), &mut chance);
        files.texts.borrow_mut().insert(path.clone(), text.into());
        let (made, wanted) = (
            warm.generate(&files, &packages, &options),
            Generator::new().generate(&files, &packages, &options),
        );
        // A file that was needed a moment ago is still looked at.
        assert!(wanted.read.iter().all(|file| made.read.contains(file)), "step {step}, {path}");
        assert_eq!(made.diagnostics, wanted.diagnostics, "step {step}, {path}");
        assert_eq!(made.crds.len(), wanted.crds.len(), "step {step}, {path}");
        for (made, wanted) in made.crds.iter().zip(&wanted.crds) {
            let name = &wanted.object["metadata"]["name"];
            assert_eq!(made.object, wanted.object, "step {step}, {path}, {name}");
            assert_eq!(made.places, wanted.places, "step {step}, {path}, {name}");
            assert_eq!(made.files, wanted.files, "step {step}, {path}, {name}");
            assert_eq!(made.broken, wanted.broken, "step {step}, {path}, {name}");
            whole += usize::from(!made.broken);
        }
        assert_eq!(made.rbac, wanted.rbac, "step {step}, {path}");
    }
    assert!(whole > 100, "only {whole} CRDs without a fault were compared");
}
