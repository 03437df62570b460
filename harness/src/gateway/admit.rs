//! From a call to the environment it is for, or a refusal.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use kube::ResourceExt as _;
use mooring_operator_api::Session;
use mooring_proto::gateway::{AUTHORIZATION, SESSION};
use mooring_proto::v1::{Actor, Person, RequestContext, actor};
use tonic::Status;
use tonic::metadata::MetadataMap;
use tonic::transport::Channel;

use super::{Parts, refuse};
use crate::caller::{Caller, CallerError};
use crate::environment::ResolveError;
use crate::environment::kubernetes::{SessionName, known, standing};
use crate::environment::wire;
use crate::session::EnvironmentKind;

/// How often the caller of a call that is open is looked at again.
const AGAIN: Duration = Duration::from_mins(1);
const BEARER: &str = "Bearer ";

/// Admits calls.
pub(super) struct Gate {
    parts: Parts,
}

/// A call that was admitted.
pub(super) struct Admitted {
    /// To the executor of its environment.
    pub(super) channel: Channel,
    /// What the executor is told.
    pub(super) context: RequestContext,
}

impl Gate {
    pub(super) fn new(parts: Parts) -> Self {
        Self { parts }
    }

    /// Admits one call, whose message says `said`, and completes that.
    ///
    /// # Errors
    /// Refusals of `refuse`, the same for a session that is unknown and for a foreign one.
    pub(super) async fn admit(
        &self,
        metadata: &MetadataMap,
        said: Option<RequestContext>,
    ) -> Result<Admitted, Status> {
        let caller = self.caller(metadata).await?;
        let name = session_name(metadata)?;
        let Some(resolver) = &self.parts.resolver else {
            return Err(refuse::of_environment(&ResolveError::NoResolver {
                kind: EnvironmentKind::Kubernetes,
            }));
        };
        // While nothing is known, nothing is unknown.
        if resolver.listed().now_or_never().is_none() {
            return Err(refuse::not_ready("Starting", "the harness has not seen all Sessions yet"));
        }
        let session = resolver.find(&name, &caller).map_err(|error| refuse::of_environment(&error))?;
        let status = session.status.clone().unwrap_or_default();
        let Some(reference) = status.environment.as_ref().map(known) else {
            let source = Some(standing(&status));
            return Err(refuse::of_environment(&ResolveError::NotReady { source }));
        };
        let said = said.unwrap_or_default();
        // One that is named is compared before anything is asked of it.
        if said.environment.as_ref().is_some_and(|named| *named != wire(&reference)) {
            return Err(refuse::of_environment(&ResolveError::Mismatch));
        }
        if reference.kind == EnvironmentKind::None {
            return Err(refuse::without_files());
        }
        let actor = person(said.actor, &caller)?;
        self.touch(&session);
        let found = resolver.resolve(&reference).await.map_err(|error| refuse::of_environment(&error))?;
        let context = RequestContext {
            environment: Some(wire(&reference)),
            epoch: if said.epoch == 0 { found.epoch } else { said.epoch },
            actor: Some(actor),
            ..said
        };
        Ok(Admitted { channel: found.channel, context })
    }

    /// Returns, with the reason, once the caller of an open call is not admitted any more. An API server that is away ends
    /// nothing.
    pub(super) fn until_dismissed(self: Arc<Self>, token: String) -> BoxFuture<'static, Status> {
        let mut period = tokio::time::interval_at(tokio::time::Instant::now() + AGAIN, AGAIN);
        Box::pin(async move {
            loop {
                period.tick().await;
                if let Err(error @ CallerError::Unauthenticated) =
                    self.parts.callers.identify(&token, Timestamp::now()).await
                {
                    return refuse::of_caller(&error);
                }
            }
        })
    }

    async fn caller(&self, metadata: &MetadataMap) -> Result<Caller, Status> {
        let token = token(metadata)?;
        self.parts.callers.identify(token, Timestamp::now()).await.map_err(|error| {
            if matches!(error, CallerError::Unauthenticated) {
                tracing::info!("a call with a token that is not valid");
            }
            refuse::of_caller(&error)
        })
    }

    fn touch(&self, session: &Session) {
        let last =
            session.status.as_ref().and_then(|status| status.last_activity.as_ref()).map(|time| time.0);
        self.parts.activity.touch(
            &session.namespace().unwrap_or_default(),
            &session.name_any(),
            &session.uid().unwrap_or_default(),
            last,
        );
    }
}

/// The bearer token of a call.
pub(super) fn token(metadata: &MetadataMap) -> Result<&str, Status> {
    let text = metadata.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    text.and_then(|text| text.strip_prefix(BEARER))
        .ok_or_else(|| refuse::unauthenticated("a call carries `authorization: Bearer` and a token"))
}

fn session_name(metadata: &MetadataMap) -> Result<SessionName, Status> {
    let text = metadata.get(SESSION).and_then(|value| value.to_str().ok());
    text.and_then(SessionName::parse)
        .ok_or_else(|| refuse::invalid(format!("a call carries `{SESSION}: namespace/name`")))
}

/// The actor is the person of the token. Leaving it out is the custom; naming another one is refused, not corrected.
fn person(said: Option<Actor>, caller: &Caller) -> Result<Actor, Status> {
    let own = Actor { actor: Some(actor::Actor::Person(Person { name: caller.user.to_string() })) };
    match said {
        Some(said) if said.actor.is_some() && said != own => {
            Err(refuse::invalid("the actor of a call is the person of its token"))
        }
        Some(_) | None => Ok(own),
    }
}

#[cfg(test)]
mod tests {
    use mooring_operator_api::UserName;
    use mooring_proto::v1::Lease;
    use tonic::metadata::MetadataValue;

    use super::*;

    fn ana() -> Caller {
        Caller { user: UserName::from("ana") }
    }

    #[test]
    fn the_actor_is_the_person_of_the_token() {
        let of = |actor| Some(Actor { actor: Some(actor) });
        let named = |name: &str| of(actor::Actor::Person(Person { name: name.to_owned() }));
        let own = named("ana").expect("an actor");
        for said in [None, Some(Actor { actor: None }), named("ana")] {
            assert_eq!(person(said, &ana()).expect("admitted"), own);
        }
        let lease = Lease { session_id: "a".to_owned(), lease_epoch: 9 };
        for said in [named("bo"), named(""), of(actor::Actor::Lease(lease))] {
            assert!(person(said, &ana()).is_err());
        }
    }

    #[test]
    fn a_call_names_its_session_and_carries_a_token() {
        let with = |name: &'static str, value: &str| {
            let mut metadata = MetadataMap::new();
            metadata.insert(name, MetadataValue::try_from(value).expect("a value"));
            metadata
        };
        assert_eq!(token(&with(AUTHORIZATION, "Bearer abc")).expect("a token"), "abc");
        for bad in ["", "abc", "bearer abc", "Basic abc"] {
            assert!(token(&with(AUTHORIZATION, bad)).is_err(), "{bad}");
        }
        assert!(session_name(&with(SESSION, "agents/first")).is_ok());
        for bad in
            ["", "first", "agents/", "/first", "a/b/c", "agents/First", "agents/..%2f", "agents/fi rst"]
        {
            assert!(session_name(&with(SESSION, bad)).is_err(), "{bad}");
        }
        assert!(session_name(&MetadataMap::new()).is_err());
    }
}
