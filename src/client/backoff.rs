//! A call that failed for a moment is tried again: after 0.2 s, then twice as long each time, up to 30 s. An
//! API server that is busy (429), fails itself (5xx) or does not answer may take a write the next time; what
//! it has refused stays refused. Every first write at the start passes here, or keeps a `Backoff` of its own
//! beside other work.

use crate::ApiError;
use anyhow::Result;
use std::time::Duration;
use tokio::time::Instant;

/// The first pause, and the longest.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);

/// The words that the user reads beside such a failure.
pub const AGAIN: &str = "opdev tries again by itself";

/// When the next try is due, where one is planned.
#[derive(Debug, Default)]
pub struct Backoff {
    next: Option<Instant>,
    tries: u32,
}

impl Backoff {
    /// Plans the next try, later than the one before; or none, and the pauses begin anew.
    pub fn plan(&mut self, again: bool) {
        if !again {
            *self = Backoff::default();
            return;
        }
        self.next = Some(Instant::now() + pause(self.tries));
        self.tries += 1;
    }

    /// Waits until a try is due; for ever where none is planned.
    pub async fn due(&self) {
        match self.next {
            Some(at) => tokio::time::sleep_until(at).await,
            None => std::future::pending().await,
        }
    }
}

/// How long to wait after so many tries.
fn pause(tries: u32) -> Duration {
    (FIRST * (1 << tries.min(8))).min(LONGEST)
}

/// Returns true if trying again may help.
pub fn may_pass(error: &anyhow::Error) -> bool {
    match ApiError::of(error) {
        Some(ApiError::Refused { code, .. }) => *code >= 500 || *code == 429,
        Some(ApiError::Unreachable(_)) => true,
        Some(ApiError::NotServed(_) | ApiError::NoMatch(_) | ApiError::ReadOnly) | None => false,
    }
}

/// Tries until it goes well or is refused; `tell` hears of the first failure, for each one after it would say
/// much the same.
///
/// # Errors
/// The refusal.
pub async fn until_refused<T, A: Future<Output = Result<T>>, N: Future<Output = ()>>(
    mut attempt: impl FnMut() -> A,
    tell: impl FnOnce(&anyhow::Error) -> N,
) -> Result<T> {
    let mut backoff = Backoff::default();
    let mut tell = Some(tell);
    loop {
        match attempt().await {
            Err(error) if may_pass(&error) => {
                if let Some(tell) = tell.take() {
                    tell(&error).await;
                }
            }
            end => return end,
        }
        backoff.plan(true);
        backoff.due().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(code: u16) -> anyhow::Error {
        let (reason, message) = ("Reason".to_owned(), "no".to_owned());
        ApiError::Refused { code, reason, message, details: None }.into()
    }

    #[test]
    fn pauses_grow_to_half_a_minute_and_begin_anew() {
        let pauses: Vec<u128> = (0..9).map(|tries| pause(tries).as_millis()).collect();
        assert_eq!(pauses, [200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000]);
        let mut backoff = Backoff { next: None, tries: 7 };
        backoff.plan(false);
        assert_eq!((backoff.next, backoff.tries), (None, 0));
    }

    #[tokio::test]
    async fn a_busy_server_is_asked_until_it_refuses() {
        let mut answers = [500, 422, 500].into_iter();
        let mut told = String::new();
        let attempt = || std::future::ready(Err::<(), _>(answer(answers.next().unwrap())));
        let tell = |error: &anyhow::Error| {
            told = error.to_string();
            std::future::ready(())
        };
        let refusal = until_refused(attempt, tell).await.unwrap_err();
        assert!(!may_pass(&refusal) && !may_pass(&anyhow::anyhow!("no file")));
        assert_eq!((answers.next(), told.is_empty()), (Some(500), false));
    }
}
