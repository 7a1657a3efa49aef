//! The one integration binary. Each module proves one room from the outside.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::too_many_lines,
    missing_docs
)]

mod acting;
mod architecture;
mod beside;
mod ci;
mod cli;
mod clusters;
mod controlplane;
mod demo;
mod deploy;
mod findings_go;
mod gadget;
mod guide;
mod hostile;
mod image;
mod inner_loop;
mod kopf;
mod masked;
mod newer;
mod observed;
mod operate;
mod operator;
mod oracle;
mod packing;
mod pages;
mod plan;
mod planted;
mod process;
mod pty;
mod pull;
mod release;
mod reload;
mod reload_types;
mod render;
mod scaffold;
mod served;
mod service_account;
mod several;
mod snapshots;
mod supervised;
mod terminal;
mod told_by_calls;
mod torture;
mod traced;
mod trust;
mod tutorial;
mod type_files;
mod unwritten;
mod upgrade;
mod words;
