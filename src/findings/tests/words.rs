//! The words of rules, and the page of the docs that has them.

#[test]
fn each_rule_has_words_of_its_own() {
    let mut ids: Vec<&str> = crate::RULES.iter().map(|rule| rule.id).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), crate::RULES.len());
    for rule in crate::RULES {
        // Two are told by what the program prints.
        let judged = rule.judge.is_some()
            || rule.absent.is_some()
            || ["kind-missing", "cache-mutated"].contains(&rule.id);
        assert!(judged, "{}", rule.id);
        for text in [rule.what, rule.when, rule.never, rule.fix] {
            assert!(!text.is_empty() && text.ends_with('.'), "{}: {text}", rule.id);
        }
    }
}

#[test]
fn the_page_of_the_docs_is_what_the_rules_say() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/findings.md");
    let there = std::fs::read_to_string(path).unwrap();
    let (head, _) = there.split_once("\n## ").unwrap();
    let pages =
        crate::RULES.iter().map(|rule| format!("\n## {}: {}\n\n{}", rule.id, rule.name, crate::page(rule)));
    let wanted = format!("{head}{}", pages.collect::<String>());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &wanted).unwrap();
    } else {
        assert!(
            there == wanted,
            "docs/findings.md is not what the rules say; UPDATE_GOLDEN=1 cargo test writes it anew"
        );
    }
}

#[test]
fn each_rule_is_a_file_that_has_its_name_and_its_tests() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/rules");
    let mut files = Vec::new();
    for topic in std::fs::read_dir(folder).unwrap().map(Result::unwrap).filter(|one| one.path().is_dir()) {
        files.extend(std::fs::read_dir(topic.path()).unwrap().map(|file| file.unwrap().path()));
    }
    files.retain(|file| !file.ends_with("mod.rs"));
    let stem = |file: &std::path::Path| file.file_stem().unwrap().to_str().unwrap().replace('_', "-");
    let mut named: Vec<String> = files.iter().map(|file| stem(file)).collect();
    let mut ids: Vec<&str> = crate::RULES.iter().map(|rule| rule.id).collect();
    named.sort_unstable();
    ids.sort_unstable();
    assert_eq!(named, ids, "a rule has a file of its name, and a line in RULES");
    for file in files {
        let has_tests = std::fs::read_to_string(&file).unwrap().contains("#[test]");
        assert!(has_tests, "{}: a rule has its tests in its file", file.display());
    }
}

#[test]
fn a_rule_that_explains_others_comes_before_them() {
    let place = |id: &str| crate::RULES.iter().position(|rule| rule.id == id);
    for rule in crate::RULES {
        for effect in rule.explains {
            let effect_at = place(effect).unwrap_or_else(|| panic!("{}: no rule {effect}", rule.id));
            // A rule that judges by the time alone takes in what is open already.
            assert!(rule.judge.is_none() || place(rule.id) < Some(effect_at), "{}: {effect}", rule.id);
        }
    }
}
