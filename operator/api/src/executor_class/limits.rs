//! Bounds of commands.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::{WholeSeconds, within};

/// Landlock ABI from which signals and abstract sockets end at a command's own domain.
pub const DEFAULT_MINIMUM_LANDLOCK: i32 = 6;

pub(super) fn default_minimum_landlock() -> i32 {
    DEFAULT_MINIMUM_LANDLOCK
}

/// Bounds of commands. What is left out has the executor's default.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClassLimits {
    /// The longest time a command may ask for, 1s to 168h; left out, 1h.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("x-kubernetes-validations" = within("1s", "168h")))]
    pub max_timeout: Option<WholeSeconds>,
    /// Processes of one command, 1 to 32,768; left out, 512.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 32_768))]
    pub processes: Option<i32>,
    /// Commands that run at once in one environment, 1 to 64; left out, 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 64))]
    pub live_commands: Option<i32>,
    /// Background commands that run at once in one workspace, 1 to 8; left out, 8.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 8))]
    pub background_commands: Option<i32>,
    /// Output kept of each stream of a command, in bytes, 65,536 to 67,108,864; left out, 8,388,608.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 65_536, max = 67_108_864))]
    pub output_bytes: Option<i64>,
}

/// The shell that reads command lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub enum Shell {
    /// `/bin/sh`.
    #[default]
    Sh,
    /// `/bin/bash`.
    Bash,
}
