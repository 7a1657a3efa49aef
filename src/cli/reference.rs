//! The page of all commands, made from their definitions, so that it names each flag that there is.

use clap::builder::StyledStr;
use clap::{Arg, Command};
use std::fmt::Write as _;

/// `docs/commands.md`.
pub(super) fn page(mut root: Command) -> String {
    root.build();
    let mut page = String::from(
        "# Commands\n\nMade from the program's own help; a test keeps it so. `opdev help COMMAND` prints the same with more words.\n\
         Exit codes: 0 done, 1 failed, 2 wrong usage; `plan` and `ci` have more.\n",
    );
    let commands: Vec<&Command> = root.get_subcommands().filter(|one| !is_left_out(one)).collect();
    page.push_str("\n| Command | |\n|---|---|\n");
    for command in &commands {
        let name = command.get_name();
        let _ = writeln!(page, "| [`opdev {name}`](#opdev-{name}) | {} |", cell(command.get_about()));
    }
    for command in commands {
        section(&mut page, command, "opdev");
    }
    page
}

fn is_left_out(command: &Command) -> bool {
    command.is_hide_set() || command.get_name() == "help"
}

fn section(page: &mut String, command: &Command, above: &str) {
    let name = format!("{above} {}", command.get_name());
    let level = "#".repeat(name.split(' ').count());
    let _ = write!(page, "\n{level} {name}\n\n{}\n", sentence(command.get_about()));
    let mut usage = command.clone().render_usage().to_string();
    usage = usage.trim_start_matches("Usage:").trim().to_owned();
    let _ = write!(page, "\n```text\n{usage}\n```\n");
    let arguments: Vec<&Arg> =
        command.get_arguments().filter(|one| !one.is_hide_set() && !is_help(one)).collect();
    if !arguments.is_empty() {
        page.push_str("\n| Argument | |\n|---|---|\n");
    }
    for argument in arguments {
        let _ = writeln!(page, "| {} | {} |", shown(argument), meaning(argument));
    }
    for below in command.get_subcommands().filter(|one| !is_left_out(one)) {
        section(page, below, &name);
    }
}

fn is_help(argument: &Arg) -> bool {
    matches!(argument.get_id().as_str(), "help" | "version")
}

/// A flag with its short form and its value, or a positional argument.
fn shown(argument: &Arg) -> String {
    let takes = argument.get_action().takes_values();
    let value = takes
        .then(|| argument.get_value_names())
        .flatten()
        .map(|names| names.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "));
    let long = argument.get_long().map(|long| format!("--{long}"));
    let short = argument.get_short().map(|short| format!("-{short}"));
    let mut names: Vec<String> = short.into_iter().chain(long).collect();
    if names.is_empty() {
        names.push(value.clone().unwrap_or_else(|| argument.get_id().as_str().to_uppercase()));
    } else if let (Some(last), Some(value)) = (names.last_mut(), &value) {
        *last = format!("{last} {value}");
    }
    names.iter().map(|name| format!("`{}`", name.replace('|', "\\|"))).collect::<Vec<_>>().join(", ")
}

fn meaning(argument: &Arg) -> String {
    let mut text = cell(argument.get_help());
    let takes = argument.get_action().takes_values();
    let values: Vec<String> = argument
        .get_possible_values()
        .iter()
        .filter(|value| takes && !value.is_hide_set())
        .map(|value| format!("`{}`", value.get_name()))
        .collect();
    if !values.is_empty() {
        let _ = write!(text, " ({})", values.join(", "));
    }
    let defaults: Vec<String> =
        argument.get_default_values().iter().map(|value| value.to_string_lossy().into_owned()).collect();
    if takes && !defaults.is_empty() {
        let _ = write!(text, "; default `{}`", defaults.join(","));
    }
    if let Some(variable) = argument.get_env() {
        let _ = write!(text, "; or `{}`", variable.to_string_lossy());
    }
    text
}

fn cell(text: Option<&StyledStr>) -> String {
    let text = text.map(ToString::to_string).unwrap_or_default();
    text.split_whitespace().collect::<Vec<_>>().join(" ").replace('|', "\\|")
}

fn sentence(text: Option<&StyledStr>) -> String {
    let text = cell(text);
    if text.is_empty() || text.ends_with('.') { text } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use crate::Cli;
    use clap::CommandFactory as _;
    use std::path::Path;

    #[test]
    fn the_page_of_commands_is_made_from_the_program() {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/commands.md");
        let page = super::page(Cli::command());
        if std::env::var_os("UPDATE_GOLDEN").is_some() {
            std::fs::write(&file, &page).unwrap();
        }
        assert!(page.contains("## opdev run\n") && page.contains("`--embedded`"));
        let kept = std::fs::read_to_string(&file).unwrap_or_default();
        assert!(kept == page, "docs/commands.md is old: run the tests with UPDATE_GOLDEN=1");
    }
}
