//! Watches the terminal from threads of their own: one that is gone, and one that takes nothing in. The
//! thread that draws can do neither: it may be in a write that does not end.

use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use rustix::termios::{LocalModes, OptionalActions, SpecialCodeIndex, tcgetattr, tcsetattr};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread;
use std::time::Duration;
use tokio::sync::Notify;

/// A write that takes longer waits for a terminal that takes nothing in.
const STUCK: Duration = Duration::from_secs(1);
/// How often a stuck write is looked at.
const LOOK: Duration = Duration::from_millis(100);

/// Rings once the terminal is gone. Its hangup is a signal only to the leader of its session, and a read of
/// what is gone is over at once, again and again, without an error.
pub fn gone() -> Arc<Notify> {
    let told = Arc::new(Notify::new());
    let tell = Arc::clone(&told);
    let wait = move || {
        loop {
            // Nothing is asked for: a hangup is always told.
            let input = io::stdin();
            let mut asked = [PollFd::new(&input, PollFlags::empty())];
            match poll(&mut asked, None) {
                Ok(_) | Err(Errno::INTR) if !is_gone(&asked[0]) => {}
                Ok(_) => return tell.notify_one(),
                Err(_) => return,
            }
        }
    };
    // Without it a hangup is a signal still.
    let _ = thread::Builder::new().name("hangup".to_owned()).spawn(wait);
    told
}

fn is_gone(asked: &PollFd<'_>) -> bool {
    asked.revents().intersects(PollFlags::HUP | PollFlags::ERR | PollFlags::NVAL)
}

/// Makes `ctrl-c` a signal while a write to the terminal does not end: as a key it would wait for the thread
/// that writes.
pub struct Writes {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    /// Odd during a write.
    count: AtomicU64,
    begun: (Mutex<bool>, Condvar),
}

impl Writes {
    /// Begins to watch.
    pub fn watch() -> Writes {
        let shared = Arc::new(Shared::default());
        let watched = Arc::clone(&shared);
        // Without it `ctrl-c` is a key that is read a little later.
        let _ = thread::Builder::new().name("writes".to_owned()).spawn(move || watched.watch());
        Writes { shared }
    }

    /// A write begins.
    pub fn begin(&self) {
        self.shared.count.fetch_add(1, Ordering::SeqCst);
        let (begun, bell) = &self.shared.begun;
        *begun.lock().unwrap_or_else(PoisonError::into_inner) = true;
        bell.notify_one();
    }

    /// The write has ended.
    pub fn end(&self) {
        self.shared.count.fetch_add(1, Ordering::SeqCst);
    }
}

impl Shared {
    fn watch(&self) {
        loop {
            let (begun, bell) = &self.begun;
            let begun = begun.lock().unwrap_or_else(PoisonError::into_inner);
            let mut begun = bell.wait_while(begun, |begun| !*begun).unwrap_or_else(PoisonError::into_inner);
            *begun = false;
            drop(begun);
            let count = self.count.load(Ordering::SeqCst);
            thread::sleep(STUCK);
            let is_stuck = || count % 2 == 1 && self.count.load(Ordering::SeqCst) == count;
            if is_stuck() && interrupts(true) {
                while is_stuck() {
                    thread::sleep(LOOK);
                }
                interrupts(false);
            }
        }
    }
}

/// Lets `ctrl-c` be a signal, or a key again. False where the terminal does not take it.
fn interrupts(wanted: bool) -> bool {
    let Ok(mut modes) = tcgetattr(io::stdin()) else { return false };
    modes.local_modes.set(LocalModes::ISIG, wanted);
    for other in [SpecialCodeIndex::VQUIT, SpecialCodeIndex::VSUSP] {
        modes.special_codes[other] = 0;
    }
    tcsetattr(io::stdin(), OptionalActions::Now, &modes).is_ok()
}
