//! Flags of commands that take charts from repositories and registries.

use anyhow::{Context as _, Result, bail};
use opdev_event::words::visible;
use opdev_pull::Access;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// How a chart repository or a registry is reached
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Repositories and registries")]
pub(super) struct AccessArgs {
    /// The user at the chart repository or registry
    #[arg(long, value_name = "USER", requires = "password_stdin")]
    username: Option<String>,
    /// Read the password from standard input
    #[arg(long, requires = "username")]
    password_stdin: bool,
    /// Send user and password to every host that the index names, and to every registry of the dependencies
    #[arg(long)]
    pass_credentials: bool,
    /// Trust the certificates of this file, and no others
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
    /// The client's own certificate
    #[arg(long, value_name = "FILE", requires = "key_file")]
    cert_file: Option<PathBuf>,
    /// The key of the client's own certificate
    #[arg(long, value_name = "FILE", requires = "cert_file")]
    key_file: Option<PathBuf>,
    /// Do not check the server's certificate
    #[arg(long)]
    insecure_skip_tls_verify: bool,
    /// Ask registries without TLS
    #[arg(long)]
    plain_http: bool,
}

/// Prints a warning about a chart repository.
pub(super) fn warn(text: &str) {
    let _ = writeln!(super::visible::err(), "{}", visible(text));
}

impl AccessArgs {
    /// The files that the flags name.
    pub(super) fn files(&self) -> impl Iterator<Item = &Path> {
        [&self.ca_file, &self.cert_file, &self.key_file].into_iter().flatten().map(PathBuf::as_path)
    }

    /// What the flags say. The password is read from standard input where that is asked for.
    pub(super) fn access(&self) -> Result<Access> {
        let mut password = String::new();
        if self.password_stdin {
            std::io::stdin().read_line(&mut password).context("the password cannot be read")?;
            if password.trim_end_matches(['\r', '\n']).is_empty() {
                bail!("--password-stdin: standard input holds no password");
            }
        }
        Ok(Access {
            username: self.username.clone().unwrap_or_default(),
            password: password.trim_end_matches(['\r', '\n']).to_owned().into(),
            ca_file: self.ca_file.clone(),
            cert_file: self.cert_file.clone(),
            key_file: self.key_file.clone(),
            skip_verification: self.insecure_skip_tls_verify,
            plain_http: self.plain_http,
            pass_to_all_hosts: self.pass_credentials,
            of_command_line: None,
        })
    }
}
