//! The `opdev` command.

/// A render is many small allocations; this allocator halves what they cost, and the program is done a third
/// sooner.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> std::process::ExitCode {
    opdev::main()
}
