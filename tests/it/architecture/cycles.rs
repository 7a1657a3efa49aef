//! Cycles between modules: none at the top level of a package, small ones between files.

use std::fs;

use super::graph::{Arrows, cycles};
use super::modules::Package;
use super::{packages, root};

/// Files that may name each other in a cycle: a type, and the few files that carry it out.
const MOST: usize = 4;

/// Where a larger cycle stands today: the package, a file of it, and how many files it has. None of them
/// grows.
const LARGER: [(&str, &str, usize); 2] = [
    // For good: the interpreter and its functions know each other, as a language does.
    ("src/helm/template", "exec.rs", 39),
    // A view, the layers over it, and the rows that say what each key does to it.
    ("src/tui", "view.rs", 5),
];

/// The arrows inside of a cycle, one a line, each with one place of the code.
fn told(arrows: &Arrows, cycle: &[String]) -> String {
    let mut lines = Vec::new();
    for from in cycle {
        for (to, places) in arrows[from].iter().filter(|(to, _)| cycle.contains(to)) {
            lines.push(format!("    {from} names {to}: {}", places[0]));
        }
    }
    lines.join("\n")
}

#[test]
fn modules_of_the_top_level_form_no_cycle() {
    let mut wrong = Vec::new();
    // Where the page lists ranks. In a small package a type and the files that carry it out may know each
    // other.
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    for (folder, package) in
        packages().iter().filter(|(folder, _)| !ranks(&page, folder).iter().all(Vec::is_empty))
    {
        let arrows = package.arrows_between_top_modules();
        for cycle in &cycles(&arrows) {
            wrong.push(format!("{folder}: {}\n{}", cycle.join(", "), told(&arrows, cycle)));
        }
    }
    assert!(wrong.is_empty(), "modules that name each other in a circle:\n{}", wrong.join("\n"));
}

#[test]
fn cycles_between_files_are_small() {
    let mut wrong = Vec::new();
    for (folder, package) in packages() {
        let arrows = package.arrows_between_files();
        for cycle in cycles(&arrows).iter().filter(|cycle| cycle.len() > MOST) {
            let known = LARGER.iter().find(|(at, file, _)| at == folder && cycle.iter().any(|f| f == file));
            if known.is_none_or(|(_, _, most)| cycle.len() > *most) {
                wrong.push(format!("{folder}: {} files\n{}", cycle.len(), told(&arrows, cycle)));
            }
        }
    }
    assert!(wrong.is_empty(), "too many files that name each other in a circle:\n{}", wrong.join("\n"));
}

/// The ranks of the modules of a package, the highest first, as `docs/architecture.md` lists them.
fn ranks(page: &str, folder: &str) -> Vec<Vec<String>> {
    let list = page.split("## Ranks inside the packages").nth(1).unwrap().split("```").nth(1).unwrap();
    let mut own = String::new();
    let mut is_own = false;
    for line in list.lines() {
        let (name, rest) = line.split_once(' ').unwrap_or((line, ""));
        if !name.is_empty() {
            is_own = name == folder;
        }
        if is_own {
            own.push_str(rest);
            own.push(' ');
        }
    }
    own.split('>').map(|rank| rank.split_whitespace().map(str::to_owned).collect()).collect()
}

#[test]
fn modules_keep_the_ranks_of_the_page() {
    let page = fs::read_to_string(root().join("docs/architecture.md")).unwrap();
    let mut wrong = Vec::new();
    for (folder, package) in packages() {
        let ranks = ranks(&page, folder);
        // Small packages need no list: Cargo holds what they name.
        if ranks.iter().all(Vec::is_empty) {
            continue;
        }
        let rank = |module: &str| ranks.iter().position(|rank| rank.iter().any(|name| name == module));
        for module in package.modules[0].children.keys().filter(|module| rank(module).is_none()) {
            wrong.push(format!("{folder}: {module} has no rank in docs/architecture.md"));
        }
        for name in ranks.iter().flatten().filter(|name| !package.modules[0].children.contains_key(*name)) {
            wrong.push(format!(
                "{folder}: docs/architecture.md gives {name} a rank, and there is no such module"
            ));
        }
        let arrows = package.arrows_between_top_modules();
        for (from, ends) in arrows.iter().filter(|(from, _)| *from != "lib") {
            for (to, places) in ends.iter().filter(|(to, _)| rank(from) >= rank(to)) {
                wrong.push(format!("{folder}: {from} names {to}, of no lower rank: {}", places[0]));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A ceiling that is no longer needed would let the next cycle in.
#[test]
fn ceilings_are_those_of_today() {
    for (folder, file, most) in LARGER {
        let (_, package) = packages().iter().find(|(at, _)| *at == folder).unwrap();
        let found = cycles(&package.arrows_between_files());
        let size = found.iter().find(|cycle| cycle.iter().any(|f| f == file)).map_or(1, Vec::len);
        assert_eq!(size, most, "{folder}: the cycle with {file}");
    }
}

/// A package in a folder of its own.
fn written(files: &[(&str, &str)]) -> (tempfile::TempDir, Package) {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    let package = Package::read(folder.path(), "lib.rs");
    (folder, package)
}

fn ends(arrows: &Arrows, from: &str) -> Vec<String> {
    arrows[from].keys().cloned().collect()
}

#[test]
fn paths_are_followed_to_where_a_thing_is_defined() {
    let (_folder, package) = written(&[
        ("lib.rs", "mod a; mod b; mod c; mod d; pub use c::deep::Deep;"),
        (
            "a.rs",
            "use crate::{b, c::{Deep as D, self}, d::*}; fn f() { b::g(); c::h(); crate::Deep::new(); k() }",
        ),
        ("b.rs", "pub fn g() {}"),
        ("c/mod.rs", "pub mod deep; pub use self::deep::Deep; pub fn h() {}"),
        ("c/deep.rs", "pub struct Deep; impl Deep { fn f() { super::h(); super::super::b::g(); } }"),
        ("d.rs", "use super::a; pub fn k() { let _ = vec![a::f()]; }"),
    ]);
    let arrows = package.arrows_between_files();
    assert_eq!(ends(&arrows, "a.rs"), ["b.rs", "c/deep.rs", "c/mod.rs"]);
    assert_eq!(ends(&arrows, "c/deep.rs"), ["b.rs", "c/mod.rs"]);
    // Inside of a macro, through the name that `use` gave.
    assert_eq!(ends(&arrows, "d.rs"), ["a.rs"]);
    assert_eq!(cycles(&arrows), [["c/deep.rs", "c/mod.rs"]]);
    let top = package.arrows_between_top_modules();
    assert_eq!(ends(&top, "a"), ["b", "c"]);
    assert!(cycles(&top).is_empty());
}

#[test]
fn tests_are_left_out_by_their_braces() {
    let text = "\
        #[cfg(test)]\nmod tests { use crate::b::g; }\n\
        #[cfg(test)]\n#[allow(dead_code)]\nfn f() { crate::b::g() }\n\
        // crate::b in a comment, and \"crate::b::g\" in text:\n\
        const TEXT: &str = \"crate::b::g()\";\n\
        #[cfg(test)]\nuse crate::b::{g};\n\
        pub fn k() { #[cfg(test)] crate::b::g(); crate::c::h() }\n";
    let (_folder, package) = written(&[
        ("lib.rs", "mod a; mod b; mod c;"),
        ("a.rs", text),
        ("b.rs", "pub fn g() {}"),
        ("c.rs", "#![cfg(not(test))] pub fn h() { crate::a::k() }"),
    ]);
    let arrows = package.arrows_between_files();
    assert_eq!(ends(&arrows, "a.rs"), ["c.rs"]);
    assert_eq!(cycles(&arrows), [["a.rs", "c.rs"]]);
    assert_eq!(super::lines_without_tests(text), 3);
}
