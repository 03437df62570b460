//! What commands of an environment may use.

use std::time::Duration;

use mooring_proto::v1;

use super::BindError;

/// The class's limits, defaults filled in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Longest time a command may ask for.
    pub max_timeout: Duration,
    /// Processes of one command.
    pub processes: u32,
    /// Live commands in the environment.
    pub live_commands: usize,
    /// Live background commands in one workspace.
    pub background_commands: usize,
    /// Output kept per stream, in bytes.
    pub output_bytes: usize,
}

impl Limits {
    /// The limits in `limits`, 0 standing for the default.
    ///
    /// # Errors
    /// [`BindError::Malformed`] for a number out of its bounds.
    pub(super) fn parse(limits: &v1::Limits) -> Result<Self, BindError> {
        let max_timeout_millis = match limits.max_timeout_millis {
            0 => 3_600_000,
            // A day: long enough for any class, short enough for every clock.
            millis @ 1..=86_400_000 => millis.unsigned_abs(),
            _ => return Err(BindError::Malformed("max_timeout_millis is 0..=86,400,000")),
        };
        let processes = match limits.processes {
            0 => 512,
            processes @ 1..=65_536 => processes,
            _ => return Err(BindError::Malformed("processes is 0..=65,536")),
        };
        let live_commands = match limits.live_commands {
            0 => 64,
            live @ 1..=64 => live as usize,
            _ => return Err(BindError::Malformed("live_commands is 0..=64")),
        };
        let background_commands = match limits.background_commands {
            0 => 8,
            live @ 1..=8 => live as usize,
            _ => return Err(BindError::Malformed("background_commands is 0..=8")),
        };
        let output_bytes = match limits.output_bytes {
            0 => 8 * 1024 * 1024,
            bytes @ 65_536..=67_108_864 => usize::try_from(bytes).unwrap_or(usize::MAX),
            _ => return Err(BindError::Malformed("output_bytes is 0 or 64 KiB..=64 MiB")),
        };
        Ok(Self {
            max_timeout: Duration::from_millis(max_timeout_millis),
            processes,
            live_commands,
            background_commands,
            output_bytes,
        })
    }
}
