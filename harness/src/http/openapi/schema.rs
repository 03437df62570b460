//! The schemas of the document.

use serde_json::{Value, json};

use crate::session::Mode;

/// All schemas by name.
pub(crate) fn schemas() -> Value {
    let mut all = session_schemas();
    for more in [run_schemas(), approval_schemas(), other_schemas()] {
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
    }
    all
}

/// An object with these properties, all of them required, and no others.
#[expect(clippy::needless_pass_by_value, reason = "callers build it in place")]
fn object(properties: Value) -> Value {
    let required: Vec<&String> = properties.as_object().into_iter().flatten().map(|(name, _)| name).collect();
    json!({ "type": "object", "additionalProperties": false, "required": required, "properties": properties })
}

/// An object with these properties, none of them required, and no others.
#[expect(clippy::needless_pass_by_value, reason = "callers build it in place")]
fn optional(properties: Value) -> Value {
    json!({ "type": "object", "additionalProperties": false, "properties": properties })
}

fn list(name: &str, schema: &str) -> Value {
    object(
        json!({ name: { "type": "array", "items": { "$ref": format!("#/components/schemas/{schema}") } } }),
    )
}

fn text() -> Value {
    json!({ "type": "string" })
}

fn text_or_null() -> Value {
    json!({ "type": ["string", "null"] })
}

fn flag() -> Value {
    json!({ "type": "boolean" })
}

fn time() -> Value {
    json!({ "type": "string", "format": "date-time" })
}

fn number(least: u64, most: u64) -> Value {
    json!({ "type": "integer", "minimum": least, "maximum": most })
}

fn count() -> Value {
    json!({ "type": "integer", "minimum": 0 })
}

fn id() -> Value {
    json!({ "$ref": "#/components/schemas/Id" })
}

fn mode() -> Value {
    json!({ "enum": Mode::ALL.map(Mode::as_str) })
}

fn profile() -> Value {
    json!({ "enum": ["default", "no-fs"] })
}

fn limits() -> Value {
    json!({
        "turns": number(1, 1_000),
        "toolCalls": number(1, 10_000),
        "tokens": number(1, 100_000_000),
        "failures": number(1, 100),
        "wallTimeSeconds": number(1, 604_800),
    })
}

fn session_schemas() -> Value {
    let environment = object(json!({
        "kind": { "enum": ["local", "kubernetes", "none"] },
        "id": text(),
        "revision": text(),
    }));
    json!({
        "Id": { "type": "string", "pattern": "^[0-9a-f]{32}$" },
        "NewSession": optional(json!({
            "profile": profile(),
            "mode": mode(),
            "workspace": {
                "description": "A folder inside the served one. Absent, null, \"\" and {} are empty; no-fs requires an empty one.",
                "anyOf": [{ "type": "string" }, { "type": "null" }, { "type": "object", "maxProperties": 0 }],
            },
            "limits": optional(limits()),
            "model": text(),
        })),
        "SessionPatch": {
            "type": "object",
            "additionalProperties": false,
            "minProperties": 1,
            "properties": { "mode": mode(), "suspended": flag(), "trusted": flag() },
        },
        "Session": object(json!({
            "id": id(),
            "profile": profile(),
            "mode": mode(),
            "state": { "enum": ["idle", "running", "waiting"] },
            "trusted": flag(),
            "suspended": flag(),
            "model": text_or_null(),
            "environment": { "anyOf": [environment, { "type": "null" }] },
            "limits": object(limits()),
            "usage": object(json!({ "inputTokens": count(), "outputTokens": count(), "requests": count() })),
            "createdAt": time(),
            "updatedAt": time(),
        })),
        "SessionList": list("sessions", "Session"),
    })
}

fn run_schemas() -> Value {
    json!({
        "Words": object(json!({ "text": { "type": "string", "minLength": 1, "maxLength": 262_144 } })),
        "Accepted": object(json!({ "run": id(), "number": count() })),
        "Interrupted": object(json!({ "runs": { "type": "array", "items": id() } })),
        "Message": object(json!({
            "number": count(),
            "origin": text(),
            "text": text(),
            "run": id(),
            "steers": flag(),
            "delivered": flag(),
            "createdAt": time(),
        })),
        "MessageList": list("messages", "Message"),
        "Transcript": object(json!({ "items": { "type": "array", "items": {
            "type": "object",
            "required": ["number", "run", "kind"],
            "properties": {
                "number": count(),
                "run": id(),
                "kind": { "enum": ["words", "assistant", "toolResult", "note"] },
            },
        } } })),
        "Run": object(json!({
            "id": id(),
            "session": id(),
            "message": count(),
            "state": { "enum": ["queued", "running", "waiting", "finished", "interrupted", "failed"] },
            "outcome": text_or_null(),
            "error": { "anyOf": [object(json!({ "code": text(), "message": text() })), { "type": "null" }] },
            "interruptRequested": flag(),
            "turns": count(),
            "toolCalls": count(),
            "tokens": count(),
            "createdAt": time(),
            "startedAt": text_or_null(),
            "finishedAt": text_or_null(),
        })),
        "Event": {
            "type": "object",
            "required": ["id", "at", "type"],
            "properties": { "id": text(), "at": time(), "type": text() },
        },
    })
}

fn approval_schemas() -> Value {
    json!({
        "Approval": object(json!({
            "id": id(),
            "session": id(),
            "run": id(),
            "call": text(),
            "tool": text(),
            "arguments": text(),
            "digest": { "type": "string", "pattern": "^[0-9a-f]{64}$" },
            "question": { "type": "object" },
            "state": { "enum": ["pending", "allowed", "denied", "expired", "consumed"] },
            "createdAt": time(),
            "expiresAt": time(),
            "decidedAt": text_or_null(),
            "decidedBy": text_or_null(),
        })),
        "ApprovalList": list("approvals", "Approval"),
        "Decision": {
            "type": "object",
            "additionalProperties": false,
            "required": ["answer"],
            "properties": {
                "answer": { "enum": ["allow", "deny"] },
                "keepRule": { "type": "boolean", "description": "True is refused while no question offers a rule." },
            },
        },
    })
}

fn other_schemas() -> Value {
    json!({
        "Tool": object(json!({ "name": text(), "description": text(), "parameters": { "type": "object" } })),
        "ToolList": object(json!({
            "profile": profile(),
            "tools": { "type": "array", "items": { "$ref": "#/components/schemas/Tool" } },
        })),
        "Model": object(json!({ "name": text() })),
        "ModelList": list("models", "Model"),
        "Info": object(json!({
            "name": text(),
            "version": text(),
            "deployment": { "enum": ["local"] },
            "profiles": { "type": "array", "items": text() },
            "modes": { "type": "array", "items": text() },
            "hasModel": flag(),
            "authenticationFailures": count(),
        })),
        "Document": { "type": "object" },
        "Error": object(json!({ "code": text(), "message": text(), "retryable": flag() })),
    })
}
