//! Questions, remembered answers, and proof that nobody else decides.

use super::*;
use crate::{files, load};
use expect_test::expect;
use opdev_controlplane::OutsideCall;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

fn project(settings: &str, watches: &str) -> (tempfile::TempDir, Project) {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("opdev.yaml"), settings).unwrap();
    fs::write(folder.path().join("watches.yaml"), watches).unwrap();
    let project = Project::discover(Some(folder.path()), folder.path()).unwrap();
    (folder, project)
}

fn run(program: &str) -> Permission {
    Permission::RunProgram { program: program.to_owned() }
}

const ENTRY: &str = "- {group: a.b, version: v1, kind: One, chart: charts/one, overrideValues: ";

#[test]
fn what_a_project_wants_is_what_its_files_say() {
    let settings = "allow: {programs: [bash], hosts: [api.example.com]}\napplyOnStart: [samples/a.yaml]\n";
    let (_folder, wishes) =
        project(settings, &format!("{ENTRY}{{token: 'a-$TOKEN-${{HOME}}', tag: latest}}}}\n"));
    let words: Vec<String> = wanted(&wishes).iter().map(ToString::to_string).collect();
    assert_eq!(
        words,
        [
            "run the program bash, called by reconcilers",
            "reach the host api.example.com, called by reconcilers",
            "read the environment variable HOME into the value token of One.a.b",
            "read the environment variable TOKEN into the value token of One.a.b",
            "apply samples/a.yaml at every start, so that reconcilers run without a key",
        ]
    );
    // Rendering and applying needs no trust.
    let (_folder, plain) =
        project("applyOnStart: [samples/a.yaml]\n", &format!("{ENTRY}{{tag: '{{{{ 1 }}}}'}}}}\n"));
    assert_eq!(wanted(&plain), []);
}

#[test]
fn the_user_is_asked_about_the_files_that_were_read() {
    let (folder, project) = project("{}", &format!("{ENTRY}{{token: a}}}}\n"));
    let (options, mut memory) = (files::options(&project, &[], Vec::new()), files::Memory::default());
    let before = load::read(&project, &mut memory, &options, &[]).unwrap();
    fs::write(folder.path().join("watches.yaml"), format!("{ENTRY}{{token: $TOKEN}}}}\n")).unwrap();
    let after = load::read(&project, &mut memory, &options, &[]).unwrap();
    assert_eq!(before.wanted(&project, Vec::new()), []);
    let token = Permission::ReadVariable {
        variable: "TOKEN".to_owned(),
        kind: "One.a.b".to_owned(),
        key: "token".to_owned(),
    };
    assert_eq!(after.wanted(&project, Vec::new()), [token]);
    let trust = Trust::of(&project.root, Store::none());
    let variables = |read: files::Unasked| read.with_granted(&project, &trust).watches.variables().len();
    assert_eq!((variables(before), variables(after)), (0, 1));
}

#[test]
fn a_change_asks_again_and_less_does_not() {
    let (home, root) = (tempfile::tempdir().unwrap(), Path::new("/home/me/project"));
    let store = Store::at(&home.path().join("opdev"));
    store.trust(root, &[run("bash"), run("curl")]).unwrap();
    let open =
        |root: &Path, wanted: &[Permission]| Trust::of(root, store.clone()).unanswered(wanted).unwrap();
    assert_eq!(open(root, &[run("bash"), run("curl")]), []);
    assert_eq!(open(root, &[run("curl")]), []);
    assert_eq!(open(root, &[run("bash"), run("nc")]), [run("nc")]);
    assert_eq!(open(root, &[Permission::ReachHost { host: "bash".to_owned() }]).len(), 1);
    // A wish of one project is not granted to another one.
    assert_eq!(open(Path::new("/home/me/other"), &[run("bash")]), [run("bash")]);
    assert!(store.revoke(root).unwrap() && !store.revoke(root).unwrap());
    assert_eq!(open(root, &[run("bash")]), [run("bash")]);
}

#[test]
fn what_is_remembered_is_the_users_alone() {
    let home = tempfile::tempdir().unwrap();
    let folder = home.path().join("state/opdev");
    let store = Store::at(&folder);
    let root = Path::new("/home/me/project");
    store.trust(root, &[run("bash")]).unwrap();
    let file = folder.join("trusted");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(fs::metadata(&folder).unwrap().permissions().mode() & 0o777, 0o700);
    // Somebody else's words count for nothing.
    let elsewhere = home.path().join("planted");
    fs::copy(&file, &elsewhere).unwrap();
    fs::remove_file(&file).unwrap();
    symlink(&elsewhere, &file).unwrap();
    assert!(store.all().unwrap_err().to_string().contains("is a link"));
    assert!(store.trust(root, &[run("nc")]).is_err());
    assert!(!fs::read_to_string(&elsewhere).unwrap().contains(" nc,"));
    fs::remove_file(&file).unwrap();
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o777)).unwrap();
    assert!(store.all().unwrap_err().to_string().contains("other users may write"));
    // A file that says more in words than its hashes do.
    fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).unwrap();
    store.trust(root, &[run("bash")]).unwrap();
    let forged = fs::read_to_string(&file).unwrap().replace("program bash", "program nc");
    fs::write(&file, forged).unwrap();
    assert_eq!(Trust::of(root, store).unanswered(&[run("nc")]).unwrap(), [run("nc")]);
}

#[tokio::test]
async fn an_answer_is_about_what_was_shown() {
    let (events, mut seen) = EventSink::channel(16);
    let trust = Trust::of(Path::new("/home/me/project"), Store::none());
    assert!(!trust.ask(&[run("bash")], &events).await.unwrap());
    assert!(!trust.ask(&[run("bash")], &events).await.unwrap(), "asked once, and still open");
    assert!(trust.answer(TrustAnswer::Once, &[run("nc")], &events).await.is_err());
    assert!(!trust.grants(&run("bash")));
    trust.answer(TrustAnswer::Refuse, &[run("bash")], &events).await.unwrap();
    assert!(trust.ask(&[run("bash")], &events).await.unwrap(), "a refusal is an answer");
    assert!(!trust.decided(&run("bash")).await);
    trust.ask_again();
    assert!(!trust.ask(&[run("bash")], &events).await.unwrap());
    // Without a place to remember it, it counts until the end, and the user hears that.
    assert!(trust.answer(TrustAnswer::Trust, &[run("bash")], &events).await.is_err());
    assert!(trust.decided(&run("bash")).await && trust.ask(&[run("bash")], &events).await.unwrap());
    let mut names = Vec::new();
    while let Ok(event) = seen.try_recv() {
        names.push(match event {
            Event::TrustAsked(_) => "asked",
            Event::TrustAnswered(_) => "answered",
            _ => "other",
        });
    }
    assert_eq!(names, ["asked", "answered", "asked", "answered"]);
}

/// A webhook of a chart sends what others write to wherever it says. (It did so without a question.)
#[tokio::test]
async fn another_machine_is_called_only_when_the_user_has_allowed_it() {
    let (events, mut seen) = EventSink::channel(16);
    let home = tempfile::tempdir().unwrap();
    let store = || Store::at(&home.path().join("trusted"));
    let root = Path::new("/home/me/project");
    let trust = Trust::of(root, store());
    let call =
        |by_kubectl| OutsideCall { host: "evil.example.com", url: "https://evil.example.com/a", by_kubectl };
    let mut answers = trust.answers();
    let why = trust.may_call(&call(false)).unwrap_err();
    assert!(why.contains("evil.example.com is not called") && why.contains("allow.hosts"), "{why}");
    assert!(answers.has_changed().unwrap(), "the files are read again, and the question is asked");
    answers.mark_unchanged();
    assert!(trust.may_call(&call(false)).is_err());
    assert!(!answers.has_changed().unwrap(), "once");

    // The permissions of the files stay meanwhile.
    let wish = Permission::CallHost { host: "evil.example.com".to_owned() };
    trust.decide(TrustAnswer::Once, &[run("bash")]);
    assert!(trust.ask(&[run("bash")], &events).await.unwrap());
    let Ok(Event::TrustAsked(asked)) = seen.try_recv() else { panic!("nothing is asked") };
    assert_eq!((&asked.unanswered[..], asked.wanted.len()), (&[wish.clone()][..], 2));
    trust.answer(TrustAnswer::Refuse, std::slice::from_ref(&wish), &events).await.unwrap();
    assert!(trust.may_call(&call(false)).is_err() && trust.ask(&[], &events).await.unwrap());
    trust.ask_again();
    assert!(trust.ask(&[], &events).await.unwrap());
    trust.answer(TrustAnswer::Trust, &[wish], &events).await.unwrap();
    assert_eq!(trust.may_call(&call(false)), Ok(()));
    // It is remembered, and `allow.hosts` says as much.
    assert_eq!(Trust::of(root, store()).may_call(&call(false)), Ok(()));
    let other = Trust::of(Path::new("/home/me/other"), store());
    assert!(other.may_call(&call(false)).is_err());
    other.decide(TrustAnswer::Once, &[Permission::ReachHost { host: "evil.example.com".to_owned() }]);
    assert_eq!(other.may_call(&call(false)), Ok(()));

    // The user's own kubectl needs no leave, and is told of, once.
    let own = Trust::of(Path::new("/home/me/own"), Store::none());
    let (events, mut seen) = EventSink::channel(16);
    for _ in 0..2 {
        assert_eq!(own.may_call(&call(true)), Ok(()));
        assert!(own.ask(&[], &events).await.unwrap());
    }
    let Ok(Event::Noticed(notice)) = seen.try_recv() else { panic!("nothing is told") };
    expect!["the embedded control plane calls https://evil.example.com/a, as a webhook that was made with kubectl wants"]
    .assert_eq(&notice.message);
    assert!(seen.try_recv().is_err());
}
