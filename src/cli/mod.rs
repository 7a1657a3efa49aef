//! Commands and their wiring; the only room that knows everyone. One file a command.
//! Exit codes: 0 done, 1 failed, 2 wrong usage.

mod crd;
mod logging;
pub mod render;
mod run;
pub mod serve;
mod tail;
mod webhooks;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// The local inner loop for Kubernetes operator developers.
#[derive(Debug, Parser)]
#[command(name = "opdev", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Run the operator of this project, reload what you save, and show what happens
    Run(run::RunArgs),
    Serve(serve::ServeArgs),
    Render(render::RenderArgs),
    Crd(crd::CrdArgs),
    Rbac(crd::RbacArgs),
    /// Follow the events of an opdev that runs in this project
    Tail(tail::TailArgs),
}

/// Runs the command line.
pub fn main() -> ExitCode {
    let began = std::time::Instant::now();
    if let Some(played) = crate::envtest::part(serve::stop_signal) {
        return code(played.map(|()| ExitCode::SUCCESS));
    }
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print();
            return ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2));
        }
    };
    let result = match cli.command {
        Command::Crd(args) => return code(crd::crd(&args)),
        Command::Rbac(args) => return code(crd::rbac(&args)),
        Command::Run(args) => run::run(args, began),
        Command::Serve(args) => return serve::run(&args),
        Command::Render(args) => return render::run(&args),
        Command::Tail(args) => tail::run(&args),
    };
    code(result.map(|()| ExitCode::SUCCESS))
}

/// The exit code of a command; what failed is told.
fn code(result: anyhow::Result<ExitCode>) -> ExitCode {
    result.unwrap_or_else(|error| {
        complain(&error);
        ExitCode::FAILURE
    })
}

/// Tells the user what failed, on standard error.
fn complain(error: &anyhow::Error) {
    use std::io::Write as _;
    let _ = writeln!(std::io::stderr(), "error: {error:#}");
}
