//! Several programs of one project, and programs that are told their kubeconfig by an argument.

use crate::inner_loop::Opdev;
use opdev_cluster::Choice;
use opdev_event::{Event, KindHealth, ProcessState};
use std::path::{Path, PathBuf};

async fn start(settings: &str, prepare: impl FnOnce(&Path)) -> Opdev {
    let embedded = Choice { embedded: true, ..Choice::default() };
    Opdev::start_against(embedded, |root| {
        std::fs::write(root.join("opdev.yaml"), settings).unwrap();
        prepare(root);
    })
    .await
}

/// How often a program was started, once it runs.
async fn starts(opdev: &Opdev, mark: usize, program: &str) -> u64 {
    opdev
        .wait(program, mark, |event| match event {
            Event::ProcessChanged(run)
                if run.program == program && matches!(run.state, ProcessState::Running { .. }) =>
            {
                Some(run.starts)
            }
            _ => None,
        })
        .await
}

/// The output of a program behind `before`.
async fn printed(opdev: &Opdev, mark: usize, before: &str) -> String {
    opdev
        .wait(before, mark, |event| match event {
            Event::Log(line) => line.message.split_once(before).map(|(_, rest)| rest.trim().to_owned()),
            _ => None,
        })
        .await
}

const SETTINGS: &str = "operator:\n\
    - {command: [sh, op.sh], dir: one, watch: [op.sh], stopAfter: 1s}\n\
    - {command: [sh, op.sh], dir: two, watch: [op.sh], stopAfter: 1s, kinds: [Note]}\n";

const CRD: &str = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n\
    metadata: {name: KINDs.demo.dev}\nspec:\n  group: demo.dev\n  scope: Namespaced\n\
    \x20 names: {kind: KIND, plural: KINDs, singular: KIND, listKind: KINDList}\n  versions:\n\
    \x20 - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}\n";

#[tokio::test(flavor = "multi_thread")]
async fn several_programs_run_beside_each_other() {
    let script = |name: &str, version: u32| {
        format!("echo \"{name} v{version} config=$KUBECONFIG\"\nexec sleep 1000\n")
    };
    let opdev = start(SETTINGS, |root| {
        for name in ["one", "two"] {
            std::fs::create_dir(root.join(name)).unwrap();
            std::fs::write(root.join(name).join("op.sh"), script(name, 1)).unwrap();
        }
        std::fs::create_dir_all(root.join("config/crd/bases")).unwrap();
        for kind in ["Note", "Pad"] {
            let plural = format!("{}s", kind.to_lowercase());
            let crd = CRD
                .replace("KINDs", &plural)
                .replace("singular: KIND", &format!("singular: {}", kind.to_lowercase()));
            std::fs::write(root.join(format!("config/crd/bases/{plural}.yaml")), crd.replace("KIND", kind))
                .unwrap();
        }
    })
    .await;
    let (one, two) = ("sh op.sh in one", "sh op.sh in two");
    assert_eq!((starts(&opdev, 0, one).await, starts(&opdev, 0, two).await), (1, 1));
    // Each has a token of its own, so that it is known whose a call is.
    let token = |path: &str| {
        let text = std::fs::read_to_string(path).unwrap();
        text.lines().find_map(|line| line.trim().strip_prefix("token: ").map(str::to_owned)).unwrap()
    };
    let paths = [printed(&opdev, 0, "one v1 config=").await, printed(&opdev, 0, "two v1 config=").await];
    assert_ne!(token(&paths[0]), token(&paths[1]), "{paths:?}");

    // The kinds of each are known: those that it names, and all others of the one that names none.
    let mut owners = opdev
        .wait("the kinds", 0, |event| match event {
            Event::SourcesChanged(sources) => {
                let kinds = sources.kinds.iter().filter(|kind| kind.gvk.group == "demo.dev");
                let owners = kinds.filter_map(|kind| match &kind.health {
                    KindHealth::Process { program } => Some((kind.gvk.kind.clone(), program.clone())),
                    _ => None,
                });
                Some(owners.collect::<Vec<_>>())
            }
            _ => None,
        })
        .await;
    owners.sort();
    assert_eq!(
        owners,
        [("Note", two), ("Pad", one)].map(|(kind, program)| (kind.to_owned(), program.to_owned()))
    );

    // A save swaps the one that it belongs to.
    let mark = opdev.mark();
    std::fs::write(opdev.root.join("two/op.sh"), script("two", 2)).unwrap();
    printed(&opdev, mark, "two v2").await;
    let swapped: Vec<String> = opdev
        .since(mark)
        .iter()
        .filter_map(|event| match event {
            Event::ProcessChanged(run) => Some(run.program.clone()),
            _ => None,
        })
        .collect();
    assert!(swapped.iter().all(|program| program == two), "{swapped:?}");
    opdev.stop().await;
}

/// A program that reads no KUBECONFIG gets the file as an argument.
#[tokio::test(flavor = "multi_thread")]
async fn an_argument_names_the_kubeconfig_that_opdev_gives() {
    let settings =
        "operator:\n  command: [sh, op.sh]\n  args: [--kubeconfig=$(KUBECONFIG)]\n  stopAfter: 1s\n";
    let opdev = start(settings, |root| {
        std::fs::write(root.join("op.sh"), "echo \"told $1 and $KUBECONFIG\"\nexec sleep 1000\n").unwrap();
    })
    .await;
    let told = printed(&opdev, 0, "told --kubeconfig=").await;
    let (argument, variable) = told.split_once(" and ").unwrap();
    assert_eq!(argument, variable);
    assert!(PathBuf::from(argument).ends_with(".opdev/process.kubeconfig"), "{argument}");
    opdev.stop().await;
}
