//! Files and folders for a path that is being typed. Not a request that is announced: it changes nothing.

use super::Requests;
use super::apply::expanded;
use crate::event::{Event, Paths};

/// More are not told.
const MOST: usize = 200;

impl Requests {
    /// Tells which files with objects, and which folders, the typed text may lead to.
    pub(in crate::dev) async fn list_paths(&self, typed: String) {
        let root = self.project.root.clone();
        let listed = tokio::task::spawn_blocking(move || {
            let (folder, start) = typed.rsplit_once('/').map_or(("", typed.as_str()), |(f, s)| (f, s));
            let shown = if typed.contains('/') { format!("{folder}/") } else { String::new() };
            let place = root.join(expanded(if shown.is_empty() { "." } else { &shown }));
            let mut found: Vec<String> = Vec::new();
            for entry in std::fs::read_dir(place).into_iter().flatten().flatten() {
                let Ok(name) = entry.file_name().into_string() else { continue };
                let hidden = name.starts_with('.') && !start.starts_with('.');
                if hidden || !name.starts_with(start) {
                    continue;
                }
                let file = [".yaml", ".yml", ".json"].iter().any(|end| name.ends_with(end));
                if entry.path().is_dir() {
                    found.push(format!("{shown}{name}/"));
                } else if file {
                    found.push(format!("{shown}{name}"));
                }
            }
            found.sort();
            found.truncate(MOST);
            Paths { typed, found }
        });
        if let Ok(paths) = listed.await {
            self.events.emit(Event::PathsListed(paths)).await;
        }
    }
}
