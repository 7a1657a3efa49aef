//! Access to the metrics: the API server is asked whom the token belongs to (TokenReview) and whether that
//! user may get `/metrics` (SubjectAccessReview), as controller-runtime does. Answers are kept for a moment.
//! `/metrics` (SubjectAccessReview), as controller-runtime does. Answers are kept for a moment.

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{
    NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// How long a yes is believed.
const YES: Duration = Duration::from_secs(60);
/// How long a no is believed.
const NO: Duration = Duration::from_secs(30);
/// How many answers are kept.
const MOST: usize = 256;

/// Asks the API server and remembers its answers.
pub(super) struct Authorization {
    client: Client,
    /// By the hash of token and path: no token is kept.
    known: Mutex<HashMap<[u8; 32], (Instant, Verdict)>>,
}

/// The rights of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    Allowed,
    /// It belongs to nobody.
    Unknown,
    /// It belongs to somebody who may not.
    Forbidden,
}

impl Authorization {
    pub(super) fn new(client: Client) -> Authorization {
        Authorization { client, known: Mutex::default() }
    }

    /// The verdict whether a token may get a path.
    ///
    /// # Errors
    /// Where the API server does not answer.
    pub(super) async fn verdict(&self, token: &str, path: &str) -> anyhow::Result<Verdict> {
        let key: [u8; 32] =
            Sha256::new().chain_update(token).chain_update([0]).chain_update(path).finalize().into();
        if let Some((until, verdict)) = self.known.lock().unwrap_or_else(PoisonError::into_inner).get(&key)
            && Instant::now() < *until
        {
            return Ok(*verdict);
        }
        let verdict = self.ask(token, path).await?;
        let age = if verdict == Verdict::Allowed { YES } else { NO };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        make_room(&mut known, Instant::now());
        known.insert(key, (Instant::now() + age, verdict));
        Ok(verdict)
    }

    async fn ask(&self, token: &str, path: &str) -> anyhow::Result<Verdict> {
        let spec = TokenReviewSpec { token: token.to_owned(), ..TokenReviewSpec::default() };
        let review = TokenReview { spec, ..TokenReview::default() };
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        if status.authenticated != Some(true) {
            return Ok(Verdict::Unknown);
        }
        let UserInfo { username, groups, uid, extra } = status.user.unwrap_or_default();
        let attributes = NonResourceAttributes { path: Some(path.to_owned()), verb: Some("get".to_owned()) };
        let spec = SubjectAccessReviewSpec {
            user: username,
            groups,
            uid,
            extra,
            non_resource_attributes: Some(attributes),
            ..SubjectAccessReviewSpec::default()
        };
        let review = SubjectAccessReview { spec, ..SubjectAccessReview::default() };
        let reviews: Api<SubjectAccessReview> = Api::all(self.client.clone());
        let status = reviews.create(&PostParams::default(), &review).await?.status.unwrap_or_default();
        Ok(if status.allowed { Verdict::Allowed } else { Verdict::Forbidden })
    }
}

/// Makes room for one more answer. Tokens that anybody can make up never push out the answer for one that may
/// read.
fn make_room(known: &mut HashMap<[u8; 32], (Instant, Verdict)>, now: Instant) {
    if known.len() < MOST {
        return;
    }
    known.retain(|_, (until, _)| *until > now);
    if known.len() >= MOST {
        known.retain(|_, (_, verdict)| *verdict == Verdict::Allowed);
    }
    if known.len() >= MOST {
        known.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn made_up_tokens_do_not_push_out_good_ones() {
        let (mut known, now) = (HashMap::new(), Instant::now());
        known.insert([0; 32], (now + YES, Verdict::Allowed));
        for number in 1..1_000_u32 {
            make_room(&mut known, now);
            let mut key = [1; 32];
            key[..4].copy_from_slice(&number.to_be_bytes());
            known.insert(key, (now + NO, Verdict::Unknown));
        }
        assert!(known.contains_key(&[0; 32]) && known.len() <= MOST);
        make_room(&mut known, now + 2 * YES);
        assert!(known.len() < MOST);
    }
}
