//! Content that a project brings in `.opdev`, or puts in the way of files that opdev writes, leads opdev
//! nowhere.

use crate::masked::masked;
use expect_test::expect;
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

fn start(folder: &Path, user: &Path, arguments: &[&str]) -> Child {
    Command::new(env!("CARGO_BIN_EXE_opdev"))
        .args(arguments)
        .current_dir(folder)
        .env("HOME", user)
        .env_remove("XDG_STATE_HOME")
        .env_remove("KUBECONFIG")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Runs until a line has the words, or until it ends by itself, and stops it; what it said on standard error.
fn until(mut child: Child, words: &str) -> String {
    let out = BufReader::new(child.stdout.take().unwrap());
    let _ = out.lines().map_while(Result::ok).find(|line| line.contains(words));
    let _ = Command::new("kill").args(["-INT", &child.id().to_string()]).status();
    let mut said = String::new();
    child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
    child.wait().unwrap();
    said
}

/// A file of the user's outside of the project, and whether it is as it was.
struct Victim {
    folder: tempfile::TempDir,
}

impl Victim {
    fn new() -> Victim {
        let victim = Victim { folder: tempfile::tempdir().unwrap() };
        fs::write(victim.file(), "ssh-ed25519 mine\n").unwrap();
        fs::set_permissions(victim.file(), fs::Permissions::from_mode(0o644)).unwrap();
        victim
    }

    fn file(&self) -> PathBuf {
        self.folder.path().join("authorized_keys")
    }

    #[track_caller]
    fn is_untouched(&self, what: &str) {
        assert_eq!(fs::read_to_string(self.file()).unwrap(), "ssh-ed25519 mine\n", "{what}");
        assert_eq!(fs::metadata(self.file()).unwrap().permissions().mode() & 0o777, 0o644, "{what}");
        let there: Vec<_> =
            fs::read_dir(self.folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(there, ["authorized_keys"], "{what}");
    }
}

#[test]
fn links_in_the_state_folder_lead_nowhere() {
    let today = jiff::Timestamp::now().strftime("opdev.%Y-%m-%d.log").to_string();
    let files = [
        ".gitignore",
        "lock",
        &today,
        "events.jsonl",
        "events.jsonl.1",
        "kubeconfig",
        "kubeconfig.part",
        "kubeconfig.opdev-lock",
        "types/opdev.d.ts",
        "data/lock",
        "data/.gitignore",
        "data/owner",
        "data/store.redb",
        "data/store.part",
    ];
    let folders = ["types", "data", "drafts"];
    for (planted, to_folder) in
        files.iter().map(|file| (*file, false)).chain(folders.iter().map(|folder| (*folder, true)))
    {
        let victim = Victim::new();
        let (folder, root) = crate::inner_loop::demo_project();
        let path = root.join(".opdev").join(planted);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::set_permissions(root.join(".opdev"), fs::Permissions::from_mode(0o700)).unwrap();
        let target = if to_folder { victim.folder.path().to_owned() } else { victim.file() };
        symlink(&target, &path).unwrap();
        let said =
            until(start(&root, &folder.path().join("user"), &["run", "--embedded", "--plain"]), " live");
        victim.is_untouched(planted);
        assert!(said.is_empty() || said.contains("to do:") || said.contains("link"), "{planted}: {said}");
    }
}

#[test]
fn a_state_folder_of_somebody_elses_is_refused() {
    let victim = Victim::new();
    let (folder, root) = crate::inner_loop::demo_project();
    let user = folder.path().join("user");
    let run = || until(start(&root, &user, &["run", "--embedded", "--plain"]), " live");
    symlink(victim.folder.path(), root.join(".opdev")).unwrap();
    let said = run();
    expect![[r#"
        error: TMP/demo/.opdev is a link or a file, and opdev follows no link there: whoever made it could have opdev write elsewhere
          to do: look at what it is, remove it, and start opdev again
    "#]]
    .assert_eq(&masked(&said));
    let said = until(start(&root, &user, &["serve"]), "Ctrl-C");
    expect![[r#"
        error: TMP/demo/.opdev/kubeconfig cannot be written: TMP/demo/.opdev is a link or a file, and opdev follows no link there: whoever made it could have opdev write elsewhere
          to do: look at what it is, remove it, and start opdev again
    "#]]
    .assert_eq(&masked(&said));
    victim.is_untouched(".opdev");
    fs::remove_file(root.join(".opdev")).unwrap();

    fs::create_dir(root.join(".opdev")).unwrap();
    fs::set_permissions(root.join(".opdev"), fs::Permissions::from_mode(0o777)).unwrap();
    let said = run();
    expect![[r#"
        error: other users may write to TMP/demo/.opdev, so what opdev finds there may be theirs
          to do: look at what is in it, then `chmod 700 TMP/demo/.opdev`, or remove it
    "#]]
    .assert_eq(&masked(&said));

    fs::set_permissions(root.join(".opdev"), fs::Permissions::from_mode(0o700)).unwrap();
    fs::write(root.join(".opdev/kubeconfig"), "theirs").unwrap();
    for arguments in [&["init", "-q"][..], &["add", "-f", ".opdev/kubeconfig"]] {
        assert!(Command::new("git").args(arguments).current_dir(&root).status().unwrap().success());
    }
    let said = run();
    expect![[r#"
        error: git tracks files in TMP/demo/.opdev: they came with the repository, and opdev would take them for its own
          to do: look at what they are, then `git rm -r --cached .opdev` and remove the folder
    "#]]
    .assert_eq(&masked(&said));
    assert_eq!(fs::read_to_string(root.join(".opdev/kubeconfig")).unwrap(), "theirs");
}

/// The credentials in a kubeconfig.
fn credentials(kubeconfig: &Path) -> (String, String) {
    let text = fs::read_to_string(kubeconfig).unwrap();
    let value = |key: &str| {
        let line = text.lines().find_map(|line| line.trim().strip_prefix(key)).unwrap();
        line.trim().to_owned()
    };
    (value("token:"), value("certificate-authority-data:"))
}

#[test]
fn a_store_that_came_with_the_project_lets_its_author_in_nowhere() {
    let folder = tempfile::tempdir().unwrap();
    let (author, user) = (folder.path().join("author"), folder.path().join("user"));
    let kubeconfig = folder.path().join("kubeconfig");
    let serve = |home: &Path| {
        let arguments = ["serve", "--data-dir", "data", "--kubeconfig", kubeconfig.to_str().unwrap()];
        let mut child = start(folder.path(), home, &arguments);
        let out = BufReader::new(child.stdout.take().unwrap());
        out.lines().map_while(Result::ok).find(|line| line.contains("Ctrl-C")).expect("it serves");
        let found = credentials(&kubeconfig);
        assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
        let mut said = String::new();
        child.stderr.take().unwrap().read_to_string(&mut said).unwrap();
        assert!(child.wait().unwrap().success(), "{said}");
        (found, said)
    };
    let (theirs, said) = serve(&author);
    assert_eq!(said, "");
    let (again, said) = serve(&author);
    assert_eq!((again, said.as_str()), (theirs.clone(), ""), "the same user keeps keys and token");
    let (mine, said) = serve(&user);
    assert!(mine.0 != theirs.0 && mine.1 != theirs.1, "token and authority of somebody else's");
    expect![[r#"
        warning: the objects in the data folder were not kept by you on this machine, so all keys and tokens in it were made anew; start with --fresh where you do not know the objects either
    "#]]
    .assert_eq(&said);
    assert_eq!(serve(&user).0, mine);
}

#[test]
fn generated_files_are_written_through_no_link_and_nowhere_else() {
    let victim = Victim::new();
    let (folder, root) = crate::inner_loop::demo_project();
    crate::gadget::gadgets(&root);
    let user = folder.path().join("user");
    let crd = "config/crd/bases/toys.example.com_gadgets.yaml";
    let run = |arguments: &[&str]| until(start(&root, &user, arguments), "no such line");
    let written = run(&["crd"]);
    assert!(root.join(crd).is_file(), "{written}");
    fs::remove_file(root.join(crd)).unwrap();
    symlink(victim.file(), root.join(crd)).unwrap();
    let said = run(&["crd"]);
    expect![[r#"
        error: the project's own settings name config/crd/bases/toys.example.com_gadgets.yaml; -o FOLDER names another place: config/crd/bases/toys.example.com_gadgets.yaml is a link or no file, and opdev writes through no link
          to do: look at where it leads, and remove it
    "#]]
    .assert_eq(&said);
    victim.is_untouched(crd);
    fs::remove_dir_all(root.join("config/crd")).unwrap();
    symlink(victim.folder.path(), root.join("config/crd")).unwrap();
    let said = run(&["crd"]);
    expect![[r#"
        error: the project's own settings name config/crd/bases/armada.airshipit.org_armadabackups.yaml; -o FOLDER names another place: config/crd is a link or a file, and opdev writes through no link
          to do: put a folder in its place, or name another folder
    "#]]
    .assert_eq(&said);
    victim.is_untouched("config/crd");
    // The user's own word is taken.
    let out = folder.path().join("out");
    run(&["crd", "-o", out.to_str().unwrap()]);
    assert!(out.join("toys.example.com_gadgets.yaml").is_file());
}
