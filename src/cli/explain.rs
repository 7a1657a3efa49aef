//! `opdev explain`: what a rule of the findings says.

use anyhow::{Result, bail};
use opdev_findings::RULES;
use opdev_object::spelling::nearest;
use std::fmt::Write as _;

/// Tell what a rule of the findings means: what is wrong, when it is told, what it never accuses, and how to
/// repair it
///
/// Without a rule all of them are listed.
#[derive(Debug, clap::Args)]
pub(super) struct ExplainArgs {
    /// The rule, such as hot-loop
    #[arg(value_name = "RULE")]
    rule: Option<String>,
}

/// The text that is printed.
pub(super) fn run(args: &ExplainArgs) -> Result<()> {
    let Some(wanted) = &args.rule else {
        let mut all = String::new();
        for rule in RULES {
            let _ = writeln!(all, "{:<24} {:<8} {}", rule.id, rule.severity.name(), rule.name);
        }
        return super::about::print(all.as_bytes());
    };
    let Some(rule) = opdev_findings::rule(wanted) else {
        let near = nearest(wanted, RULES.iter().map(|rule| rule.id));
        let near = near.map_or_else(String::new, |near| format!("; did you mean `{near}`?"));
        bail!("no rule is called `{wanted}`{near} `opdev explain` lists all of them");
    };
    super::about::print(format!("{}: {}\n\n{}", rule.id, rule.name, opdev_findings::page(rule)).as_bytes())
}
