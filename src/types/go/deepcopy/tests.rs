//! Golden cases of `tests/golden/types/deepcopy`: own Go files, and what the real controller-gen made of
//! them.

#![allow(clippy::disallowed_methods)]

use super::*;
use crate::go::golden::Disk;
use crate::go::tests::Memory;
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/golden/types/deepcopy")
}

#[test]
fn copy_methods_are_those_of_controller_gen() {
    let root = root();
    let header = fs::read_to_string(root.join("header.txt")).unwrap().replace(" YEAR", " 2026");
    let made = Generator::new().deep_copies(&Disk(root.clone()), &["./api/...".to_owned()], &header);
    assert_eq!(made.diagnostics, []);
    let dirs: Vec<&str> = made.files.iter().map(|file| file.dir.as_str()).collect();
    assert_eq!(dirs, ["api/legacy", "api/plain", "api/v1"]);
    for file in &made.files {
        let path = root.join(&file.dir).join(FILE);
        let want = fs::read_to_string(&path).unwrap();
        if let Some(diff) = opdev_object::lines::unified("controller-gen", "opdev", &want, &file.text) {
            panic!("{}\n{diff}", file.dir);
        }
    }
}

fn project(body: &str) -> Memory {
    let types = format!("// +kubebuilder:object:generate=true\npackage v1\n\n{body}");
    Memory::of(&[("api/v1/types.go", &types), ("go.mod", "module example.com/a\n")])
}

fn made(body: &str) -> DeepCopies {
    Generator::new().deep_copies(&project(body), &["./...".to_owned()], "")
}

/// A type that cannot be copied costs the package its file, and the error has its place: an old file is
/// better than half a new one.
#[test]
fn what_cannot_be_copied_is_told_with_its_place() {
    let cases = [
        ("type A struct {\n\tB any\n}\n", 5, "an interface cannot be copied"),
        ("type A struct {\n\tB string\n\tC [3]int\n}\n", 6, "an array cannot be copied"),
        ("type A struct {\n\tB map[string]func()\n}\n", 5, "a function cannot be copied"),
        ("type A struct {\n\tB []chan int\n}\n", 5, "a channel cannot be copied"),
        (
            "type A struct {\n\tB []struct{ C []string }\n}\n",
            5,
            "a struct without a name cannot be copied here",
        ),
        (
            "type A struct {\n\tB map[*string]string\n}\n",
            5,
            "the keys of this map cannot be copied: they are not of a basic type",
        ),
        ("type A struct {\n\tB Missing\n}\n", 5, "undefined: Missing"),
        ("type A struct {\n\tB x.Y\n}\n", 5, "undefined: x"),
        ("type A[T any] struct {\n\tB T\n}\n", 4, "copy methods of the generic type A cannot be generated"),
        (
            "import x \"example.com/x\"\n\ntype A struct {\n\tB x.Y\n}\n",
            7,
            "how example.com/x.Y is copied is unknown: no go.mod requires a module with this package",
        ),
        ("type A struct {\n\tB string\n", 5, "the file ends here, and the `{` of line 4 is not closed"),
        ("type A []A\n", 4, "a type that holds itself cannot be copied"),
        ("type A map[string]*A\n", 4, "a type that holds itself cannot be copied"),
        (
            "type A *[]A\n\ntype B struct {\n\tC string\n\tD A\n}\n",
            8,
            "a type that holds itself cannot be copied",
        ),
    ];
    for (body, line, message) in cases {
        let made = made(body);
        assert_eq!(made.files, [], "{body}");
        assert_eq!(made.broken, ["api/v1"], "{body}");
        let found: Vec<(u32, &str)> = made
            .diagnostics
            .iter()
            .map(|one| (one.place.as_ref().map_or(0, |place| place.line), one.message.as_str()))
            .collect();
        assert!(found.contains(&(line, message)), "{body}: {found:?}");
    }
}

/// Each type holds the one before twice: looking at every field anew would never end.
#[test]
fn structs_that_hold_each_other_many_times_are_looked_at_once() {
    let mut body = "type A0 struct{ B string }\n".to_owned();
    for at in 1..50 {
        body += &format!("\ntype A{at} struct{{ B, C A{} }}\n", at - 1);
    }
    let made = made(&body);
    assert_eq!(made.diagnostics, []);
    assert!(made.files[0].text.contains("\tout.B = in.B\n\tout.C = in.C\n"), "{}", made.files[0].text);
}

#[test]
fn markers_that_cannot_be_read_are_told() {
    let made = made("// +kubebuilder:object:root=yes\ntype A struct{ B string }\n");
    assert_eq!(
        made.diagnostics[0].message,
        "+kubebuilder:object:root=yes cannot be read: expected true or false"
    );
    assert_eq!(made.broken, ["api/v1"]);
}

#[test]
fn a_package_without_imports_and_types_by_hand_alone() {
    let made =
        made("type A struct{ B string }\n\ntype unexported struct{ c []string }\n\ntype Text string\n");
    let [file] = made.files.as_slice() else { panic!("{made:?}") };
    assert!(file.text.contains("\npackage v1\n\nimport ()\n\n// DeepCopyInto"), "{}", file.text);
    assert_eq!(file.text.matches("\nfunc ").count(), 2, "{}", file.text);
    let none = Generator::new().deep_copies(
        &project("type A struct{ B string }\n\nfunc (in *A) DeepCopyInto(out *A) {}\n\nfunc (in *A) DeepCopy() *A { return in }\n"),
        &["./...".to_owned()],
        "",
    );
    assert_eq!((none.files.len(), none.broken.len(), none.diagnostics.len()), (0, 0, 0), "{none:?}");
}

/// After a save, the text is that of a generator that has seen nothing before.
#[test]
fn a_saved_file_is_read_again() {
    let (mut warm, packages) = (Generator::new(), ["./...".to_owned()]);
    let first = warm.deep_copies(&project("type A struct{ B string }\n"), &packages, "");
    assert!(!first.files[0].text.contains("copy(*out, *in)"));
    let second = project("type A struct{ B []string }\n");
    let again = warm.deep_copies(&second, &packages, "");
    assert!(again.files[0].text.contains("copy(*out, *in)"));
    assert_eq!(again.files, Generator::new().deep_copies(&second, &packages, "").files);
}

/// `OPDEV_DEEPCOPY_PROJECT=folder,packages[,header file]` writes the files of a whole project, by hand.
#[test]
fn a_whole_project_by_hand() {
    let Ok(project) = std::env::var("OPDEV_DEEPCOPY_PROJECT") else { return };
    let mut parts = project.split(',');
    let root = PathBuf::from(parts.next().unwrap_or("."));
    let packages: Vec<String> = parts.next().unwrap_or("./...").split(';').map(str::to_owned).collect();
    let header = parts.next().map(|file| fs::read_to_string(root.join(file)).unwrap()).unwrap_or_default();
    let header = header.replace(" YEAR", " 2026");
    let made = Generator::new().deep_copies(&Disk(root.clone()), &packages, &header);
    for one in &made.diagnostics {
        println!("{:?} {:?} {}", one.severity, one.place, one.message);
    }
    for file in &made.files {
        fs::write(root.join(&file.dir).join(FILE), &file.text).unwrap();
    }
    assert!(made.broken.is_empty(), "{:?}", made.broken);
}
