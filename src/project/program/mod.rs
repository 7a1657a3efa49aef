//! The programs of a project as its files describe them: how each is found, built, configured and deployed.
//! Starts none.
use crate::Project;
use crate::program::settings::{Generate, Plan};
use opdev_event::Permission;
use opdev_sources::load::OwnProgram;

pub mod chart;
mod conversion;
pub mod detect;
pub mod detect_all;
pub mod election;
pub mod files;
pub mod kustomization;
pub mod manager_manifest;
pub mod settings;
pub mod webhooks;

/// The programs of a project, or why there is none where there should be one.
#[derive(Clone, Debug, Default)]
pub struct Programs {
    plans: Vec<Plan>,
    problem: Option<String>,
}

impl Programs {
    /// Looks for the programs that `opdev.yaml` names, or for the one that the project's own files make.
    pub fn of(project: &Project) -> Programs {
        let watches = project.watches.as_ref().is_some_and(|path| project.root.join(path).is_file());
        match crate::program::detect_all::detect_all(
            &project.root,
            project.settings.operator.as_ref(),
            watches,
        ) {
            Ok(plans) => Programs { plans, problem: None },
            Err(error) => Programs { plans: Vec::new(), problem: Some(format!("{error:#}")) },
        }
    }

    /// The first Go program runs under a debugger that waits at this address, where there is one.
    pub fn debugged(mut self, debug: Option<String>) -> Programs {
        let go = self.plans.iter().position(|plan| plan.main_package().is_some());
        if let Some(plan) = self.plans.get_mut(go.unwrap_or_default()) {
            plan.debug = debug;
        }
        self
    }

    /// The kinds that they reconcile.
    pub fn reconcile(&self) -> Vec<OwnProgram> {
        let of = |plan: &Plan| {
            let kinds = plan.kinds.clone();
            OwnProgram { words: plan.words.clone(), charts: plan.charts, kinds }
        };
        self.plans.iter().map(of).collect()
    }

    /// Permissions to ask for before anything of them is built or started.
    pub fn permissions(&self) -> Vec<Permission> {
        self.plans.iter().map(permission).collect()
    }

    /// Copy methods become part of the build only: nothing is written into the project.
    #[must_use]
    pub fn writing_nothing(mut self) -> Programs {
        for plan in self.plans.iter_mut().filter(|plan| plan.generate == Generate::Write) {
            plan.generate = Generate::Overlay;
        }
        self
    }

    /// The plans: the build and the start of each program.
    pub fn plans(&self) -> &[Plan] {
        &self.plans
    }

    /// Why there are none where there should be some.
    pub fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }
}

/// The permission to ask for before anything of a program is built or started.
pub fn permission(plan: &Plan) -> Permission {
    let (program, build) = plan.commands();
    Permission::StartOperator { program, build, folder: plan.dir.display().to_string() }
}
