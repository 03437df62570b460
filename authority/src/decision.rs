//! What was decided, and why.

use std::collections::BTreeSet;
use std::fmt;

use crate::context::Taint;
use crate::count::CountLimit;
use crate::question::Question;
use crate::risk::Risk;

/// What becomes of a call. The reasons are never empty.
#[derive(Clone, Debug, PartialEq, Eq)]
#[expect(clippy::large_enum_variant, reason = "there is one decision per call, and most of its size is text")]
pub enum Decision {
    /// The call runs.
    Allow {
        /// Why, the deciding reason first.
        because: Vec<Reason>,
    },
    /// The call is refused; nobody is asked.
    Deny {
        /// Why, the deciding reason first.
        because: Vec<Reason>,
    },
    /// The call waits for the owner.
    Ask {
        /// What the owner reads.
        question: Question,
        /// What a reviewer may be shown that may lift the question; `None` where none may.
        review: Option<ReviewRequest>,
        /// The rule that the owner may keep with the answer; `None` where none may be kept.
        offer: Option<Rule>,
        /// Why, the deciding reason first.
        because: Vec<Reason>,
    },
}

impl Decision {
    /// Why, the deciding reason first.
    pub fn because(&self) -> &[Reason] {
        match self {
            Self::Allow { because } | Self::Deny { because } | Self::Ask { because, .. } => because,
        }
    }

    /// Whether the call may run at once.
    pub fn is_allow(&self) -> bool {
        matches!(self, Self::Allow { .. })
    }
}

/// What a reviewer is shown. No decision carries one yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReviewRequest {
    /// The command, with everything that does not show made visible.
    pub command: String,
    /// The numbers of the owner's messages that go with it.
    pub messages: Vec<u64>,
    /// Why the chat is tainted.
    pub taints: BTreeSet<Taint>,
}

/// One command that is not asked about again in its folder. No decision offers one yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rule {
    /// The words of the command, as the shell would pass them.
    pub words: Vec<String>,
    /// Where the work comes from: seed address, claim, environment or local root.
    pub source: String,
    /// The folder within the source, relative, empty for its root.
    pub folder: String,
}

/// The step of the order of decision that decided: the first that matches, from 1 to 9.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Step {
    /// 1: the caller is not the owner's run.
    Caller,
    /// 2: nothing that may run in any mode.
    Forbidden,
    /// 3: read-only mode and a change.
    ReadOnly,
    /// 4: critical, or a count that asks.
    Critical,
    /// 5: full trust.
    FullTrust,
    /// 6: ask-first mode and a change.
    AskFirst,
    /// 7: questions that nothing lifts.
    Always,
    /// 8: questions that arise only because the chat has read something.
    Tainted,
    /// 9: nothing speaks against it.
    Free,
}

impl Step {
    /// 1 to 9.
    pub fn number(self) -> u8 {
        match self {
            Self::Caller => 1,
            Self::Forbidden => 2,
            Self::ReadOnly => 3,
            Self::Critical => 4,
            Self::FullTrust => 5,
            Self::AskFirst => 6,
            Self::Always => 7,
            Self::Tainted => 8,
            Self::Free => 9,
        }
    }
}

/// A reason and the step it belongs to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Where in the order of decision.
    pub step: Step,
    /// What.
    pub because: Because,
}

/// Everything that can decide a call. `Display` is the sentence a person or the model reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Because {
    /// The call does not come from a run of the session's owner.
    NotTheOwnersRun,
    /// The session's profile has no such tool.
    OutsideProfile {
        /// Which tool.
        tool: String,
    },
    /// The catalogue has no such tool.
    OutsideCatalogue {
        /// Which tool.
        tool: String,
    },
    /// The person switched the tool off.
    ToolOff {
        /// Which tool.
        tool: String,
    },
    /// The command is not something a shell could run as it is written.
    Malformed(Malformed),
    /// The call names the product's own state.
    ProtectedPath {
        /// The name as it stands in the call.
        path: String,
    },
    /// The command speaks to the product's own interface.
    OwnInterface {
        /// The address.
        address: String,
    },
    /// The command runs one of the product's own programs.
    OwnProgram {
        /// The program.
        program: String,
    },
    /// A count that refuses.
    CountStops(CountLimit),
    /// The mode refuses changes.
    ChangeInReadOnly,
    /// A step that is asked about in every mode.
    Critical(Risk),
    /// A count that asks in every mode.
    CountAsks(CountLimit),
    /// Somebody else's words are in the chat, and the call is a change or carries a risk.
    OtherPeoplesWords {
        /// Whose, in the order they spoke.
        names: Vec<String>,
    },
    /// Full trust lets it run.
    FullTrust,
    /// The mode asks before every change.
    ChangeInAskFirst,
    /// The person wants to be asked about this tool.
    ToolAsks {
        /// Which tool.
        tool: String,
    },
    /// A risk that no words lift.
    Unaskable(Risk),
    /// Severe and lasting: asked about before anything was read.
    SevereAndLasting(Risk),
    /// A risk that asks because the chat has read something that is not the owner's word.
    Tainted {
        /// The risk.
        risk: Risk,
        /// What was read.
        taints: BTreeSet<Taint>,
    },
    /// A further risk of a call that is asked about anyway.
    AlsoRisk(Risk),
    /// A risk too small to ask about.
    SmallRisk(Risk),
    /// No risk was found.
    NoRisk,
}

/// Why a command is not one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Nothing but blanks.
    Empty,
    /// A NUL byte: no program can be given one.
    Nul,
    /// Not UTF-8.
    NotUtf8,
    /// A quote that is never closed.
    UnclosedQuote,
}

impl Because {
    /// The stable name of the reason.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NotTheOwnersRun => "not_the_owners_run",
            Self::OutsideProfile { .. } => "outside_profile",
            Self::OutsideCatalogue { .. } => "outside_catalogue",
            Self::ToolOff { .. } => "tool_off",
            Self::Malformed(_) => "malformed",
            Self::ProtectedPath { .. } => "protected_path",
            Self::OwnInterface { .. } => "own_interface",
            Self::OwnProgram { .. } => "own_program",
            Self::CountStops(_) => "count_stops",
            Self::ChangeInReadOnly => "change_in_read_only",
            Self::Critical(_) => "critical",
            Self::CountAsks(_) => "count_asks",
            Self::OtherPeoplesWords { .. } => "other_peoples_words",
            Self::FullTrust => "full_trust",
            Self::ChangeInAskFirst => "change_in_ask_first",
            Self::ToolAsks { .. } => "tool_asks",
            Self::Unaskable(_) => "unaskable",
            Self::SevereAndLasting(_) => "severe_and_lasting",
            Self::Tainted { .. } => "tainted",
            Self::AlsoRisk(_) => "also_risk",
            Self::SmallRisk(_) => "small_risk",
            Self::NoRisk => "no_risk",
        }
    }

    /// The risk behind the reason, if there is one.
    pub fn risk(&self) -> Option<&Risk> {
        match self {
            Self::Critical(risk)
            | Self::Unaskable(risk)
            | Self::SevereAndLasting(risk)
            | Self::Tainted { risk, .. }
            | Self::AlsoRisk(risk)
            | Self::SmallRisk(risk) => Some(risk),
            Self::NotTheOwnersRun
            | Self::OutsideProfile { .. }
            | Self::OutsideCatalogue { .. }
            | Self::ToolOff { .. }
            | Self::Malformed(_)
            | Self::ProtectedPath { .. }
            | Self::OwnInterface { .. }
            | Self::OwnProgram { .. }
            | Self::CountStops(_)
            | Self::ChangeInReadOnly
            | Self::CountAsks(_)
            | Self::OtherPeoplesWords { .. }
            | Self::FullTrust
            | Self::ChangeInAskFirst
            | Self::ToolAsks { .. }
            | Self::NoRisk => None,
        }
    }
}

impl fmt::Display for Because {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NotTheOwnersRun => f.write_str("the call does not come from a run of the session's owner"),
            Self::OutsideProfile { tool } => write!(f, "this session's profile has no tool {tool}"),
            Self::OutsideCatalogue { tool } => write!(f, "this session was given no tool {tool}"),
            Self::ToolOff { tool } => write!(f, "the tool {tool} is switched off"),
            Self::Malformed(malformed) => malformed.fmt(f),
            Self::ProtectedPath { path } => write!(f, "{path} belongs to Mooring itself"),
            Self::OwnInterface { address } => write!(f, "{address} is Mooring's own interface"),
            Self::OwnProgram { program } => write!(f, "{program} is one of Mooring's own programs"),
            Self::CountStops(count) => write!(f, "{count}, and that is the limit"),
            Self::ChangeInReadOnly => f.write_str("this session is read-only"),
            Self::Critical(risk)
            | Self::Unaskable(risk)
            | Self::SevereAndLasting(risk)
            | Self::AlsoRisk(risk) => risk.fmt(f),
            Self::CountAsks(count) => count.fmt(f),
            Self::OtherPeoplesWords { names } => {
                write!(f, "words of other people are in this chat: {}", names.join(", "))
            }
            Self::FullTrust => f.write_str("this session has full trust"),
            Self::ChangeInAskFirst => f.write_str("this session asks before every change"),
            Self::ToolAsks { tool } => write!(f, "you want to be asked about the tool {tool}"),
            Self::Tainted { risk, taints } => {
                let read: Vec<String> = taints.iter().map(Taint::to_string).collect();
                write!(f, "{risk}, and this chat has read {}", read.join(", "))
            }
            Self::SmallRisk(risk) => write!(f, "{risk}, which is not asked about here"),
            Self::NoRisk => f.write_str("nothing risky was found in it"),
        }
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Empty => "the command is empty",
            Self::Nul => "the command holds a NUL byte",
            Self::NotUtf8 => "the command is not valid UTF-8",
            Self::UnclosedQuote => "the command has a quote that is never closed",
        })
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.because.fmt(f)
    }
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::WebFetch => f.write_str("a web page"),
            Self::WebSearch => f.write_str("search results"),
            Self::Mcp { server } => write!(f, "results of {server}"),
            Self::UntrustedWorkspace => f.write_str("an untrusted workspace"),
            Self::Child => f.write_str("the result of a tainted task"),
        }
    }
}
