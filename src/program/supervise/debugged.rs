//! A program that is to run under a debugger: what would keep it from starting is said before the build.

use super::Life;
use crate::debugger;
use opdev_event::Level;

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
}
