//! Why somebody's Preferences are as they are.

use super::reasons;

reasons! {
    /// Why somebody's Preferences are as they are.
    PreferencesReason {
        Effective True Only:
            "*(planned)* They are the only ones of their owner in this namespace."
            "Nothing.";
        Effective True OlderOfTwo:
            "*(planned)* Their owner has others here too; these are the oldest and count."
            "Delete the others.";
        Effective False YoungerOfTwo:
            "*(planned)* Their owner has older ones here, which count; these are not read."
            "Delete one of the two.";
    }
}
