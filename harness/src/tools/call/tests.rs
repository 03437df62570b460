use expect_test::{Expect, expect};

use super::*;

#[expect(clippy::needless_pass_by_value, reason = "a table reads better without a reference in each row")]
#[track_caller]
fn refused(name: &str, arguments: &str, expected: Expect) {
    let error = parse(Profile::Default, name, arguments).expect_err("refused");
    expected.assert_eq(&error.to_string());
}

#[test]
fn whole_arguments_become_a_typed_call() {
    assert_eq!(
        parse(
            Profile::Default,
            "Shell",
            r#"{"command":"go test ./...","timeoutMillis":5000,"background":true}"#
        ),
        Ok(Call::Shell(Shell {
            command: "go test ./...".to_owned(),
            timeout_millis: Some(5000),
            background: true
        }))
    );
    assert_eq!(parse(Profile::Default, "ListDir", "{}"), Ok(Call::ListDir(ListDir { path: None })));
}

#[test]
fn arguments_that_are_not_an_object_are_refused_by_what_they_are() {
    refused(
        "Shell",
        "null",
        expect![
            "the arguments of Shell are not a valid JSON object (it is null); nothing was executed, send the whole call again"
        ],
    );
    for arguments in
        ["[]", "7", "\"ls\"", "true", "", "{\"command\":\"ls\"", "{\"command\":\"ls\",\"command\":\"rm\"}"]
    {
        assert!(
            matches!(
                parse(Profile::Default, "Shell", arguments),
                Err(CallError::NotAnObject { tool: "Shell", .. })
            ),
            "{arguments}"
        );
    }
}

#[test]
fn fields_are_exactly_those_of_the_schema() {
    refused(
        "Shell",
        r#"{"command":"ls","cwd":"/"}"#,
        expect![
            "the arguments of Shell are not accepted: unknown field `cwd`, expected one of `command`, `timeoutMillis`, `background`; nothing was executed"
        ],
    );
    refused(
        "Shell",
        r#"{"cmd":"ls"}"#,
        expect![
            "the arguments of Shell are not accepted: unknown field `cmd`, expected one of `command`, `timeoutMillis`, `background`; nothing was executed"
        ],
    );
    refused(
        "Shell",
        "{}",
        expect!["the arguments of Shell are not accepted: missing field `command`; nothing was executed"],
    );
    refused(
        "Shell",
        r#"{"command":["ls"]}"#,
        expect![
            "the arguments of Shell are not accepted: invalid type: sequence, expected a string; nothing was executed"
        ],
    );
    refused(
        "Read",
        r#"{"path":"a","limit":"5"}"#,
        expect![[
            r#"the arguments of Read are not accepted: invalid type: string "5", expected u64; nothing was executed"#
        ]],
    );
    refused(
        "Read",
        r#"{"path":"a","offset":0}"#,
        expect!["the arguments of Read are not accepted: 0 is below 1; nothing was executed"],
    );
    refused(
        "Read",
        r#"{"path":"a","offset":-1}"#,
        expect![
            "the arguments of Read are not accepted: invalid value: integer `-1`, expected u64; nothing was executed"
        ],
    );
    refused(
        "Read",
        r#"{"path":"a","offset":1.0}"#,
        expect![
            "the arguments of Read are not accepted: invalid type: floating point `1.0`, expected u64; nothing was executed"
        ],
    );
    refused(
        "Shell",
        r#"{"command":"ls","timeoutMillis":3600001}"#,
        expect![[
            r#"the arguments of Shell are not accepted: "timeoutMillis" is above 3600000; nothing was executed"#
        ]],
    );
    refused(
        "Shell",
        r#"{"command":"a\u0000b"}"#,
        expect![[
            r#"the arguments of Shell are not accepted: "command" holds a NUL character; nothing was executed"#
        ]],
    );
    refused(
        "Edit",
        r#"{"path":"a","old":"","new":"x"}"#,
        expect![[r#"the arguments of Edit are not accepted: "old" is empty; nothing was executed"#]],
    );
    refused(
        "ShellStatus",
        r#"{"job":"../x"}"#,
        expect![[
            r#"the arguments of ShellStatus are not accepted: "job" is not a job id as Shell gives it; nothing was executed"#
        ]],
    );
}

#[test]
fn a_name_that_only_looks_like_a_tool_is_shown_for_what_it_is() {
    refused(
        "Re\u{430}d",
        r#"{"path":"a"}"#,
        expect![[r#"there is no tool named "Re\u{430}d"; nothing was executed"#]],
    );
    for name in ["", "read", "READ", "Read ", " Read", "Read\u{200b}", "functions.Read", "WebFetch", "Bash"] {
        assert!(matches!(parse(Profile::Default, name, "{}"), Err(CallError::UnknownTool(_))), "{name:?}");
    }
}

#[test]
fn no_fs_knows_none_of_the_file_tools() {
    for tool in super::super::catalogue::TOOLS {
        assert!(matches!(parse(Profile::NoFs, tool, "{}"), Err(CallError::UnknownTool(_))), "{tool}");
    }
}

#[test]
fn every_call_knows_its_tool_and_the_judge_knows_it_too() {
    let cases = [
        ("Read", r#"{"path":"a"}"#, true),
        ("ListDir", "{}", true),
        ("Write", r#"{"path":"a","content":""}"#, false),
        ("Edit", r#"{"path":"a","old":"x","new":""}"#, false),
        ("Copy", r#"{"source":"a","destination":"b"}"#, false),
        ("Move", r#"{"source":"a","destination":"b"}"#, false),
        ("Remove", r#"{"path":"a"}"#, false),
        ("Grep", r#"{"pattern":"x"}"#, true),
        ("Glob", r#"{"pattern":"*"}"#, true),
        ("Shell", r#"{"command":"ls"}"#, false),
        ("ShellStatus", r#"{"job":"00000000000000000000000000000000"}"#, true),
        ("ShellStatus", r#"{"job":"00000000000000000000000000000000","cancel":true}"#, false),
    ];
    for (tool, arguments, is_read) in cases {
        let call = parse(Profile::Default, tool, arguments).expect("call");
        assert_eq!((call.tool(), call.for_authority().tool(), call.is_read()), (tool, tool, is_read));
    }
}
