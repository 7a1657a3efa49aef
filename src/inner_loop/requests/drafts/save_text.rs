//! Saves what a pane shows: into `.opdev/saved` of the project, or where the user wants it. A file that
//! exists stays.

use crate::Requests;
use crate::objects::apply::expanded;
use crate::outcome::Done;
use anyhow::{Context as _, Result, bail};
use jiff::Zoned;
use opdev_os::private_folder::{PrivateFolder, write_named};
use opdev_os::state_path::{shown, state_path};

impl Requests {
    pub(crate) async fn save_text(&self, path: Option<&str>, name: &str, text: &str) -> Result<Done> {
        let (root, path) = (self.project.root.clone(), path.map(str::to_owned));
        let (name, text) = (file_name(name), text.to_owned());
        let saved = tokio::task::spawn_blocking(move || -> Result<String> {
            let Some(path) = path else {
                let file = format!("{}-{name}", Zoned::now().strftime("%Y%m%d-%H%M%S"));
                let folder = PrivateFolder::state(&state_path(&root))?.folder("saved")?;
                folder.write(&file, text.as_bytes())?;
                return Ok(shown(&root, &folder.path().join(file)));
            };
            let place = root.join(expanded(&path));
            if place.symlink_metadata().is_ok() {
                bail!("{path} exists already, and stays as it is; name another file");
            }
            write_named(&place, text.as_bytes())?;
            Ok(path)
        });
        let path = saved.await.context("saving was interrupted")??;
        Ok(Done::said(format!("saved as {path}")))
    }
}

/// A name that stays in its folder, whatever an object is called.
fn file_name(name: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.') { c } else { '-' };
    name.trim_start_matches('.').chars().map(plain).take(120).collect()
}

#[cfg(test)]
mod tests {
    use super::file_name;

    #[test]
    fn a_name_leads_to_no_other_folder() {
        assert_eq!(file_name("yaml-../../a b.yaml"), "yaml-..-..-a-b.yaml");
        assert_eq!(file_name("../x"), "-x");
    }
}
