//! Commands and their wiring; the only room that knows everyone. One file a command.
//! Exit codes: 0 done, 1 failed, 2 wrong usage; `plan` and `ci` have more.

mod about;
mod arguments;
mod begin;
mod ci;
mod compare;
mod complete;
mod crd;
mod dependency;
mod deploy;
pub mod envtest;
mod explain;
mod far;
mod image;
mod kubernetes;
mod logging;
mod operate;
mod pages;
mod plan;
pub mod print;
#[cfg(test)]
mod reference;
pub mod render;
mod run;
mod scaffold;
pub mod serve;
pub mod signals;
mod tail;
mod torture;
mod trust;
mod upgrade;
mod visible;
mod webhooks;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{CommandFactory as _, Parser, Subcommand};
use opdev_object::spelling;
use std::process::ExitCode;

/// What to do next, below the list of commands.
const NEXT: &str = "What to do next:\n  in the folder of an operator    opdev run\n  in the folder of a chart        \
    opdev run           (offers to make an operator of it)\n  in an empty folder              opdev init --types \
    --group cache --version v1alpha1 --kind Memcached\n  to look at an API server        opdev serve";

/// The local inner loop for Kubernetes operator developers.
#[derive(Debug, Parser)]
#[command(name = "opdev", version, about, max_term_width = 100, after_help = NEXT)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator of this project, reload what you save, and show what happens
    Run(run::RunArgs),
    Plan(plan::PlanArgs),
    Ci(ci::CiArgs),
    Upgrade(upgrade::UpgradeArgs),
    Torture(Box<torture::TortureArgs>),
    Operate(operate::OperateArgs),
    Image(image::ImageArgs),
    Init(scaffold::InitArgs),
    Create(scaffold::CreateArgs),
    Serve(serve::ServeArgs),
    Render(render::RenderArgs),
    #[command(visible_alias = "dep")]
    Dependency(dependency::DependencyArgs),
    Crd(crd::CrdArgs),
    Rbac(crd::RbacArgs),
    Webhook(crd::WebhookArgs),
    #[command(name = "deepcopy")]
    DeepCopy(crd::DeepCopyArgs),
    Install(deploy::InstallArgs),
    Uninstall(deploy::UninstallArgs),
    Deploy(deploy::DeployArgs),
    Undeploy(deploy::UndeployArgs),
    /// Follow the events of an opdev that runs in this project
    Tail(tail::TailArgs),
    /// Allow this project what it wants beyond rendering and applying, such as running programs
    Trust(trust::TrustArgs),
    Explain(explain::ExplainArgs),
    Version(about::VersionArgs),
    Completions(complete::CompletionsArgs),
    Man(about::ManArgs),
}

/// The command line of a render alone: it is over before the other commands' flags would be described.
#[derive(Debug, Parser)]
#[command(name = "opdev", version, about, max_term_width = 100)]
enum Quick {
    Render(render::RenderArgs),
}

/// Reads the command line.
fn parse() -> Result<Command, clap::Error> {
    if std::env::args_os().nth(1).is_some_and(|name| name == "render") {
        return Quick::try_parse().map(|Quick::Render(args)| Command::Render(args));
    }
    Cli::try_parse().map(|cli| cli.command).map_err(suggest)
}

/// Names the command that was meant, also where clap finds none that is near: it compares short words by their letters in place,
/// so that `rnu` is like nothing.
fn suggest(mut error: clap::Error) -> clap::Error {
    let is_wrong_command = error.kind() == ErrorKind::InvalidSubcommand;
    if !is_wrong_command || error.get(ContextKind::SuggestedSubcommand).is_some() {
        return error;
    }
    let Some(ContextValue::String(typed)) = error.get(ContextKind::InvalidSubcommand).cloned() else {
        return error;
    };
    let command = Cli::command();
    let known = command.get_subcommands().map(clap::Command::get_name);
    if let Some(meant) = spelling::nearest(&typed, known) {
        let meant = ContextValue::Strings(vec![meant.to_owned()]);
        error.insert(ContextKind::SuggestedSubcommand, meant);
    }
    error
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let done = run();
    match visible::unwritten() {
        Some(why) => {
            visible::complain(&anyhow::anyhow!(why));
            if done == ExitCode::SUCCESS { ExitCode::FAILURE } else { done }
        }
        None => done,
    }
}

fn run() -> ExitCode {
    let began = std::time::Instant::now();
    logging::leave_out_caught_panics();
    let log = std::cell::OnceCell::new();
    let stop = || {
        log.get_or_init(logging::to_stderr);
        signals::stop_signal()
    };
    if let Some(played) = crate::envtest::part(stop) {
        return code(played.map(|()| ExitCode::SUCCESS));
    }
    match complete::answer(Cli::command) {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => {
            let _ = error.print();
            return ExitCode::FAILURE;
        }
    }
    let command = match parse() {
        Ok(command) => command,
        Err(error) => {
            let printed = error.print().err().filter(|lost| !error.use_stderr() && !is_gone(lost));
            return match printed {
                Some(lost) => code(Err(anyhow::anyhow!("standard output cannot be written: {lost}"))),
                None => unread(error.exit_code()),
            };
        }
    };
    if matches!(command, Command::Run(_) | Command::Operate(_) | Command::Serve(_)) {
        pages::use_small();
    }
    let result = match command {
        Command::Ci(args) => return ci::run(args),
        Command::Upgrade(args) => return upgrade::run(&args),
        Command::Torture(args) => return torture::run(*args),
        Command::Plan(args) => return code(plan::run(args)),
        Command::Crd(args) => return code(crd::crd(&args)),
        Command::Rbac(args) => return code(crd::rbac(&args)),
        Command::Webhook(args) => return code(crd::webhook(&args)),
        Command::DeepCopy(args) => return code(crd::deep_copy(&args)),
        Command::Run(args) => run::run(args, began),
        Command::Operate(args) => return code(operate::run(&args)),
        Command::Image(args) => image::run(&args),
        Command::Init(args) => scaffold::init(&args),
        Command::Create(args) => scaffold::create(&args),
        Command::Serve(args) => return serve::run(&args),
        Command::Render(args) => return render::run(&args),
        Command::Dependency(args) => dependency::run(&args),
        Command::Install(args) => deploy::install(args),
        Command::Uninstall(args) => deploy::uninstall(args),
        Command::Deploy(args) => deploy::deploy(args),
        Command::Undeploy(args) => deploy::undeploy(args),
        Command::Tail(args) => tail::run(&args),
        Command::Trust(args) => trust::run(&args),
        Command::Explain(args) => explain::run(&args),
        Command::Version(args) => about::version(&args),
        Command::Completions(args) => complete::completions(&args),
        Command::Man(args) => about::man(&args, Cli::command()),
    };
    code(result.map(|()| ExitCode::SUCCESS))
}

/// Returns true if a reader has gone away: it has seen enough.
fn is_gone(error: &std::io::Error) -> bool {
    error.kind() == std::io::ErrorKind::BrokenPipe
}

/// The exit code of a command line that was not carried out; clap has `code` for it. Of `plan` 2 means that something
/// would change.
fn unread(code: i32) -> ExitCode {
    let is_plan = || std::env::args_os().nth(1).is_some_and(|name| name == "plan");
    match code {
        0 => ExitCode::SUCCESS,
        _ if is_plan() => ExitCode::FAILURE,
        code => ExitCode::from(u8::try_from(code).unwrap_or(2)),
    }
}

/// The exit code of a command; what failed is told.
fn code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        visible::complain(&error);
        // As clap ends where it cannot read the command line.
        if error.is::<arguments::WrongUsage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
    })
}

/// Tells the user something beside the output, on standard error.
fn say(text: &str) {
    use std::io::Write as _;
    let _ = writeln!(visible::err(), "{text}");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_command_leads_to_the_one_that_was_meant() {
        for (typed, meant) in [("rnu", "run"), ("sevre", "serve"), ("paln", "plan"), ("instal", "install")] {
            let error = Cli::try_parse_from(["opdev", typed]).map_err(suggest).unwrap_err().to_string();
            assert!(error.contains(&format!("'{meant}'")), "{error}");
        }
        let error = Cli::try_parse_from(["opdev", "xyzzy"]).map_err(suggest).unwrap_err().to_string();
        assert!(!error.contains("similar"), "{error}");
    }

    #[test]
    fn a_render_is_described_alike_in_both_command_lines() {
        let help = |mut command: clap::Command| {
            command.build();
            command.find_subcommand_mut("render").unwrap().render_long_help().to_string()
        };
        let said = help(Quick::command());
        assert!(said.contains("--include-crds"), "{said}");
        assert_eq!(said, help(Cli::command()));
    }
}
