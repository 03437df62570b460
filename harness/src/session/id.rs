//! Names: 32 lower-case hexadecimal digits each, sortable by the time they were made.

use std::fmt;
use std::str::FromStr;

use uuid::Uuid;

/// The text is not 32 lower-case hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("an id is 32 lower-case hexadecimal digits")]
pub struct ParseIdError;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(Uuid);

        impl $name {
            /// A new one: the time (RFC 9562, version 7) and 74 random bits.
            #[expect(clippy::new_without_default, reason = "each is another; a default suggests one value")]
            pub fn new() -> Self {
                Self(Uuid::now_v7())
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_simple().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                fmt::Display::fmt(self, f)
            }
        }

        impl FromStr for $name {
            type Err = ParseIdError;

            fn from_str(text: &str) -> Result<Self, ParseIdError> {
                let plain = text.len() == 32 && text.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
                if !plain {
                    return Err(ParseIdError);
                }
                Uuid::try_parse(text).map(Self).map_err(|_| ParseIdError)
            }
        }
    };
}

id! {
    /// Names a session.
    SessionId
}
id! {
    /// Names a run.
    RunId
}
id! {
    /// Names an approval.
    ApprovalId
}
id! {
    /// Names one effect at the executor; chosen and stored before it is sent.
    OperationId
}
