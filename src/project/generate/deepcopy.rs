//! The `zz_generated.deepcopy.go` files of a project: made by `opdev_types::go`, placed where the project's
//! call of controller-gen places them. Writes only where `refresh` is called; runs no Go.

use super::manifests::{self, Asked, Made, Target};
use anyhow::{Context as _, Result, bail};
use opdev_os::read;
use opdev_os::small_file::small_text;
use opdev_project::go::files;
use opdev_project::go::files::{Disk, Wanted};
use opdev_types::diagnostic::Severity;
use opdev_types::emit::{self, Artifact};
use opdev_types::go::{DEEP_COPY_FILE, DeepCopyFile, Generator};
use opdev_types::pin::{Invocation, ObjectFlags, Output, Settings};
use std::path::{Path, PathBuf};

/// The header that kubebuilder scaffolds for generated Go files.
const HEADER: &str = "hack/boilerplate.go.txt";

/// Makes the files, and keeps what it parsed for the next time.
#[derive(Debug)]
pub struct DeepCopies {
    root: PathBuf,
    disk: Disk,
    generator: Generator,
}

/// The copy methods of a project, made once.
///
/// # Errors
/// Where no package asks for copy methods, or a header cannot be read.
pub fn deep_copies(root: &Path, asked: &Asked) -> Result<Made> {
    let made = DeepCopies::new(root).make(asked)?;
    if made.files.is_empty() && made.broken.is_empty() && !made.failed() {
        bail!(
            "no type below {} asks for copy methods: mark a package +kubebuilder:object:generate=true, or a kind \
             +kubebuilder:object:root=true",
            root.display()
        );
    }
    Ok(made)
}

impl DeepCopies {
    /// For the project at a root.
    pub fn new(root: &Path) -> DeepCopies {
        DeepCopies { root: root.to_owned(), disk: Disk::new(root), generator: Generator::new() }
    }

    /// The files as they should be, with nothing written. A package that cannot be read is among the broken
    /// ones, and its file is not among the files.
    ///
    /// # Errors
    /// Where a header cannot be read.
    pub fn make(&mut self, asked: &Asked) -> Result<Made> {
        let settings = files::settings(&self.root, &asked.year);
        let mut made = Made { version: "v0.21.0".to_owned(), ..Made::default() };
        for call in self.calls(&settings, asked) {
            let Some(flags) = asked.object.as_ref().or(call.object.as_ref()) else { continue };
            if call.place.is_none() {
                let header = flags.header_file.as_ref().map(|file| format!(":headerFile={file}"));
                let (header, paths) = (header.unwrap_or_default(), call.paths.join(" paths="));
                made.assumed = Some(format!("object{header} paths={paths}"));
            }
            if call.object_output == Some(Output::Nothing) && asked.output.is_none() {
                continue;
            }
            let header = self.header(&call, flags)?;
            let packages = files::packages(&self.root, &call.folder, &call.paths, Wanted::Copies);
            let own = |dir: &String| !self.is_of_deepcopy_gen(dir, call.place.is_some());
            let packages: Vec<String> =
                packages.into_iter().filter(|dir| !asked.paths.is_empty() || own(dir)).collect();
            let found = self.generator.deep_copies(&self.disk, &packages, &header);
            for one in &found.diagnostics {
                let shown = manifests::shown(&self.disk, one);
                if !made.diagnostics.contains(&shown) {
                    made.diagnostics.push(shown);
                }
            }
            if found.diagnostics.iter().any(|one| one.severity == Severity::Error) {
                let broken = found.broken.iter().map(|dir| format!("{dir}/{DEEP_COPY_FILE}"));
                made.broken.extend(broken);
            }
            for file in found.files {
                let path = self.place(&call, asked, &file);
                // A later call of the same generator writes over an earlier one's file.
                made.files.retain(|target| path.is_none() || target.path != path);
                let artifact = Artifact { name: DEEP_COPY_FILE.to_owned(), text: file.text };
                made.files.push(Target { path, chosen: asked.output.is_some(), artifact });
            }
        }
        Ok(made)
    }

    /// Makes the files and writes those whose text changes: for a saved type file, before the build. Gives
    /// what was made, and the paths of the files that were written.
    ///
    /// # Errors
    /// Where a header cannot be read or a file cannot be written.
    pub fn refresh(&mut self, asked: &Asked) -> Result<(Made, Vec<String>)> {
        let made = self.make(asked)?;
        let written = manifests::write(&self.root, &made)?;
        Ok((made, written))
    }

    /// Asks if the copy methods of a package are another generator's: it has written them, or its markers
    /// alone ask for them in a project that does not call controller-gen for copy methods.
    fn is_of_deepcopy_gen(&self, dir: &str, is_called: bool) -> bool {
        let folder = self.root.join(dir);
        if let Some(text) = small_text(&folder.join(DEEP_COPY_FILE)) {
            return text.contains("Code generated by deepcopy-gen");
        }
        let files = read::entries(&folder).unwrap_or_default().into_iter();
        let texts: Vec<String> = files
            .map(|file| file.path())
            .filter(|path| path.extension().is_some_and(|end| end == "go"))
            .filter_map(|path| small_text(&path))
            .collect();
        let any = |mark: &str| texts.iter().any(|text| text.contains(mark));
        !is_called && any("+k8s:deepcopy-gen") && !any("+kubebuilder:object:")
    }

    /// The calls of the project's Makefile; the one that kubebuilder scaffolds where there is none.
    fn calls(&self, settings: &Settings, asked: &Asked) -> Vec<Invocation> {
        let mut calls = settings.object_calls.clone();
        if calls.is_empty() {
            let header_file = self.root.join(HEADER).is_file().then(|| HEADER.to_owned());
            let object = Some(ObjectFlags { header_file, year: asked.year.clone() });
            calls.push(Invocation { object, ..Invocation::scaffolded() });
        }
        if !asked.paths.is_empty() {
            calls.truncate(1);
            calls[0].paths.clone_from(&asked.paths);
        }
        calls
    }

    fn header(&self, call: &Invocation, flags: &ObjectFlags) -> Result<String> {
        let Some(file) = &flags.header_file else { return Ok(String::new()) };
        let path = self.root.join(&call.folder).join(file);
        let text = read::text(&path).with_context(|| {
            format!("the header file {} cannot be read; headerFile names it", path.display())
        })?;
        Ok(emit::header(&text, &flags.year))
    }

    fn place(&self, call: &Invocation, asked: &Asked, file: &DeepCopyFile) -> Option<PathBuf> {
        match (&asked.output, &call.object_output) {
            (Some(folder), _) if folder.as_os_str() == "-" => None,
            (Some(folder), _) => Some(folder.join(DEEP_COPY_FILE)),
            (None, Some(Output::Folder(folder))) => {
                Some(self.root.join(&call.folder).join(folder).join(DEEP_COPY_FILE))
            }
            (None, Some(Output::Stdout)) => None,
            (None, Some(Output::Nothing) | None) => Some(self.root.join(&file.dir).join(DEEP_COPY_FILE)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_deepcopy_gen_are_left_to_it() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("go.mod", "module example.com/meta\n\ngo 1.24\n");
        let types = "package v1\n\ntype A struct {\n\tNames []string\n}\n";
        write("pkg/v1/doc.go", "// +k8s:deepcopy-gen=package\npackage v1\n");
        write("pkg/v1/types.go", types);
        write("other/v1/doc.go", "// +kubebuilder:object:generate=true\npackage v1\n");
        write("other/v1/types.go", types);
        let made = || {
            let made = DeepCopies::new(folder.path()).make(&Asked::default()).unwrap();
            assert!(!made.failed(), "{:?}", made.diagnostics);
            let paths = made.files.iter().filter_map(|file| file.path.as_ref());
            paths
                .map(|path| path.strip_prefix(folder.path()).unwrap().display().to_string())
                .collect::<Vec<_>>()
        };
        let own = "other/v1/zz_generated.deepcopy.go";
        assert_eq!(made(), [own]);
        // A Makefile that calls controller-gen for them asks for them.
        write("Makefile", "generate:\n\tcontroller-gen object paths=./...\n");
        assert_eq!(made(), [own, "pkg/v1/zz_generated.deepcopy.go"]);
        write(
            "pkg/v1/zz_generated.deepcopy.go",
            "// Code generated by deepcopy-gen. DO NOT EDIT.\n\npackage v1\n",
        );
        assert_eq!(made(), [own]);
    }
}
