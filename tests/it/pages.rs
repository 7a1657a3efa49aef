//! Pages of `docs/` that are made from something else, and commands that pages name: none is older than the
//! program.

use crate::newer::{Place, among};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn schema() -> Value {
    serde_json::from_str(&fs::read_to_string(root().join("assets/opdev.schema.json")).unwrap()).unwrap()
}

/// `docs/settings.md`, from the JSON schema that editors complete `opdev.yaml` with.
fn settings_page(schema: &Value) -> String {
    let mut page = String::from(
        "# Settings\n\nNone are needed. `opdev.yaml`, or `config/opdev.yaml`, may have these keys; this page is made from the JSON \
         schema\n`assets/opdev.schema.json`, with which editors complete the file. An unknown key is told with its line and the \
         key that is meant.\nPaths begin at the project's root. `charts`, `theme`, `keys` and `mouse` take effect as they are \
         saved, the others at the next start.\n\n| Key | Value | What it sets |\n|---|---|---|\n",
    );
    rows(&mut page, "", schema);
    page
}

fn rows(page: &mut String, above: &str, schema: &Value) {
    let none = Map::new();
    for (name, about) in schema["properties"].as_object().unwrap_or(&none) {
        let key = format!("{above}{name}");
        let text = about["description"].as_str().unwrap_or_default().replace('|', "\\|");
        let _ = writeln!(page, "| `{key}` | {} | {text} |", value(about));
        rows(page, &format!("{key}."), about);
        for form in about["oneOf"].as_array().into_iter().flatten() {
            rows(page, &format!("{key}."), form);
        }
        rows(page, &format!("{key}.KIND."), &about["additionalProperties"]);
    }
}

/// The values of a key, with its default.
fn value(about: &Value) -> String {
    let mut text = match (&about["enum"], &about["oneOf"]) {
        (Value::Array(words), _) => {
            let words: Vec<String> =
                words.iter().map(|word| format!("`{}`", word.as_str().unwrap_or_default())).collect();
            words.join(", ")
        }
        (_, Value::Array(forms)) => {
            let forms: Vec<String> = forms.iter().map(value).collect();
            forms.join(", or ")
        }
        _ => match about["type"].as_str() {
            Some("array") => "list".to_owned(),
            Some("object") => "map".to_owned(),
            Some("string") => "text".to_owned(),
            Some("boolean") => "`true`, `false`".to_owned(),
            Some("integer") => "number".to_owned(),
            _ => String::new(),
        },
    };
    if let Some(default) = about.get("default") {
        let default = default.as_str().map_or_else(|| default.to_string(), str::to_owned);
        let _ = write!(text, "; default `{default}`");
    }
    text
}

#[test]
fn the_page_of_settings_is_made_from_the_schema() {
    let file = root().join("docs/settings.md");
    let page = settings_page(&schema());
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&file, &page).unwrap();
    }
    assert!(page.contains("| `operator.command` |") && page.contains("| `reload.debounce` |"), "{page}");
    assert!(
        fs::read_to_string(&file).unwrap_or_default() == page,
        "docs/settings.md is old: run with UPDATE_GOLDEN=1"
    );
}

/// All pages for users.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "docs/guide"] {
        let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|end| end == "md")));
    }
    pages.sort();
    pages
}

#[test]
fn every_link_between_pages_leads_somewhere() {
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap_or_default();
            if file.is_empty() || file.contains("://") || file.contains(' ') {
                continue;
            }
            assert!(page.parent().unwrap().join(file).exists(), "{}: {target} leads nowhere", page.display());
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen} links");
}

/// A command in a page is one that opdev has, with each of its flags.
#[test]
fn every_command_that_a_page_names_exists() {
    let mut helps: BTreeMap<Vec<String>, String> = BTreeMap::new();
    let mut seen = 0;
    for page in pages() {
        let text = fs::read_to_string(&page).unwrap();
        let prose: String = text.split("```").step_by(2).collect();
        let named = prose.split('`').skip(1).step_by(2).filter_map(|code| code.strip_prefix("opdev "));
        for code in named {
            let code = code.replace(['[', ']', '\n', '(', ')'], " ");
            let words: Vec<&str> = code.split_whitespace().take_while(|word| *word != "--").collect();
            let of_two = matches!(words.first(), Some(&"create" | &"dependency"));
            let command: Vec<String> =
                words.iter().take(if of_two { 2 } else { 1 }).map(|word| (*word).to_owned()).collect();
            let is_command = |word: &String| word.chars().all(|c| c.is_ascii_lowercase());
            if !command.iter().all(is_command) || command.is_empty() || command[0] == "help" {
                continue;
            }
            let help = helps.entry(command.clone()).or_insert_with(|| {
                let output =
                    Command::new(env!("CARGO_BIN_EXE_opdev")).args(&command).arg("--help").output().unwrap();
                let says = String::from_utf8_lossy(&output.stderr).into_owned();
                assert!(output.status.success(), "{}: opdev {code}: {says}", page.display());
                String::from_utf8_lossy(&output.stdout).into_owned()
            });
            for flag in words.iter().filter(|word| word.starts_with("--")) {
                let flag = flag.split('=').next().unwrap_or_default().trim_end_matches([',', ';']);
                let mut flags = help.lines().filter(|line| line.trim_start().starts_with('-'));
                let has = |line: &str| line.split([' ', ',', '=', '[']).any(|word| word == flag);
                assert!(flags.any(has), "{}: opdev {code}: there is no {flag}", page.display());
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen} commands");
}

/// The words that the glossary replaces, from its last column.
fn replaced_words() -> Vec<String> {
    let text = fs::read_to_string(root().join("docs/glossary.md")).unwrap();
    let rows = text.lines().filter(|line| line.starts_with("| ") && !line.starts_with("| Word"));
    let never = rows.filter_map(|row| row.trim_end_matches('|').rsplit('|').next());
    let words = never.flat_map(|cell| cell.split(',')).map(str::trim).filter(|word| !word.is_empty());
    words.map(str::to_owned).collect()
}

/// The places of a word in texts, as a whole word in any case.
fn places(texts: &[(PathBuf, String)], word: &str) -> Vec<Place> {
    let is_word = |c: Option<char>| c.is_some_and(|c| c.is_alphanumeric() || c == '_');
    let mut found = Vec::new();
    for (path, text) in texts {
        for (at, _) in text.match_indices(word) {
            let before = text[..at].chars().next_back();
            let after = text[at + word.len()..].chars().next();
            if !is_word(before) && !is_word(after) {
                let line = text[..at].matches('\n').count() + 1;
                let text = text.lines().nth(line - 1).unwrap_or_default().to_owned();
                found.push(Place { path: path.clone(), lines: (line, line), text });
            }
        }
    }
    found
}

/// A line of the kept counts: the word, and how often it stands in pages and in code.
fn counted(line: &str) -> (&str, (usize, usize)) {
    let cells: Vec<&str> = line.split('\t').collect();
    let [word, pages, code] = cells.as_slice() else { panic!("{line:?} has no three cells") };
    (word, (pages.parse().unwrap(), code.parse().unwrap()))
}

/// Words that the glossary replaces become fewer, never more: in the pages, and in the code with its messages
/// and comments.
#[test]
fn words_that_the_glossary_replaces_become_fewer() {
    let glossary = root().join("docs/glossary.md");
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).unwrap().to_lowercase();
        (path, text)
    };
    let in_pages: Vec<(PathBuf, String)> = pages()
        .into_iter()
        .filter(|page| *page != glossary && !page.ends_with("style.md"))
        .map(read)
        .collect();
    let mut in_code = Vec::new();
    let mut open = vec![root().join("src")];
    while let Some(folder) = open.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                open.push(path);
            } else if path.extension().is_some_and(|end| end == "rs") {
                in_code.push(read(path));
            }
        }
    }
    let words = replaced_words();
    assert!(words.len() > 15, "{words:?}");
    let found: Vec<(&String, Vec<Place>, Vec<Place>)> =
        words.iter().map(|word| (word, places(&in_pages, word), places(&in_code, word))).collect();
    let golden = "tests/golden/replaced-words.tsv";
    let file = root().join(golden);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        let lines =
            found.iter().map(|(word, pages, code)| format!("{word}\t{}\t{}\n", pages.len(), code.len()));
        fs::write(&file, lines.collect::<String>()).unwrap();
    }
    let kept = fs::read_to_string(&file).unwrap();
    let most: BTreeMap<&str, (usize, usize)> = kept.lines().map(counted).collect();
    let mut wrong = Vec::new();
    for (word, pages, code) in &found {
        let (most_pages, most_code) = most.get(word.as_str()).copied().unwrap_or_default();
        for (places, most, room) in [(pages, most_pages, "pages"), (code, most_code, "code")] {
            if places.len() > most {
                let (now, places) = (places.len(), places.iter().collect::<Vec<_>>());
                wrong.push(format!(
                    "{word:?} stands {now} times in {room}, at most {most}; {}",
                    among(&places, golden)
                ));
            }
        }
    }
    assert!(wrong.is_empty(), "docs/glossary.md has the words that are meant.\n{}", wrong.join("\n"));
}
