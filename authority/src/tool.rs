//! Risks of calls that are no commands: tools of MCP servers, by what they say about themselves.

use crate::call::Call;
use crate::risk::Risk;

/// The risks of a call to a tool, the worst first. Commands are read elsewhere.
pub(crate) fn risks(call: &Call) -> Vec<Risk> {
    match call {
        Call::Other { tool, annotations } if annotations.destructive && !annotations.read_only => {
            vec![Risk::of_destructive_tool(tool)]
        }
        Call::Other { .. }
        | Call::Read { .. }
        | Call::ListDir { .. }
        | Call::Grep { .. }
        | Call::Glob { .. }
        | Call::Write { .. }
        | Call::Edit { .. }
        | Call::Copy { .. }
        | Call::Move { .. }
        | Call::Remove { .. }
        | Call::Shell { .. }
        | Call::ShellStatus { .. } => Vec::new(),
    }
}
