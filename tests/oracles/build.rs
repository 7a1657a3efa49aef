//! Tells the tests whether real helm and kubectl are at hand. Under `CI=true` they must be.
fn main() {
    println!("cargo::rustc-check-cfg=cfg(oracles)");
    println!("cargo::rerun-if-env-changed=OPDEV_ORACLES");
    println!("cargo::rerun-if-env-changed=CI");
    if std::env::var_os("OPDEV_ORACLES").is_some() || std::env::var("CI").is_ok_and(|ci| ci == "true") {
        println!("cargo::rustc-cfg=oracles");
    }
}
