//! How the program is linked, and which programs the tests have at hand.

use std::path::PathBuf;
use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=src/cli/build.rs");
    if links_with_glibc() {
        link_libgcc_in();
    }
    tell_of_programs();
}

fn target(what: &str) -> String {
    std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default()
}

fn links_with_glibc() -> bool {
    target("OS") == "linux" && target("ENV") == "gnu" && !target("FEATURE").contains("crt-static")
}

/// The unwinder is linked in where the compiler has it: as a library of its own it is found, mapped and bound
/// at each start, and asks the processor what it can, which takes long in a virtual machine. Rust names the
/// library, so a file of that name refers the linker to the archive.
fn link_libgcc_in() {
    println!("cargo::rerun-if-env-changed=RUSTC_LINKER");
    let linker = std::env::var_os("RUSTC_LINKER").unwrap_or_else(|| "cc".into());
    let found = Command::new(linker).arg("-print-file-name=libgcc_eh.a").output();
    // What is not found is printed as it was asked for.
    if !found.is_ok_and(|found| found.stdout.starts_with(b"/")) {
        return;
    }
    let folder = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    if std::fs::write(folder.join("libgcc_s.so"), "INPUT(-lgcc_eh -lgcc)\n").is_ok() {
        println!("cargo::rustc-link-arg-bins=-L{}", folder.display());
    }
}

/// Tests that lack a program are ignored, and counted by the runner in its last line. Under `CI=true` none
/// may be left out: they run, and fail without it.
fn tell_of_programs() {
    println!("cargo::rerun-if-env-changed=OPDEV_ORACLES");
    println!("cargo::rerun-if-env-changed=CI");
    let everything = std::env::var("CI").is_ok_and(|ci| ci == "true");
    let runs = |program: &str, argument: &str| {
        Command::new(program).arg(argument).output().is_ok_and(|output| output.status.success())
    };
    for (name, there) in [
        ("oracles", std::env::var_os("OPDEV_ORACLES").is_some()),
        ("go", runs("go", "version")),
        ("python", runs("python3", "--version")),
        ("xmllint", runs("xmllint", "--version")),
    ] {
        println!("cargo::rustc-check-cfg=cfg({name})");
        if everything || there {
            println!("cargo::rustc-cfg={name}");
        }
    }
}
