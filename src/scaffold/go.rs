//! A kind of an operator in Go: how its types join the program, its controller with a test, the copy methods
//! of its types and the role that all markers of the project ask for.

use super::api::NewApi;
use super::draft::Draft;
use super::draft_files::{DraftFiles, DraftFilesToCopy, options};
use super::go_project::{BOILERPLATE, EMPTY_ROLE, MAIN, ROLE, with_head};
use super::markers;
use super::options::fill;
use anyhow::{Result, bail};
use opdev_types::diagnostic::{Diagnostic, Place, Severity};
use opdev_types::emit;
use opdev_types::go::{DEEP_COPY_FILE, Generator};
use opdev_types::rbac::{self, Merging, Rule};

/// How the types of a package join its scheme.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Registration {
    /// By `runtime.SchemeBuilder`, as kubebuilder writes it since 4.14; the word is the variable with group
    /// and version.
    Function(&'static str),
    /// By controller-runtime's `scheme.Builder`, as kubebuilder wrote it before.
    Objects,
}

/// How the types of a package join its scheme, by its `groupversion_info.go`.
pub(super) fn registration(folder: &str, info: &str) -> Result<Registration> {
    if info.contains("scheme.Builder") {
        return Ok(Registration::Objects);
    }
    if !info.contains("SchemeBuilder") {
        bail!(
            "{folder}/groupversion_info.go has no SchemeBuilder, so that a Go program cannot know the types of this package: \
             move the file away, and this command writes it anew"
        );
    }
    let name = if info.contains("SchemeGroupVersion") { "SchemeGroupVersion" } else { "GroupVersion" };
    Ok(Registration::Function(name))
}

impl Registration {
    /// The last lines of a type file.
    pub(super) fn text(self, kind: &str) -> String {
        let call = match self {
            Registration::Objects => format!("\tSchemeBuilder.Register(&{kind}{{}}, &{kind}List{{}})\n"),
            Registration::Function(version) => format!(
                "\tSchemeBuilder.Register(func(scheme *runtime.Scheme) error {{\n\
                 \t\tscheme.AddKnownTypes({version}, &{kind}{{}}, &{kind}List{{}})\n\t\treturn nil\n\t}})\n"
            ),
        };
        format!("\nfunc init() {{\n{call}}}\n")
    }
}

/// Words that name no package of one's own: Go's keywords and its program, and what the scaffolded files
/// import.
const TAKEN: [&str; 32] = [
    "break",
    "case",
    "chan",
    "const",
    "continue",
    "corev1",
    "ctrl",
    "default",
    "defer",
    "else",
    "fallthrough",
    "filters",
    "for",
    "func",
    "go",
    "goto",
    "if",
    "import",
    "interface",
    "main",
    "map",
    "metav1",
    "package",
    "range",
    "return",
    "scheme",
    "select",
    "struct",
    "switch",
    "type",
    "types",
    "var",
];

/// A group, alone or with a version, as a Go identifier that nothing else has.
fn identifier(text: &str) -> String {
    let plain = text.replace(['-', '.'], "");
    let is_taken = TAKEN.contains(&plain.as_str()) || plain.starts_with(|c: char| c.is_ascii_digit());
    if is_taken { format!("api{plain}") } else { plain }
}

/// The names of a kind's controller in Go.
struct Names {
    /// The import name of the types' package.
    alias: String,
    /// The folder of the controller.
    folder: String,
    /// The controller's package.
    package: String,
    /// Its import with its name where that differs.
    import: String,
    /// The name of the controller in logs and metrics.
    controller: String,
}

impl Names {
    fn of(api: &NewApi) -> Names {
        let lower = api.lower();
        let group = if api.group.is_empty() { &api.project.domain } else { &api.group };
        let alias = identifier(&format!("{group}{}", api.gvk.version));
        let repo = &api.project.repo;
        if api.project.multigroup && !api.group.is_empty() {
            let folder = format!("internal/controller/{}", api.group);
            let package = identifier(&api.group);
            let import = format!("{package}controller \"{repo}/{folder}\"");
            return Names { alias, import, folder, package, controller: format!("{}-{lower}", api.group) };
        }
        let folder = "internal/controller".to_owned();
        let import = format!("\"{repo}/{folder}\"");
        Names { alias, import, folder, package: "controller".to_owned(), controller: lower }
    }
}

/// Plans the controller of a kind, with its test, and names both in `cmd/main.go`.
pub(super) fn add_controller(api: &NewApi, types: &str, draft: &mut Draft<'_>) {
    let names = Names::of(api);
    let (namespace, meta) = if api.namespaced {
        ("obj.Namespace", ", Namespace: \"default\"")
    } else {
        ("metav1.NamespaceDefault", "")
    };
    let up = names.folder.split('/').map(|_| "\"..\"").collect::<Vec<_>>().join(", ");
    let text = |text: &str| {
        let values = [
            ("ALIAS", names.alias.as_str()),
            ("PACKAGE", types),
            ("CONTROLLERS", &names.package),
            ("CONTROLLER", &names.controller),
            ("NAMESPACE", namespace),
            ("META_NAMESPACE", meta),
            ("UP", &up),
        ];
        with_head(draft, &fill(&api.fill(text), &values))
    };
    let lower = api.lower();
    let controller = text(include_str!("files/go/controller.go"));
    let test = text(include_str!("files/go/controller_test.go"));
    let suite = text(include_str!("files/go/suite_test.go"));
    draft.create(format!("{}/{lower}_controller.go", names.folder), controller);
    draft.create(format!("{}/{lower}_controller_test.go", names.folder), test);
    let suite_path = format!("{}/suite_test.go", names.folder);
    draft.create_missing(&suite_path, suite);

    let types = format!("{} \"{types}\"", names.alias);
    let scheme = format!("{}.AddToScheme", names.alias);
    let package = names.import.split_once(" \"").map_or("controller", |(name, _)| name);
    let setup = format!(
        "if err := (&{package}.{}Reconciler{{\n\tClient: mgr.GetClient(),\n\tScheme: mgr.GetScheme(),\n\
         }}).SetupWithManager(mgr); err != nil {{\n\
         \tsetupLog.Error(err, \"Failed to create the controller\", \"controller\", \"{}\")\n\tos.Exit(1)\n}}\n",
        api.gvk.kind, names.controller
    );
    let must = format!("utilruntime.Must({scheme}(scheme))\n");
    insert(MAIN, &[&types, &names.import], &[("scheme", &must), ("builder", &setup)], draft);
    let expect = format!("err = {scheme}(scheme.Scheme)\nExpect(err).NotTo(HaveOccurred())\n");
    insert(&suite_path, &[&types], &[("scheme", &expect)], draft);
}

/// Inserts imports and code at the markers of a Go file. Where one is missing, the user is told what to add.
fn insert(path: &str, imports: &[&str], code: &[(&str, &str)], draft: &mut Draft<'_>) {
    let Some(mut text) = draft.read(path) else {
        let lines = code.iter().map(|(_, code)| code.trim_end()).collect::<Vec<_>>().join("\n");
        draft.warn(format!("{path} is not there; the program has to call:\n{lines}"));
        return;
    };
    let mut missing = Vec::new();
    for import in imports {
        match markers::insert_import(&text, import) {
            Some(with) => text = with,
            None => missing.push(("imports", *import)),
        }
    }
    for (marker, code) in code {
        match markers::insert(&text, marker, code) {
            Some(with) => text = with,
            None => missing.push((marker, code.trim_end())),
        }
    }
    for (marker, code) in missing {
        draft.warn(format!(
            "{path} has no line `// +kubebuilder:scaffold:{marker}`; add to it by hand:\n{code}"
        ));
    }
    draft.update(path, text);
}

/// Plans the copy methods of a package of types, as `opdev deepcopy` makes them.
pub(super) fn add_copies(folder: &str, year: &str, draft: &mut Draft<'_>) {
    let head = emit::header(&draft.read(BOILERPLATE).unwrap_or_default(), year);
    let made =
        Generator::new().deep_copies(&DraftFilesToCopy(DraftFiles(draft)), &[folder.to_owned()], &head);
    let path = format!("{folder}/{DEEP_COPY_FILE}");
    match made.files.into_iter().find(|file| file.dir.trim_start_matches("./") == folder) {
        Some(file) => draft.update(&path, file.text),
        // Types of other modules are in Go's module cache, which is not read here.
        None => draft.warn(format!(
            "{path} is not written, for the package names types of other modules: `opdev deepcopy` or `make generate` writes it; \
             until then the program does not build"
        )),
    }
}

/// Plans the role that the RBAC markers of all Go files ask for, as `opdev rbac` makes it; `before` is what
/// they asked for before this command. A file that is not what the markers asked for is the user's, and
/// stays.
pub(super) fn add_role(before: Option<&str>, draft: &mut Draft<'_>) -> Result<()> {
    let Some(role) = role(draft)? else { return Ok(()) };
    let present = draft.read(ROLE);
    let own = EMPTY_ROLE;
    if present.as_deref().is_none_or(|text| text == own || Some(text) == before) {
        draft.update(ROLE, role);
    } else if present.as_deref() != Some(role.as_str()) {
        draft.warn(format!(
            "{ROLE} is not what the +kubebuilder:rbac markers ask for, so it stays as it is; `make manifests` writes it from \
             them"
        ));
    }
    Ok(())
}

/// The role of the markers as the files are now; none where one of them cannot be read, for a role without
/// its rules would take permissions away.
pub(super) fn role(draft: &Draft<'_>) -> Result<Option<String>> {
    let options = options(draft);
    let made = Generator::new().generate(&DraftFiles(draft), &["./...".to_owned()], &options);
    let on_marker = |place: &Place| {
        let line = usize::try_from(place.line).ok()?.checked_sub(1)?;
        Some(draft.read(&place.file)?.lines().nth(line)?.contains("+kubebuilder:rbac"))
    };
    let is_of_rbac = |one: &Diagnostic| one.place.as_ref().and_then(on_marker).unwrap_or(false);
    if made.diagnostics.iter().any(|one| one.severity == Severity::Error && is_of_rbac(one)) {
        return Ok(None);
    }
    let rules: Vec<Rule> = made.rbac.iter().map(|marker| Rule::of_marker(&marker.args)).collect();
    let roles = rbac::roles(&rules, "manager-role", Merging::for_version(options.profile.version()));
    Ok(rbac::file("role.yaml", &roles, "")?.map(|artifact| artifact.text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use expect_test::expect;

    #[test]
    fn identifiers_are_those_that_go_takes() {
        for (text, wanted) in [
            ("appv1", "appv1"),
            ("my-app.v1", "myappv1"),
            ("corev1", "apicorev1"),
            ("go", "apigo"),
            ("3scalev1", "api3scalev1"),
        ] {
            assert_eq!(identifier(text), wanted);
        }
    }

    #[test]
    fn a_kind_joins_the_scheme_as_its_package_does() {
        let of = |info: &str| registration("api/v1", info).map(|found| found.text("A"));
        let new = of("SchemeGroupVersion = 1\nSchemeBuilder = runtime.NewSchemeBuilder()").unwrap();
        expect![[r#"

            func init() {
            	SchemeBuilder.Register(func(scheme *runtime.Scheme) error {
            		scheme.AddKnownTypes(SchemeGroupVersion, &A{}, &AList{})
            		return nil
            	})
            }
        "#]]
        .assert_eq(&new);
        let old =
            of("SchemeBuilder = &scheme.Builder{GroupVersion: GroupVersion}\nSchemeGroupVersion").unwrap();
        expect![[r#"

            func init() {
            	SchemeBuilder.Register(&A{}, &AList{})
            }
        "#]]
        .assert_eq(&old);
        let none = of("package v1").unwrap_err().to_string();
        expect!["api/v1/groupversion_info.go has no SchemeBuilder, so that a Go program cannot know the types of this package: move the file away, and this command writes it anew"]
        .assert_eq(&none);
    }
}
