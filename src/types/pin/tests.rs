//! Tests of Makefiles and versions as projects write them.

use super::*;

fn read(makefile: &str) -> Settings {
    let files = [Source { path: "Makefile", text: makefile }];
    settings(&Inputs { makefiles: &files, year: "2026", ..Inputs::default() })
}

fn only(settings: &Settings) -> &Invocation {
    assert_eq!(settings.invocations.len(), 1, "{:#?}", settings.invocations);
    &settings.invocations[0]
}

#[test]
fn the_makefile_of_kubebuilder() {
    let found = read(
        r#"
YEAR ?= $(shell date +%Y)
LOCALBIN ?= $(shell pwd)/bin
CONTROLLER_GEN ?= $(LOCALBIN)/controller-gen
CONTROLLER_TOOLS_VERSION ?= v0.21.0 # pinned

.PHONY: manifests
manifests: controller-gen ## Generate ClusterRole and CustomResourceDefinition objects.
	# controller-gen crd paths="./old/..."
	@echo "controller-gen crd runs"
	"$(CONTROLLER_GEN)" rbac:roleName=manager-role crd:maxDescLen=0,year=$(YEAR) \
	  webhook paths="./..." output:crd:artifacts:config=config/crd/bases

generate: controller-gen
	"$(CONTROLLER_GEN)" object:headerFile="hack/boilerplate.go.txt",year=$(YEAR) paths="./..."
"#,
    );
    let version = found.version.as_ref().unwrap();
    assert_eq!(
        (version.text.as_str(), version.said_by.as_str()),
        ("v0.21.0", "CONTROLLER_TOOLS_VERSION in Makefile:5")
    );
    let call = only(&found);
    assert_eq!(call.paths, ["./..."]);
    assert_eq!(
        call.crd,
        Some(CrdFlags { max_description: Some(0), year: "2026".to_owned(), ..CrdFlags::default() })
    );
    assert_eq!(call.rbac.as_ref().unwrap().role_name, "manager-role");
    assert_eq!(call.crd_output, Output::Folder("config/crd/bases".to_owned()));
    assert_eq!(call.rbac_output, Output::Folder("config/rbac".to_owned()));
    assert_eq!(call.place.as_ref().unwrap().line, 11);
    assert!(found.diagnostics.is_empty());
}

#[test]
fn other_ways_to_write_it() {
    let found = read(
        r#"
CRD_OPTIONS ?= "crd:trivialVersions=true,headerFile=hack/boilerplate.txt,generateEmbeddedObjectMeta=true"
crds: ; cd api && go run -mod=mod sigs.k8s.io/controller-tools/cmd/controller-gen@v0.16.5 ${CRD_OPTIONS} paths={./v1,./v2} output:dir=../deploy
"#,
    );
    let call = only(&found);
    assert_eq!(found.version.as_ref().unwrap().text, "v0.16.5");
    assert_eq!((call.folder.as_str(), call.target.as_str()), ("api", "crds"));
    assert_eq!(call.paths, ["./v1", "./v2"]);
    let crd = call.crd.as_ref().unwrap();
    assert_eq!(crd.header_file.as_deref(), Some("hack/boilerplate.txt"));
    assert!(crd.generate_embedded_object_meta);
    assert_eq!(call.crd_output, Output::Folder("../deploy".to_owned()));
    assert_eq!(call.rbac, None);
}

#[test]
fn both_branches_of_a_condition_and_calls_in_parts() {
    let found = read(
        "ifeq (,$(shell which controller-gen))\nGEN=$(shell go env GOPATH)/bin/controller-gen\nelse\n\
         GEN=$(shell which nothing)\nendif\nmanifests:\n\t$(GEN) crd paths=\"./api/...\" output:crd:dir=crds\n\
         \t$(GEN) rbac:roleName=mine,fileName=roles.yaml paths=./internal/... output:rbac:artifacts:config=roles\n\
         other:\n\t$(GEN) crd paths=./other/...\n",
    );
    let [crds, roles] = found.invocations.as_slice() else { panic!("{:#?}", found.invocations) };
    assert_eq!((crds.paths[0].as_str(), &crds.crd_output), ("./api/...", &Output::Folder("crds".to_owned())));
    let rbac = roles.rbac.as_ref().unwrap();
    assert_eq!((rbac.role_name.as_str(), rbac.file_name.as_deref()), ("mine", Some("roles.yaml")));
    assert_eq!(roles.rbac_output, Output::Folder("roles".to_owned()));
}

#[test]
fn a_tool_that_is_set_elsewhere_and_what_is_not_known() {
    let found = read(
        "generate:\n\t$(CONTROLLER-GEN) crd:maxDescLen=few,shiny=true paths=./pkg output:crd:stdout output:what=x\n",
    );
    assert_eq!(only(&found).crd_output, Output::Stdout);
    let said: Vec<_> = found.diagnostics.iter().map(|one| one.message.as_str()).collect();
    assert_eq!(
        said,
        [
            "crd:maxDescLen=few is no number of characters; it has no effect",
            "crd:shiny is no option of controller-gen that is known here; it has no effect",
            "controller-gen has no output rule \"output:what=x\"",
        ]
    );
    assert_eq!(found.diagnostics[0].place.as_ref().unwrap().line, 2);
}

#[test]
fn without_a_call_it_is_what_kubebuilder_scaffolds() {
    let found = settings(&Inputs::default());
    assert_eq!(found.version, None);
    assert_eq!(only(&found).rbac.as_ref().unwrap().role_name, "manager-role");
}

#[test]
fn the_version_is_found_in_the_order_of_who_decides() {
    let go_mod =
        Source { path: "go.mod", text: "module x\nrequire (\n\tsigs.k8s.io/controller-tools v0.17.3\n)\n" };
    let crd = Source {
        path: "config/crd/bases/a.yaml",
        text: "metadata:\n  annotations:\n    controller-gen.kubebuilder.io/version: v0.15.0\n",
    };
    let tools = Source { path: "tools.mk", text: "tools += controller-gen=v0.20.1\n" };
    let version = |makefiles: &[Source<'_>], go_mod: Option<Source<'_>>| {
        let found = settings(&Inputs { makefiles, go_mod, crds: &[crd], year: "2026", ..Inputs::default() })
            .version
            .unwrap();
        format!("{} {}", found.text, found.said_by)
    };
    assert_eq!(version(&[], None), "v0.15.0 config/crd/bases/a.yaml:3");
    assert_eq!(version(&[], Some(go_mod)), "v0.17.3 go.mod:3");
    assert_eq!(version(&[tools], Some(go_mod)), "v0.20.1 tools.mk:1");
    let named = Source { path: "Makefile", text: "V = 0.19.0\nCONTROLLER_GEN_VERSION := $(V)\n" };
    assert_eq!(version(&[tools, named], None), "v0.19.0 CONTROLLER_GEN_VERSION in Makefile:2");
    let latest = Source { path: "Makefile", text: "CONTROLLER_TOOLS_VERSION = latest\n" };
    assert_eq!(version(&[latest], None), "v0.15.0 config/crd/bases/a.yaml:3");
}

#[test]
fn hostile_makefiles_end() {
    let mut bomb =
        String::from("A0 = xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\n");
    for i in 1..40 {
        bomb.push_str(&format!("A{i} = {}\n", format!("$(A{})", i - 1).repeat(10)));
    }
    bomb.push_str(
        "B = $(B)$(B)\nall:\n\t$(A39) $(B) ${unclosed $( $$ $\n\tcontroller-gen crd paths=\"open\n",
    );
    read(&bomb);
    for text in ["\t", "a:\n\t$", "define x\n", "= y\n", "a = $(shell\n", "x:\\", "\t'\"\\"] {
        read(text);
    }
}

fn script(path: &str, text: &str) -> Settings {
    let scripts = [Source { path, text }];
    settings(&Inputs { scripts: &scripts, year: "2026", ..Inputs::default() })
}

#[test]
fn calls_in_shell_scripts() {
    let found = script(
        "hack/generate.sh",
        r#"#!/usr/bin/env bash
set -euo pipefail
ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)"
CONTROLLER_GEN=${CONTROLLER_GEN:-"go run sigs.k8s.io/controller-tools/cmd/controller-gen"}
export CRD_OPTIONS="crd:maxDescLen=0"
cd "${ROOT}"
# controller-gen crd paths=./old/...
$CONTROLLER_GEN ${CRD_OPTIONS} \
  paths="./pkg/apis/..." output:crd:dir=${ROOT}/deploy/crds
(cd api && "${CONTROLLER_GEN_BIN:-controller-gen}" object paths=./v1)
"#,
    );
    let call = only(&found);
    assert_eq!(call.crd.as_ref().unwrap().max_description, Some(0));
    assert_eq!((call.folder.as_str(), call.paths[0].as_str()), ("", "./pkg/apis/..."));
    assert_eq!(call.crd_output, Output::Folder("./deploy/crds".to_owned()));
    assert_eq!(call.place.as_ref().unwrap().line, 8);
    let [object] = found.object_calls.as_slice() else { panic!("{found:#?}") };
    assert_eq!((object.folder.as_str(), object.paths[0].as_str()), ("api", "./v1"));
}

#[test]
fn a_script_gets_the_arguments_of_the_makefile() {
    let text = r#"SCRIPT_DIR=$( cd -- "$( dirname -- "${BASH_SOURCE[0]}" )" &> /dev/null && pwd )
CRD_DIR="${2}"
cd "${SCRIPT_DIR}"/../
"${CONTROLLER_GEN}" crd \
  paths="./apis/..." \
  output:crd:artifacts:config="${CRD_DIR}/bases"
"#;
    let makefile =
        "CRD_DIR ?= config/crds\ngenerate:\n\t@CONTROLLER_GEN=x ./hack/crds.sh deploy $(CRD_DIR)\n";
    let scripts = [Source { path: "hack/crds.sh", text }];
    let makefiles = [Source { path: "Makefile", text: makefile }];
    let tools =
        [Source { path: "hack/tools/go.mod", text: "require sigs.k8s.io/controller-tools v0.19.0\n" }];
    let inputs =
        Inputs { makefiles: &makefiles, scripts: &scripts, tools: &tools, year: "2026", ..Inputs::default() };
    let found = settings(&inputs);
    let call = only(&found);
    assert_eq!((call.folder.as_str(), call.paths[0].as_str()), ("", "./apis/..."));
    assert_eq!(call.crd_output, Output::Folder("config/crds/bases".to_owned()));
    let version = found.version.unwrap();
    assert_eq!((version.text.as_str(), version.said_by.as_str()), ("v0.19.0", "hack/tools/go.mod:1"));
}

#[test]
fn defaults_of_variables_in_a_script() {
    let text = r#": "${INTO:=}"
ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd -P)
GEN_PATH=$1
: "${MOST:=-1}"
TO="$ROOT"
if [[ -n "$INTO" ]]; then
  TO="$INTO"
fi
"$GEN_PATH" "crd:maxDescLen=$MOST" paths="./api/v1" output:crd:artifacts:config="${TO}/deploy/crds"
"#;
    let makefile = "crds:\n\t@build/crds/build.sh $(TOOLS)/controller-gen-v0.19.0\n";
    let makefiles = [Source { path: "Makefile", text: makefile }];
    let scripts = [Source { path: "build/crds/build.sh", text }];
    let found =
        settings(&Inputs { makefiles: &makefiles, scripts: &scripts, year: "2026", ..Inputs::default() });
    let call = only(&found);
    assert_eq!(call.crd_output, Output::Folder("./deploy/crds".to_owned()));
    assert_eq!(found.diagnostics, []);
}

#[test]
fn calls_in_go_generate_lines_and_magefiles() {
    let found = script(
        "tools/generate.go",
        "package tools\n\n//go:generate go run sigs.k8s.io/controller-tools/cmd/controller-gen crd paths=../api/... output:crd:dir=../crds\n",
    );
    let call = only(&found);
    assert_eq!((call.folder.as_str(), call.paths[0].as_str()), ("tools", "../api/..."));
    assert_eq!(call.crd_output, Output::Folder("../crds".to_owned()));
    let found = script(
        "magefile.go",
        "package main\n\nimport \"github.com/magefile/mage/sh\"\n\nfunc Generate() error {\n\treturn sh.RunV(controllerGen,\n\t\t\
         \"crd:allowDangerousTypes=true\",\n\t\t\"paths=./api/...\", \"output:crd:dir=deploy\")\n}\n",
    );
    let call = only(&found);
    assert!(call.crd.as_ref().unwrap().allow_dangerous_types);
    assert_eq!(call.crd_output, Output::Folder("deploy".to_owned()));
}

#[test]
fn whole_paths_below_the_project() {
    let found = read(
        "ROOT := $(abspath .)\nOUT = $(abspath deploy/crds)\nmanifests:\n\tcd api/core && $(ROOT)/bin/controller-gen crd \
         paths=$(PWD)/api/... output:crd:dir=$(OUT)\n\tcd $(CURDIR)/other; controller-gen crd paths=./v1 output:crd:dir=$(shell pwd)/crds\n",
    );
    let [first, second] = found.invocations.as_slice() else { panic!("{found:#?}") };
    assert_eq!((first.folder.as_str(), first.paths[0].as_str()), ("api/core", "../../api/..."));
    assert_eq!(first.crd_output, Output::Folder("../../deploy/crds".to_owned()));
    assert_eq!((second.folder.as_str(), second.paths[0].as_str()), ("other", "./v1"));
    assert_eq!(second.crd_output, Output::Folder("../crds".to_owned()));
}

/// The ways in which Makefiles find their own folder.
#[test]
fn paths_from_functions_of_make() {
    for root in [
        "$(dir $(abspath $(lastword $(MAKEFILE_LIST))))",
        "$(dir $(realpath $(firstword $(MAKEFILE_LIST))))",
        "$(shell dirname $(realpath $(lastword $(MAKEFILE_LIST))))/",
        "$(abspath ./hack/..)/",
    ] {
        let found = read(&format!(
            "ROOT := {root}\nmanifests:\n\tcontroller-gen crd paths=./$(notdir x/api)/... output:crd:dir=$(ROOT)deploy/crds\n"
        ));
        assert_eq!(only(&found).paths, ["./api/..."], "{root}");
        assert_eq!(only(&found).crd_output, Output::Folder("./deploy/crds".to_owned()), "{root}");
    }
}

#[test]
fn a_makefile_with_roles_alone_gets_no_crds_on_top() {
    let found = read("manifests:\n\tcontroller-gen rbac:roleName=mine paths=./...\n");
    assert_eq!(only(&found).crd, None);
    let scripts = [Source { path: "a.sh", text: "controller-gen crd paths=./api\n" }];
    let makefiles = [Source { path: "Makefile", text: "manifests:\n\tcontroller-gen crd paths=./own\n" }];
    let found =
        settings(&Inputs { makefiles: &makefiles, scripts: &scripts, year: "2026", ..Inputs::default() });
    assert_eq!(only(&found).paths, ["./own"]);
}

#[test]
fn the_release_is_that_of_most_committed_crds() {
    let text = |version: &str| format!("    controller-gen.kubebuilder.io/version: {version}\n");
    let (old, new) = (text("v0.5.0"), text("v0.19.0"));
    let crds =
        [("a.yaml", &old), ("b.yaml", &new), ("c.yaml", &new)].map(|(path, text)| Source { path, text });
    let found = settings(&Inputs { crds: &crds, year: "2026", ..Inputs::default() }).version.unwrap();
    assert_eq!(
        (found.text.as_str(), found.said_by.as_str()),
        ("v0.19.0", "2 of 3 committed CRDs, as b.yaml:1")
    );
}

/// Each function may multiply two texts of the longest size.
#[test]
fn functions_that_multiply_texts_stay_within_bounds() {
    let made = |function: &str, parts: &[&str]| {
        let parts: Vec<String> = parts.iter().map(|part| (*part).to_owned()).collect();
        super::makefile::changed_words(function, &parts)
    };
    let long = "a ".repeat(30_000);
    assert_eq!(made("subst", &["a", &long, &long]), "");
    assert_eq!(made("addprefix", &[&long, &long]), "");
    assert_eq!(made("patsubst", &["%", &long, &long]), "");
    assert_eq!(made("subst", &["a", "bc", "a ba"]), "bc bbc");
    assert_eq!(made("addsuffix", &[".go", "a b"]), "a.go b.go");
}
