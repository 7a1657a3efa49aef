//! Commands and their wiring; the only room that knows everyone.

use std::process::ExitCode;

/// Runs the command line.
pub fn main() -> ExitCode {
    ExitCode::SUCCESS
}
