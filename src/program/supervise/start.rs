//! One start of a program: its command, its environment, and the ways of its lines.

use super::breakpoints::Breakpoints;
use super::{Environment, Life, OTHER_CLUSTERS, Running, Start};
use crate::debugger;
use crate::lines;
use crate::lines::{Tail, Told};
use jiff::Timestamp;
use opdev_event::{Level, ProcessState, words};
use opdev_os::child::{Child, GroupEnd, Launch};
use opdev_project::program::settings::KUBECONFIG;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

impl Life {
    /// Starts the program that was built last.
    pub(super) async fn start(&mut self, files: Vec<String>) {
        let Ok(environment) = self.input.ready.borrow().clone() else { return };
        let Some(built) = &self.built else { return };
        let (rung, has_binary) = (built.rung, built.next.is_some());
        self.starts += 1;
        self.rung = rung;
        let start = Start { number: self.starts, at: Timestamp::now(), files: files.clone(), rung };
        let start = Arc::new(start);
        self.input.starts.send_replace(Some(Arc::clone(&start)));
        (self.input.before_start)(start).await;
        let env = self.environment(&environment);
        let mut command = self.arguments(&env);
        if has_binary {
            let binary = self.builder.binary("operator");
            command = match &self.builder.plan.debug {
                None => [vec![binary.display().to_string()], command].concat(),
                Some(address) => match debugger::command(address, &binary, &command) {
                    Ok(command) => command,
                    Err(error) => return self.refused_for(format!("{error:#}"), debugger::INSTALL).await,
                },
            };
        }
        let debugged = has_binary.then(|| self.builder.plan.debug.clone()).flatten();
        // A debugger ends its program, which is in a group of its own.
        let ends = if debugged.is_some() { GroupEnd::Asked } else { GroupEnd::AtOnce };
        let launch = Launch {
            command: &command,
            dir: &self.builder.plan.dir,
            env: &env,
            without: &OTHER_CLUSTERS,
            ends,
        };
        let (child, stdout, stderr) = match Child::start(&launch).await {
            Ok(started) => started,
            Err(error) => return self.refused(format!("{error:#}")).await,
        };
        let tail = Tail::default();
        let (stopped, stops) = mpsc::channel(1);
        let (named, names) = mpsc::channel(1);
        let told = || {
            let told = self.told().named(named.clone());
            if debugged.is_some() { told.stops(stopped.clone()) } else { told }
        };
        let readers = vec![
            tokio::spawn(lines::follow(stdout, told(), tail.clone())),
            tokio::spawn(lines::follow(stderr, told(), tail.clone())),
        ];
        let since_save = match (&files[..], self.saved_at.take()) {
            ([_, ..], Some(at)) => at.elapsed(),
            _ => Duration::ZERO,
        };
        self.state = ProcessState::Running { pid: child.pid, files, since_save };
        let silent = self.first_call_by(debugged.is_some());
        let breakpoints = debugged.as_deref().map(Breakpoints::follow).unwrap_or_default();
        let since = Instant::now();
        self.running = Some(Running {
            child,
            since,
            tail,
            readers,
            stops,
            names,
            exited: None,
            silent,
            breakpoints,
            breakpoint: None,
        });
        self.tell().await;
        if let Some(address) = debugged.filter(|_| self.starts == 1) {
            self.tell_debugger(&address).await;
        }
    }

    /// Stops, and waits until somebody asks for a start.
    pub(super) async fn stand_still(&mut self) {
        (self.retry, self.building) = (None, None);
        self.stop().await;
        self.state = ProcessState::Waiting { why: "opdev to start it again".to_owned() };
        self.tell().await;
    }

    /// Starts what was built last, if nothing runs.
    pub(super) async fn go_on(&mut self) {
        self.retry = None;
        match self.running {
            Some(_) => {}
            None if self.fresh => self.start_fresh().await,
            None => self.start(Vec::new()).await,
        }
    }

    /// The variables that are set for the program. The project's own count more than those of its Deployment,
    /// but for the cluster.
    fn environment(&self, environment: &Environment) -> BTreeMap<String, String> {
        let given = if self.rung.is_some() { &environment.traced } else { &environment.plain };
        let mut env = given.clone();
        let given = if self.plain_clients { &environment.plain } else { given };
        let cluster = given.get_key_value("KUBECONFIG");
        let path = cluster.map_or("", |(_, path)| path.as_str());
        let own = self.builder.plan.env.iter();
        // Some programs look for the path under a name of their own.
        env.extend(own.map(|(name, value)| (name.clone(), value.replace(KUBECONFIG, path))));
        env.extend(cluster.map(|(name, value)| (name.clone(), value.clone())));
        env
    }

    /// The command of the plan, with the path of the kubeconfig where it asks for that.
    fn arguments(&self, env: &BTreeMap<String, String>) -> Vec<String> {
        let path = env.get("KUBECONFIG").map_or("", String::as_str);
        self.builder.plan.command.iter().map(|word| word.replace(KUBECONFIG, path)).collect()
    }

    /// The way of its lines.
    fn told(&self) -> Told {
        let traced = self.input.traced.clone().filter(|_| self.builder.plan.trace.reads_lines());
        let told = Told::new(self.target(), self.input.events.clone(), traced);
        told.missing(self.input.missing.clone())
    }

    async fn tell_debugger(&self, address: &str) {
        let message = format!("a debugger waits for an editor at {address}: {}", debugger::attach(address));
        self.notice(Level::Info, message).await;
        let left_out = self.builder.left_out();
        if !left_out.is_empty() {
            let message = format!(
                "the program is built without {}, which its own build has: with them a debugger finds no variables, lines or files",
                left_out.join(" ")
            );
            self.notice(Level::Info, message).await;
        }
    }

    /// How the program is named in its log lines.
    fn target(&self) -> String {
        let words = &self.builder.plan.command;
        let name = words.first().filter(|_| self.builder.plan.main_package().is_none());
        name.map_or_else(|| "operator".to_owned(), |name| words::file_name(name).to_owned())
    }
}
