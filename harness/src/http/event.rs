//! The event stream of a session: durable, resumed by id.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::time::Duration;

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::sse::{self, KeepAlive, Sse};
use axum::response::{IntoResponse, Response};
use futures::Stream;
use serde_json::Value;
use tokio_util::sync::CancellationToken;

use super::Api;
use super::error::ApiError;
use super::path::{PathIds, Query};
use crate::session::{SessionId, StoredEvent};
use crate::store::{Changes, Store};

/// Events read from the store at once: what a slow reader costs in memory.
const PAGE: u32 = 100;
/// Silence after which a comment is sent, so that a dead connection is noticed.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// `GET /v1/sessions/{session}/events`
///
/// From the beginning, or after the event that `Last-Event-ID` (or `lastEventId` in the query, for a first connection of
/// a browser) names. An id that is not one of this session's is refused.
pub(crate) async fn follow(
    State(api): State<Api>,
    ids: PathIds,
    query: Query,
    headers: HeaderMap,
) -> Result<Response, ApiError> {
    query.allow(&["lastEventId"])?;
    let session = api.store.session(ids.session()?).await?.id;
    let changes = api.store.watch(session);
    let cursor = match last_event_id(&headers, &query)? {
        None => 0,
        Some(text) => known(&api.store, session, &text).await?,
    };
    let follower = Follower {
        store: api.store.clone(),
        session,
        cursor,
        page: VecDeque::new(),
        changes,
        drain: api.drain.clone(),
    };
    let stream = Sse::new(follower.into_stream()).keep_alive(KeepAlive::new().interval(KEEP_ALIVE));
    Ok(([("cache-control", "no-store"), ("x-accel-buffering", "no")], stream).into_response())
}

/// Where a reader stands.
struct Follower {
    store: Store,
    session: SessionId,
    cursor: i64,
    page: VecDeque<StoredEvent>,
    changes: Changes,
    drain: CancellationToken,
}

impl Follower {
    fn into_stream(self) -> impl Stream<Item = Result<sse::Event, Infallible>> + Send {
        futures::stream::unfold(self, |mut follower| async move {
            let event = follower.next().await?;
            Some((Ok(event), follower))
        })
    }

    /// The next event; `None` when the server ends, the session is gone or the store fails: the reader comes back.
    async fn next(&mut self) -> Option<sse::Event> {
        loop {
            if let Some(event) = self.page.pop_front() {
                self.cursor = event.id;
                return Some(render(self.session, &event));
            }
            if self.drain.is_cancelled() {
                return None;
            }
            let page = self.store.events(self.session, self.cursor, PAGE).await;
            match page {
                Ok(page) if page.is_empty() => {
                    self.store.last_event(self.session).await.ok()?;
                    tokio::select! {
                        () = self.changes.changed() => {}
                        () = self.drain.cancelled() => return None,
                    }
                }
                Ok(page) => self.page = page.into(),
                Err(error) => {
                    tracing::error!(error = &error as &dyn std::error::Error, "an event stream ends");
                    return None;
                }
            }
        }
    }
}

/// One event: its id names the session too, so that it means nothing in another.
fn render(session: SessionId, stored: &StoredEvent) -> sse::Event {
    let id = format!("{session}-{}", stored.id);
    let mut data = serde_json::to_value(&stored.event).unwrap_or(Value::Null);
    if let Value::Object(map) = &mut data {
        map.insert("id".to_owned(), id.clone().into());
        map.insert("at".to_owned(), stored.at.to_string().into());
    }
    sse::Event::default().id(id).event(&stored.kind).data(data.to_string())
}

fn last_event_id(headers: &HeaderMap, query: &Query) -> Result<Option<String>, ApiError> {
    let mut values = headers.get_all("last-event-id").iter();
    let header = match (values.next(), values.next()) {
        (None, _) => None,
        (Some(value), None) => Some(value.to_str().map_err(|_| unknown())?),
        (Some(_), Some(_)) => return Err(unknown()),
    };
    match (header, query.get("lastEventId")) {
        (Some(header), Some(query)) if header != query => Err(unknown()),
        (header, query) => Ok(header.or(query).map(ToOwned::to_owned)),
    }
}

/// The number of an event of this session that is still kept.
async fn known(store: &Store, session: SessionId, text: &str) -> Result<i64, ApiError> {
    let (owner, number) = text.rsplit_once('-').ok_or_else(unknown)?;
    if owner.parse() != Ok(session) || number.starts_with(['+', '0']) {
        return Err(unknown());
    }
    let number: i64 = number.parse().map_err(|_| unknown())?;
    if store.has_event(session, number).await? {
        return Ok(number);
    }
    if (1..=store.last_event(session).await?).contains(&number) {
        return Err(ApiError::new(StatusCode::GONE, "event_gone", "this event is no longer kept"));
    }
    Err(unknown())
}

fn unknown() -> ApiError {
    ApiError::new(StatusCode::NOT_FOUND, "event_unknown", "no such event in this session")
}
