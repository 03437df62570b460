//! The order of decision: the first step that matches decides.

use crate::call::Call;
use crate::context::{Context, Workspace};
use crate::decision::{Because, Decision, Reason, Step};
use crate::mode::Mode;
use crate::question::Question;
use crate::reading::{self, Reading};
use crate::risk::{self, ASKS, Risk};
use crate::{protected, reads, tool};

/// Decides what becomes of a call.
///
/// Pure and total: no input makes it panic, and the same input gives the same answer. The steps are those of [`Step`], in
/// order; a later step never overrules an earlier one. For the owner's answer to count, the call that runs must be this
/// very call in this very workspace: that is the caller's to hold.
pub fn decide(call: &Call, context: &Context) -> Decision {
    if !context.caller_is_owner_run {
        return deny(Step::Caller, Because::NotTheOwnersRun);
    }
    if let Some(because) = outside(call, context) {
        return deny(Step::Forbidden, because);
    }
    let read = match Read::of(call, context) {
        Ok(read) => read,
        Err(because) => return deny(Step::Forbidden, because),
    };
    if let Some(count) = context.counts.stop() {
        return deny(Step::Forbidden, Because::CountStops(count));
    }
    if context.mode == Mode::ReadOnly && read.is_change {
        return deny(Step::ReadOnly, Because::ChangeInReadOnly);
    }
    from_critical(call, context, &read)
}

/// What is known of the call once it has been read.
struct Read {
    is_change: bool,
    /// The worst first.
    risks: Vec<Risk>,
}

impl Read {
    fn of(call: &Call, context: &Context) -> Result<Self, Because> {
        if let Some(because) = protected::by_path(call, context) {
            return Err(because);
        }
        let Call::Shell { command, .. } = call else {
            return Ok(Self { is_change: call.is_change(), risks: tool::risks(call) });
        };
        let text = reading::text(command).map_err(Because::Malformed)?;
        let nowhere = Workspace { root: "/".to_owned(), ..Workspace::default() };
        let workspace = context.workspace.as_ref().unwrap_or(&nowhere);
        let read: Reading = reading::read(text, workspace).map_err(Because::Malformed)?;
        if let Some(because) = protected::by_command(text, &read, context) {
            return Err(because);
        }
        Ok(Self { is_change: !reads::only(&read, workspace), risks: risk::of_command(&read, workspace) })
    }
}

/// Step 2 but for what the command names: profile, catalogue, tools switched off.
fn outside(call: &Call, context: &Context) -> Option<Because> {
    let tool = call.tool();
    if !context.profile.has(tool) {
        Some(Because::OutsideProfile { tool: tool.to_owned() })
    } else if !context.tools.catalogue.contains(tool) {
        Some(Because::OutsideCatalogue { tool: tool.to_owned() })
    } else if context.tools.off.contains(tool) {
        Some(Because::ToolOff { tool: tool.to_owned() })
    } else {
        None
    }
}

/// Steps 4 to 9.
fn from_critical(call: &Call, context: &Context, read: &Read) -> Decision {
    let others = other_people(context);
    if let Some(risk) = read.risks.iter().find(|risk| risk.critical) {
        return ask(call, Step::Critical, Because::Critical(risk.clone()), &read.risks);
    }
    if let Some(count) = context.counts.ask(context.mode) {
        return ask(call, Step::Critical, Because::CountAsks(count), &read.risks);
    }
    if context.mode == Mode::FullTrust {
        return match others {
            Some(because) if read.is_change => ask(call, Step::FullTrust, because, &read.risks),
            Some(_) | None => allow(Step::FullTrust, Because::FullTrust),
        };
    }
    if context.mode == Mode::AskFirst && read.is_change {
        return ask(call, Step::AskFirst, Because::ChangeInAskFirst, &read.risks);
    }
    by_score(call, context, read, others)
}

/// Steps 7 to 9.
fn by_score(call: &Call, context: &Context, read: &Read, others: Option<Because>) -> Decision {
    let tool = call.tool();
    if context.tools.ask.contains(tool) {
        return ask(call, Step::Always, Because::ToolAsks { tool: tool.to_owned() }, &read.risks);
    }
    let tainted = !context.taints.is_empty();
    if let Some(risk) = read.risks.iter().find(|risk| !risk.askable && risk.score(tainted) >= ASKS) {
        return ask(call, Step::Always, Because::Unaskable(risk.clone()), &read.risks);
    }
    if let Some(risk) = read.risks.iter().find(|risk| risk.score(false) >= ASKS) {
        return ask(call, Step::Always, Because::SevereAndLasting(risk.clone()), &read.risks);
    }
    if let (Some(because), false) = (others, read.risks.is_empty()) {
        return ask(call, Step::Always, because, &read.risks);
    }
    if let Some(risk) = read.risks.iter().find(|risk| risk.score(tainted) >= ASKS) {
        let because = Because::Tainted { risk: risk.clone(), taints: context.taints.clone() };
        return ask(call, Step::Tainted, because, &read.risks);
    }
    allow(Step::Free, read.risks.first().cloned().map_or(Because::NoRisk, Because::SmallRisk))
}

fn other_people(context: &Context) -> Option<Because> {
    let mut names: Vec<String> = Vec::new();
    for message in context.messages.iter().filter(|message| message.origin.is_other_person()) {
        let name = message.origin.name().to_owned();
        if !names.contains(&name) {
            names.push(name);
        }
    }
    (!names.is_empty()).then_some(Because::OtherPeoplesWords { names })
}

fn allow(step: Step, because: Because) -> Decision {
    Decision::Allow { because: vec![Reason { step, because }] }
}

fn deny(step: Step, because: Because) -> Decision {
    Decision::Deny { because: vec![Reason { step, because }] }
}

/// Asks, for the deciding reason and with every other risk told.
fn ask(call: &Call, step: Step, because: Because, risks: &[Risk]) -> Decision {
    let told = because.risk().cloned();
    let mut reasons = vec![Reason { step, because }];
    for risk in risks.iter().filter(|risk| told.as_ref() != Some(*risk)) {
        let reason = Reason { step, because: Because::AlsoRisk(risk.clone()) };
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    Decision::Ask { question: Question::new(call, &reasons), review: None, offer: None, because: reasons }
}

#[cfg(test)]
mod tests;
