//! The model's side of a run: an OpenAI-compatible client.
//!
//! ```text
//! agent ── messages, tools ──▶ client ──POST /chat/completions──▶ provider
//!       ◀─ Turn or ModelError ─ turn ◀─ chunks ─ sse ◀── bytes ──┘
//! ```
//!
//! A turn is whole or it is an error: a stream without its end, with an error inside or with an unknown finish reason never
//! becomes an answer, and a call that is broken in itself carries its fault instead of being repaired.

mod client;
mod retry;
mod sse;
mod turn;
mod wire;

pub use client::{ModelClient, ModelConfig, ModelError, ModelTiming};
pub use sse::SseError;
pub use turn::{CallFault, MAX_CALLS, MAX_TURN_BYTES, Turn, TurnCall, TurnEnd, TurnError, Usage};
pub use wire::{ChatMessage, HistoryCall, ToolDescription};
