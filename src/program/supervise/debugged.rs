//! A program that is to run under a debugger: what would keep it from starting is said before the build.

use super::breakpoints::BreakpointAt;
use super::{Life, Running};
use crate::debugger;
use opdev_event::{Level, Place};
use opdev_os::state_path::shown;
use std::path::Path;

impl Life {
    /// Returns true if a debugger that is wanted can start: a build takes long, and would be for nothing.
    pub(super) async fn debugger_can_start(&mut self) -> bool {
        let plan = &self.builder.plan;
        let wanted = plan.debug.clone().filter(|_| plan.main_package().is_some() && self.running.is_none());
        let Some(address) = wanted else { return true };
        if let Err(error) = debugger::installed() {
            self.refused_for(format!("{error:#}"), debugger::INSTALL).await;
            return false;
        }
        if let Some(why) = debugger::is_taken(&address) {
            self.refused_for(why, debugger::ELSEWHERE).await;
            return false;
        }
        if self.starts == 0 && debugger::is_open_to_others(&address) {
            let message = format!(
                "the debugger at {address} is open to the network: whoever reaches it runs what they like as you. \
                 --debug=127.0.0.1:2345 is for this machine alone"
            );
            self.notice(Level::Warn, message).await;
        }
        true
    }

    /// The debugger says why the program stands still.
    pub(super) async fn stands(&mut self, reason: &str) {
        let address = self.builder.plan.debug.clone().unwrap_or_default();
        if reason == debugger::EXITED {
            // The debugger itself goes on, for somebody may look at the end.
            if let Some(Running { child, exited, .. }) = &mut self.running {
                *exited = debugger::exit_status(&address).await;
                child.ask_to_stop();
            }
            return;
        }
        let message = format!(
            "the program stands still in the debugger ({reason}): look at it with dlv connect {address}, or press R to start \
             it anew"
        );
        self.notice(Level::Warn, message).await;
    }

    /// The program has come to a breakpoint, or goes on.
    pub(super) async fn at_breakpoint(&mut self, place: Option<BreakpointAt>) {
        let root = &self.input.root;
        let place =
            place.map(|at| Place { file: shown(root, Path::new(&at.file)), line: at.line, column: 0 });
        if let Some(running) = &mut self.running {
            running.breakpoint = place;
            self.tell().await;
        }
    }
}
