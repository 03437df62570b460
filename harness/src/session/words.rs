//! The words of authority, and their stored form.

/// The set of tools that a session has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Profile {
    /// Everything.
    Default,
    /// No file, no shell, no executor.
    NoFs,
}

/// How much may be done without asking, from least to most.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mode {
    /// Reads only.
    ReadOnly,
    /// Asks before every change.
    AskFirst,
    /// Asks about real risk.
    Auto,
    /// Asks about critical steps only.
    FullTrust,
}

impl Mode {
    /// Every mode, from least to most.
    pub const ALL: [Self; 4] = [Self::ReadOnly, Self::AskFirst, Self::Auto, Self::FullTrust];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ReadOnly => "readOnly",
            Self::AskFirst => "askFirst",
            Self::Auto => "auto",
            Self::FullTrust => "fullTrust",
        }
    }
}

/// Whose words a message holds. Only `Owner` is a person's authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    /// The session's owner.
    Owner,
    /// The assistant.
    Agent,
    /// A schedule or a skill.
    Template,
    /// A service account.
    Account,
    /// Another person.
    Participant {
        /// That person's name.
        name: String,
    },
}

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
