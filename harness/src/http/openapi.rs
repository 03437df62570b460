//! The OpenAPI 3.1 document of the API, kept by hand beside the routes; a test walks both.

mod schema;

use serde_json::{Map, Value, json};

/// The document.
pub(crate) fn document() -> Value {
    let mut paths = Map::new();
    for operation in operations() {
        let entry = paths.entry(operation.path.to_owned()).or_insert_with(|| json!({}));
        if let Value::Object(methods) = entry {
            methods.insert(operation.method.to_owned(), operation.describe());
        }
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Mooring",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "Sessions of coding agents, in local mode. Bodies are JSON whatever their Content-Type; \
                an unknown field is refused; every error has the schema Error.",
        },
        "paths": paths,
        "components": {
            "schemas": schema::schemas(),
            "securitySchemes": { "token": {
                "type": "http",
                "scheme": "bearer",
                "description": "The token file of the state folder speaks for the person.",
            } },
        },
    })
}

/// One call.
struct Operation {
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    /// Open to a process of the same user without the token.
    open: bool,
    query: &'static [(&'static str, &'static str)],
    /// Schema of the request body.
    body: Option<&'static str>,
    /// Status and schema of the good answer; `None`: no body.
    answer: (u16, Option<&'static str>),
    /// Statuses of errors beyond those of every call.
    errors: &'static [u16],
}

impl Operation {
    fn describe(&self) -> Value {
        let in_path = self.path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}')).map(|name| {
            json!({ "name": name, "in": "path", "required": true, "schema": { "$ref": "#/components/schemas/Id" } })
        });
        let in_query = self.query.iter().map(|(name, about)| {
            json!({ "name": name, "in": "query", "description": about, "schema": { "type": "string" } })
        });
        let parameters: Vec<Value> = in_path.chain(in_query).collect();
        let mut responses = Map::new();
        responses.insert(self.answer.0.to_string(), self.good_answer());
        for status in [400, 401, 408, 421, 429, 431].iter().chain(self.errors) {
            responses.insert(status.to_string(), content("An error.", "application/json", "Error"));
        }
        let mut security = vec![json!({ "token": [] })];
        if self.open {
            security.push(json!({}));
        }
        let mut described = json!({
            "summary": self.summary,
            "parameters": parameters,
            "responses": responses,
            "security": security,
        });
        if let (Some(schema), Value::Object(map)) = (self.body, &mut described) {
            let body = json!({ "content": { "application/json": { "schema": reference(schema) } } });
            map.insert("requestBody".to_owned(), body);
        }
        described
    }

    fn good_answer(&self) -> Value {
        match self.answer.1 {
            None => json!({ "description": "Done." }),
            Some("EventStream") => content("Server-sent events.", "text/event-stream", "Event"),
            Some(schema) => content("Done.", "application/json", schema),
        }
    }
}

fn content(description: &str, media: &str, schema: &str) -> Value {
    json!({ "description": description, "content": { media: { "schema": reference(schema) } } })
}

fn reference(schema: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{schema}") })
}

/// A call without parameters, body or errors of its own.
const fn call(
    method: &'static str,
    path: &'static str,
    summary: &'static str,
    answer: (u16, Option<&'static str>),
) -> Operation {
    Operation { method, path, summary, open: false, query: &[], body: None, answer, errors: &[] }
}

/// Every call, in the order of the router.
fn operations() -> Vec<Operation> {
    let mut all = session_calls();
    all.extend(run_calls());
    all.extend(other_calls());
    all
}

fn session_calls() -> Vec<Operation> {
    const ONE: &str = "/v1/sessions/{session}";
    vec![
        Operation {
            open: true,
            body: Some("NewSession"),
            errors: &[403, 409, 413, 415],
            ..call("post", "/v1/sessions", "Makes a session.", (201, Some("Session")))
        },
        call(
            "get",
            "/v1/sessions",
            "Lists the sessions, newest first, at most 500.",
            (200, Some("SessionList")),
        ),
        Operation {
            open: true,
            errors: &[404],
            ..call(
                "get",
                ONE,
                "Describes a session; without the token one that was made without it.",
                (200, Some("Session")),
            )
        },
        Operation {
            body: Some("SessionPatch"),
            errors: &[404, 413, 415],
            ..call("patch", ONE, "Changes mode, sleep or trust.", (200, Some("Session")))
        },
        Operation {
            errors: &[404],
            ..call("delete", ONE, "Deletes a session and all its text.", (204, None))
        },
    ]
}

fn run_calls() -> Vec<Operation> {
    const WORDS: &[u16] = &[404, 409, 413, 415];
    vec![
        Operation {
            body: Some("Words"),
            errors: WORDS,
            ..call(
                "post",
                "/v1/sessions/{session}/messages",
                "Says something; starts a run.",
                (202, Some("Accepted")),
            )
        },
        Operation {
            errors: &[404],
            ..call(
                "get",
                "/v1/sessions/{session}/messages",
                "Lists what was said.",
                (200, Some("MessageList")),
            )
        },
        Operation {
            errors: &[404],
            ..call(
                "get",
                "/v1/sessions/{session}/transcript",
                "Gives the conversation.",
                (200, Some("Transcript")),
            )
        },
        Operation {
            errors: &[404],
            ..call("get", "/v1/sessions/{session}/runs/{run}", "Describes a run.", (200, Some("Run")))
        },
        Operation {
            query: &[("lastEventId", "Go on after this event; the same as the header Last-Event-ID.")],
            errors: &[404, 410],
            ..call("get", "/v1/sessions/{session}/events", "Follows the events.", (200, Some("EventStream")))
        },
        Operation {
            errors: &[404, 409, 413, 415],
            ..call(
                "post",
                "/v1/sessions/{session}/interrupt",
                "Stops all open runs.",
                (202, Some("Interrupted")),
            )
        },
        Operation {
            body: Some("Words"),
            errors: WORDS,
            ..call(
                "post",
                "/v1/sessions/{session}/steer",
                "Adds words to the open run.",
                (202, Some("Accepted")),
            )
        },
    ]
}

fn other_calls() -> Vec<Operation> {
    vec![
        Operation {
            query: &[("session", "Of this session."), ("state", "In this state.")],
            ..call(
                "get",
                "/v1/approvals",
                "Lists questions, newest first, at most 500.",
                (200, Some("ApprovalList")),
            )
        },
        Operation {
            errors: &[404],
            ..call("get", "/v1/approvals/{approval}", "Describes a question.", (200, Some("Approval")))
        },
        Operation {
            body: Some("Decision"),
            errors: &[404, 409, 413, 415],
            ..call(
                "post",
                "/v1/approvals/{approval}/decision",
                "Answers a question, once.",
                (200, Some("Approval")),
            )
        },
        Operation {
            query: &[("profile", "default or no-fs; absent: default.")],
            ..call("get", "/v1/tools", "Lists the tools of a profile.", (200, Some("ToolList")))
        },
        call("get", "/v1/models", "Lists the models, the default first.", (200, Some("ModelList"))),
        call("get", "/v1/info", "Says what this server is.", (200, Some("Info"))),
        call("get", "/v1/openapi.json", "This document.", (200, Some("Document"))),
    ]
}
