//! Who calls, in a cluster: a user whom the API server vouches for.
//!
//! ```text
//!  bearer token ─▶ Callers ─┬─ our own (two parts) ─▶ TokenKey: read
//!                           └─ any other ──────────▶ Reviewer: TokenReview, kept for 10 s
//! ```

mod review;
mod token;

use std::sync::Arc;

use jiff::Timestamp;
use mooring_operator_api::UserName;

pub use review::{ReviewError, Reviewer};
pub use token::{KeyError, TokenKey};

/// Somebody who proved who they are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// Their name at the API server.
    pub user: UserName,
}

/// Why a caller is nobody.
#[derive(Debug, thiserror::Error)]
pub enum CallerError {
    /// The token is none, or not valid, or not any more.
    #[error("the token is not valid")]
    Unauthenticated,
    /// The API server could not be asked.
    #[error("tokens cannot be checked at the moment")]
    Unchecked(#[source] ReviewError),
}

/// Turns tokens into callers. Clones share what they know.
#[derive(Clone)]
pub struct Callers {
    key: Arc<TokenKey>,
    reviewer: Arc<Reviewer>,
}

impl Callers {
    /// With our own tokens under `key`, and all others by `reviewer`.
    pub fn new(key: TokenKey, reviewer: Reviewer) -> Self {
        Self { key: Arc::new(key), reviewer: Arc::new(reviewer) }
    }

    /// Whom a token speaks for. Never an anonymous user.
    ///
    /// # Errors
    /// [`CallerError`].
    pub async fn identify(&self, token: &str, now: Timestamp) -> Result<Caller, CallerError> {
        let user = if TokenKey::is_ours(token) {
            self.key.read(token, now)
        } else {
            self.reviewer.review(token).await.map_err(CallerError::Unchecked)?
        };
        user.map(|user| Caller { user }).ok_or(CallerError::Unauthenticated)
    }

    /// A token of our own for `user`, and when it ends.
    pub fn mint(&self, user: &UserName, now: Timestamp) -> (String, Timestamp) {
        self.key.mint(user, now)
    }
}
