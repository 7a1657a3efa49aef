//! Who may read the metrics: the API server is asked whom the token belongs to (TokenReview) and whether that user may get
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

/// What a token may.
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

    /// Whether a token may get a path.
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
        if known.len() >= MOST {
            known.clear();
        }
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
