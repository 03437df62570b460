//! The words of authority, and their stored form.

pub use mooring_authority::{Mode, Origin, Profile};

/// The word for a profile, as stored and as on the wire.
pub const fn profile_text(profile: Profile) -> &'static str {
    match profile {
        Profile::Default => "default",
        Profile::NoFs => "no-fs",
    }
}

/// Reads a profile; `None` for anything else, case included.
pub fn profile_from_text(text: &str) -> Option<Profile> {
    [Profile::Default, Profile::NoFs].into_iter().find(|profile| profile_text(*profile) == text)
}

/// Reads a mode; `None` for anything else, case included.
pub fn mode_from_text(text: &str) -> Option<Mode> {
    Mode::ALL.into_iter().find(|mode| mode.as_str() == text)
}

/// The stored form of an origin: the word, and for a participant `participant:` and the name.
pub fn origin_text(origin: &Origin) -> String {
    match origin {
        Origin::Owner => "owner".to_owned(),
        Origin::Agent => "agent".to_owned(),
        Origin::Template => "template".to_owned(),
        Origin::Account => "account".to_owned(),
        Origin::Participant { name } => format!("participant:{name}"),
    }
}

/// Reads the stored form; `None` for anything else.
pub fn origin_from_text(text: &str) -> Option<Origin> {
    match text {
        "owner" => Some(Origin::Owner),
        "agent" => Some(Origin::Agent),
        "template" => Some(Origin::Template),
        "account" => Some(Origin::Account),
        other => {
            let name = other.strip_prefix("participant:")?;
            Some(Origin::Participant { name: name.to_owned() })
        }
    }
}
