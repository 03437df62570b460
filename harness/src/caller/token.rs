//! Tokens of our own: what the exchange gives, for a quarter of an hour.
//!
//! `base64url(claims).base64url(HMAC-SHA256)`, where the code is over the first part as it stands. Two parts, so that one is
//! never taken for a JSON Web Token, which has three.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jiff::{SignedDuration, Timestamp};
use mooring_operator_api::UserName;
use ring::hmac;
use serde::{Deserialize, Serialize};

/// How long one is good.
const LIFE: SignedDuration = SignedDuration::from_mins(15);
/// Bytes of a key.
const KEY_BYTES: usize = 32;
/// Bytes of the longest user name with the rest of the claims, in base64, with room.
const LONGEST: usize = 4096;

/// Why bytes are no key.
#[derive(Debug, thiserror::Error)]
#[error("a token key is {KEY_BYTES} bytes, not {found}")]
pub struct KeyError {
    found: usize,
}

/// What a token says. An unknown field is another version's, and refused.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Claims {
    /// The user.
    user: UserName,
    /// Seconds since 1970-01-01 UTC at which it ends.
    exp: i64,
}

/// Makes and reads tokens. Every replica has the same key.
pub struct TokenKey(hmac::Key);

impl TokenKey {
    /// From 32 random bytes.
    ///
    /// # Errors
    /// [`KeyError`] when there are more or fewer.
    pub fn new(bytes: &[u8]) -> Result<Self, KeyError> {
        if bytes.len() != KEY_BYTES {
            return Err(KeyError { found: bytes.len() });
        }
        Ok(Self(hmac::Key::new(hmac::HMAC_SHA256, bytes)))
    }

    /// Whether a token has the form of ours.
    pub fn is_ours(token: &str) -> bool {
        token.bytes().filter(|byte| *byte == b'.').count() == 1
    }

    /// A token for `user`, and when it ends.
    pub(super) fn mint(&self, user: &UserName, now: Timestamp) -> (String, Timestamp) {
        let end = now.as_second().saturating_add(LIFE.as_secs());
        let claims = serde_json::json!(Claims { user: user.clone(), exp: end }).to_string();
        let claims = URL_SAFE_NO_PAD.encode(claims);
        let code = URL_SAFE_NO_PAD.encode(hmac::sign(&self.0, claims.as_bytes()));
        (format!("{claims}.{code}"), Timestamp::from_second(end).unwrap_or(Timestamp::MAX))
    }

    /// Whom a token speaks for at `now`. Compares in constant time.
    pub(super) fn read(&self, token: &str, now: Timestamp) -> Option<UserName> {
        if token.len() > LONGEST {
            return None;
        }
        let (claims, code) = token.split_once('.')?;
        let code = URL_SAFE_NO_PAD.decode(code).ok()?;
        hmac::verify(&self.0, claims.as_bytes(), &code).ok()?;
        let claims: Claims = serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()?;
        (now.as_second() < claims.exp && !claims.user.as_str().is_empty()).then_some(claims.user)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).expect("a time")
    }

    #[test]
    fn a_token_speaks_for_its_user_for_a_quarter_of_an_hour() {
        let key = TokenKey::new(&[7; 32]).expect("a key");
        let user = UserName::from("ana");
        let (token, end) = key.mint(&user, at(1000));
        assert_eq!(end, at(1900));
        assert!(TokenKey::is_ours(&token));
        assert_eq!(key.read(&token, at(1899)), Some(user));
        assert_eq!(key.read(&token, at(1900)), None);
    }

    #[test]
    fn nothing_else_is_a_token() {
        let (key, other) = (TokenKey::new(&[7; 32]).expect("a key"), TokenKey::new(&[8; 32]).expect("a key"));
        let (token, _) = key.mint(&UserName::from("ana"), at(0));
        let (claims, code) = token.split_once('.').expect("two parts");
        let bo = URL_SAFE_NO_PAD.encode(r#"{"user":"bo","exp":9999999999}"#);
        let nobody = key.mint(&UserName::from(""), at(0)).0;
        let long = format!("{}.{code}", "A".repeat(LONGEST));
        for bad in [
            "",
            ".",
            claims,
            &format!("{claims}."),
            &format!("{bo}.{code}"),
            &format!("{claims}.{code}="),
            &format!("{claims}.{}", &code[..code.len() - 1]),
            &other.mint(&UserName::from("ana"), at(0)).0,
            &nobody,
            &long,
        ] {
            assert_eq!(key.read(bad, at(1)), None, "{bad}");
        }
    }

    #[test]
    fn a_key_has_32_bytes() {
        for length in [0, 31, 33] {
            assert!(TokenKey::new(&vec![0; length]).is_err());
        }
    }
}
