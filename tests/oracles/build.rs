//! How the program is linked, and whether the tests have the real helm and kubectl at hand.

fn main() {
    link_at_a_fixed_address();
    tell_of_oracles();
}

/// On Linux the program is linked to run at a fixed address. Else the loader would adjust 50,000 pointers at each
/// start, for which it copies 200 pages: more than half of what `opdev render` takes for a small chart. It stands here
/// and not in a configuration of Cargo's, so that `cargo install` does it, too.
fn link_at_a_fixed_address() {
    println!("cargo::rerun-if-changed=tests/oracles/build.rs");
    let target = |what: &str| std::env::var(format!("CARGO_CFG_TARGET_{what}")).unwrap_or_default();
    let features = target("FEATURE");
    let glibc = target("OS") == "linux" && target("ENV") == "gnu" && !features.contains("crt-static");
    if glibc && matches!(target("ARCH").as_str(), "x86_64" | "aarch64") {
        println!("cargo::rustc-link-arg-bins=-no-pie");
    }
}

/// Under `CI=true` they must be.
fn tell_of_oracles() {
    println!("cargo::rustc-check-cfg=cfg(oracles)");
    println!("cargo::rerun-if-env-changed=OPDEV_ORACLES");
    println!("cargo::rerun-if-env-changed=CI");
    if std::env::var_os("OPDEV_ORACLES").is_some() || std::env::var("CI").is_ok_and(|ci| ci == "true") {
        println!("cargo::rustc-cfg=oracles");
    }
}
