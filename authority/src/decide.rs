//! The order of decision: the first step that matches decides.

use crate::call::Call;
use crate::context::Context;
use crate::decision::{Because, Decision, Reason, Step};
use crate::mode::Mode;
use crate::question::Question;

/// Decides what becomes of a call.
///
/// Pure and total: no input makes it panic, and the same input gives the same answer. The steps are those of [`Step`], in
/// order; a later step never overrules an earlier one.
pub fn decide(call: &Call, context: &Context) -> Decision {
    if !context.caller_is_owner_run {
        return Decision::Deny {
            because: vec![Reason { step: Step::Caller, because: Because::NotTheOwnersRun }],
        };
    }
    if context.mode == Mode::ReadOnly && call.is_change() {
        return Decision::Deny {
            because: vec![Reason { step: Step::ReadOnly, because: Because::ChangeInReadOnly }],
        };
    }
    if call.is_change() {
        let because = vec![Reason { step: Step::AskFirst, because: Because::ChangeInAskFirst }];
        return Decision::Ask { question: Question::new(call, &because), review: None, offer: None, because };
    }
    Decision::Allow { because: vec![Reason { step: Step::Free, because: Because::NoRisk }] }
}
