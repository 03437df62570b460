//! Which tools a session has, and how they are described to the model.

use serde_json::{Value, json};

use crate::model::ToolDescription;
use crate::session::Profile;

/// Every tool that is built, in the order in which the model is told. A tool that is not here exists nowhere.
pub const TOOLS: &[&str] =
    &["Read", "ListDir", "Write", "Edit", "Copy", "Move", "Remove", "Grep", "Glob", "Shell", "ShellStatus"];

/// Whether a session of this profile has the tool.
pub fn has(profile: Profile, tool: &str) -> bool {
    TOOLS.contains(&tool) && profile.has(tool)
}

/// The tools of a profile as the model is told about them.
pub fn catalogue(profile: Profile) -> Vec<ToolDescription> {
    TOOLS
        .iter()
        .filter(|tool| has(profile, tool))
        .map(|tool| {
            let (description, parameters) = describe(tool);
            ToolDescription { name: (*tool).to_owned(), description: description.to_owned(), parameters }
        })
        .collect()
}

fn describe(tool: &str) -> (&'static str, Value) {
    let path = || json!({"type": "string", "description": "Relative to the workspace root."});
    match tool {
        "Read" => (
            "Reads a text file by lines, at most 2000 lines or 25,000 bytes at a time. A file must be read before it can be written or edited.",
            object(
                &json!({
                    "path": path(),
                    "offset": {"type": "integer", "minimum": 1, "description": "First line, 1-based. Default 1."},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 2000, "description": "Lines. Default 2000."},
                }),
                &["path"],
            ),
        ),
        "ListDir" => (
            "Lists one folder, one level: names, a slash after folders, sizes in bytes. At most 1000 entries.",
            object(&json!({"path": path()}), &[]),
        ),
        "Write" => (
            "Creates a file, or replaces the whole content of one that was read and has not changed since.",
            object(&json!({"path": path(), "content": {"type": "string"}}), &["path", "content"]),
        ),
        "Edit" => (
            "Replaces text in a file that was read and has not changed since. `old` must match exactly once, byte for byte, unless replaceAll is true.",
            object(
                &json!({
                    "path": path(),
                    "old": {"type": "string", "description": "The exact text to be replaced; not empty."},
                    "new": {"type": "string"},
                    "replaceAll": {"type": "boolean", "description": "Replace each match. Default false."},
                }),
                &["path", "old", "new"],
            ),
        ),
        "Copy" => (
            "Copies one regular file to a path where nothing is yet.",
            object(&json!({"source": path(), "destination": path()}), &["source", "destination"]),
        ),
        "Move" => (
            "Renames a file or folder to a path where nothing is yet.",
            object(&json!({"source": path(), "destination": path()}), &["source", "destination"]),
        ),
        "Remove" => (
            "Removes one file, one link itself, or one empty folder. Never recursive.",
            object(&json!({"path": path()}), &["path"]),
        ),
        "Grep" => (
            "Searches file contents by regular expression (Rust syntax). Ignored and hidden files are left out unless asked for. At most 200 matches.",
            object(
                &json!({
                    "pattern": {"type": "string"},
                    "path": path(),
                    "glob": {"type": "string", "description": "Only files whose path matches."},
                    "caseInsensitive": {"type": "boolean"},
                    "includeIgnored": {"type": "boolean"},
                    "contextLines": {"type": "integer", "minimum": 0, "maximum": 20},
                }),
                &["pattern"],
            ),
        ),
        "Glob" => (
            "Finds files by glob (`* ? [] {} **`), sorted. At most 1000 paths.",
            object(
                &json!({"pattern": {"type": "string"}, "path": path(), "includeIgnored": {"type": "boolean"}}),
                &["pattern"],
            ),
        ),
        "Shell" => (
            "Runs a command with /bin/sh in the workspace root, each time in a fresh shell without terminal or standard input. The answer says how it ended. With background true it answers at once with a job id for ShellStatus.",
            object(
                &json!({
                    "command": {"type": "string"},
                    "timeoutMillis": {"type": "integer", "minimum": 1, "maximum": 3_600_000, "description": "Default 120000; in the background none."},
                    "background": {"type": "boolean"},
                }),
                &["command"],
            ),
        ),
        _ => (
            "Shows the output and state of a background command; can wait for its end or end it.",
            object(
                &json!({
                    "job": {"type": "string", "description": "Job id as Shell gave it."},
                    "waitMillis": {"type": "integer", "minimum": 0, "maximum": 600_000},
                    "cancel": {"type": "boolean", "description": "End the command and everything it started."},
                }),
                &["job"],
            ),
        ),
    }
}

fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_fs_takes_away_exactly_its_list() {
        let names = |profile| catalogue(profile).into_iter().map(|tool| tool.name).collect::<Vec<_>>();
        assert_eq!(names(Profile::Default), TOOLS);
        let left: Vec<&str> =
            TOOLS.iter().copied().filter(|tool| !Profile::FILE_TOOLS.contains(tool)).collect();
        assert_eq!(names(Profile::NoFs), left);
        assert!(left.is_empty(), "no tool besides the file tools is built");
    }

    #[test]
    fn a_schema_allows_no_other_property_and_requires_only_its_own() {
        for tool in catalogue(Profile::Default) {
            assert_eq!(tool.parameters["additionalProperties"], false, "{}", tool.name);
            let properties = tool.parameters["properties"].as_object().expect("properties");
            for name in tool.parameters["required"].as_array().expect("required") {
                assert!(properties.contains_key(name.as_str().expect("name")), "{}", tool.name);
            }
        }
    }

    #[test]
    fn the_schema_and_the_parser_know_the_same_fields() {
        for tool in catalogue(Profile::Default) {
            for name in tool.parameters["properties"].as_object().expect("properties").keys() {
                let arguments = format!("{{\"{name}\":null,\"surely_unknown\":1}}");
                let error =
                    super::super::parse(Profile::Default, &tool.name, &arguments).expect_err("refused");
                assert!(!error.to_string().contains(&format!("unknown field `{name}`")), "{error}");
            }
        }
    }
}
