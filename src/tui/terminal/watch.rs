//! Watches for a terminal that is gone, on a thread of its own. Its hangup is a signal only to the leader of
//! its session, and a read of what is gone is over at once, again and again, without an error.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io;
use std::sync::Arc;
use std::thread;
use tokio::sync::Notify;

/// Rings once the terminal is gone.
pub fn gone() -> Arc<Notify> {
    let told = Arc::new(Notify::new());
    let tell = Arc::clone(&told);
    let wait = move || {
        loop {
            // Nothing is asked for: a hangup is always told.
            let input = io::stdin();
            let mut asked = [PollFd::new(&input, PollFlags::empty())];
            match poll(&mut asked, None) {
                Ok(_) if asked[0].revents().intersects(PollFlags::HUP | PollFlags::ERR) => {
                    return tell.notify_one();
                }
                Err(Errno::INTR) => {}
                // A system that cannot wait for terminals.
                Ok(_) | Err(_) => return,
            }
        }
    };
    // Without it a hangup is a signal still.
    let _ = thread::Builder::new().name("hangup".to_owned()).spawn(wait);
    told
}
