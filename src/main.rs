//! The `opdev` command.

fn main() -> std::process::ExitCode {
    opdev::cli::main()
}
