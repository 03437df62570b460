//! Tokens of others: the API server is asked, and its answer kept for a moment.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, TokenReviewStatus};
use kube::Client;
use kube::api::{Api, PostParams};
use mooring_operator_api::UserName;
use sha2::{Digest as _, Sha256};
use tokio::sync::Semaphore;

/// The audience of tokens that are made for us alone.
const AUDIENCE: &str = "mooring";
/// How long an answer is believed.
const KEPT: Duration = Duration::from_secs(10);
/// Answers that are kept at most.
const MOST_KEPT: usize = 4096;
/// Questions that are asked at once.
const AT_ONCE: usize = 16;
/// For an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of a token: Kubernetes' own are below 2 KiB, those of an identity provider may hold many groups.
const LONGEST: usize = 32 * 1024;

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum ReviewError {
    /// It refused to say.
    #[error("the API server does not review tokens")]
    Refused(#[source] Box<kube::Error>),
    /// Not in time.
    #[error("no answer within {} s", PATIENCE.as_secs())]
    Slow,
}

/// Asks the API server about tokens.
pub struct Reviewer {
    client: Client,
    asking: Semaphore,
    /// By the digest of the token: the token itself is not kept.
    known: Mutex<HashMap<[u8; 32], Known>>,
}

/// An answer.
#[derive(Clone)]
struct Known {
    user: Option<UserName>,
    at: Instant,
}

impl Reviewer {
    /// One that asks with `client`'s own account, which needs `create` of `tokenreviews`.
    pub fn new(client: Client) -> Self {
        Self { client, asking: Semaphore::new(AT_ONCE), known: Mutex::default() }
    }

    /// Whom a token speaks for; `None` when for nobody.
    ///
    /// # Errors
    /// [`ReviewError`]: nothing is known about the token.
    pub(super) async fn review(&self, token: &str) -> Result<Option<UserName>, ReviewError> {
        if token.is_empty() || token.len() > LONGEST {
            return Ok(None);
        }
        let digest = Sha256::digest(token).into();
        if let Some(known) = self.recall(&digest) {
            return Ok(known.user);
        }
        let user = tokio::time::timeout(PATIENCE, self.ask(token)).await.map_err(|_| ReviewError::Slow)??;
        self.keep(digest, user.clone());
        Ok(user)
    }

    /// First as a token for us, then as one for the API server: naming our audience alone excludes the other.
    async fn ask(&self, token: &str) -> Result<Option<UserName>, ReviewError> {
        // Never closed.
        let _place = self.asking.acquire().await;
        let reviews: Api<TokenReview> = Api::all(self.client.clone());
        for audiences in [Some(vec![AUDIENCE.to_owned()]), None] {
            let asked = audiences.is_some();
            let spec = TokenReviewSpec { token: token.to_owned(), audiences };
            let review = TokenReview { spec, ..TokenReview::default() };
            let answer = reviews.create(&PostParams::default(), &review).await;
            let answer = answer.map_err(|error| ReviewError::Refused(Box::new(error)))?;
            if let Some(user) = answer.status.and_then(|status| user(status, asked)) {
                return Ok(Some(user));
            }
        }
        Ok(None)
    }

    fn recall(&self, digest: &[u8; 32]) -> Option<Known> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|known| known.at.elapsed() < KEPT).cloned()
    }

    fn keep(&self, digest: [u8; 32], user: Option<UserName>) {
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST_KEPT {
            known.retain(|_, known| known.at.elapsed() < KEPT);
        }
        // Still full: somebody sends ever new ones, and is asked about each.
        if known.len() < MOST_KEPT {
            known.insert(digest, Known { user, at: Instant::now() });
        }
    }
}

/// Who it is, when the API server is sure. An authenticator that knows no audiences answers with none, which is only right for
/// a token for the API server itself (the documentation of `TokenReview`).
fn user(status: TokenReviewStatus, asked_for_us: bool) -> Option<UserName> {
    let is_for_us = status.audiences.is_some_and(|all| all.iter().any(|it| it == AUDIENCE));
    let is_sure = status.authenticated == Some(true) && (is_for_us || !asked_for_us);
    let name = status.user?.username.filter(|name| !name.is_empty() && name != "system:anonymous")?;
    is_sure.then(|| UserName::from(name))
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::authentication::v1::UserInfo;

    use super::*;

    fn status(authenticated: Option<bool>, audiences: Option<&[&str]>, name: &str) -> TokenReviewStatus {
        TokenReviewStatus {
            authenticated,
            audiences: audiences.map(|all| all.iter().map(ToString::to_string).collect()),
            user: Some(UserInfo { username: Some(name.to_owned()), ..UserInfo::default() }),
            error: None,
        }
    }

    #[test]
    fn only_a_sure_answer_for_the_right_audience_counts() {
        let ana = Some(UserName::from("ana"));
        assert_eq!(user(status(Some(true), Some(&["mooring"]), "ana"), true), ana);
        assert_eq!(user(status(Some(true), Some(&["https://kubernetes"]), "ana"), false), ana);
        assert_eq!(user(status(Some(true), None, "ana"), false), ana);
        assert_eq!(user(status(Some(true), None, "ana"), true), None);
        assert_eq!(user(status(Some(true), Some(&["other"]), "ana"), true), None);
        assert_eq!(user(status(Some(false), Some(&["mooring"]), "ana"), true), None);
        assert_eq!(user(status(None, Some(&["mooring"]), "ana"), true), None);
        assert_eq!(user(status(Some(true), None, ""), false), None);
        assert_eq!(user(status(Some(true), None, "system:anonymous"), false), None);
    }
}
