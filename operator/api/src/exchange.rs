//! The one call of `tokens.mooring.dev`: an identity that the API server vouches for becomes a token for the harness.
//!
//! Served by the harness as an aggregated API, not by a definition: an exchange is created and answered, never kept.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use kube_derive::CustomResource;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The API group of [`Exchange`].
pub const TOKENS_GROUP: &str = "tokens.mooring.dev";

/// A request, which says nothing: who asks is what the API server says.
#[derive(CustomResource, JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[kube(
    crates(kube_core = "::kube_core"),
    group = "tokens.mooring.dev",
    version = "v1alpha1",
    kind = "Exchange",
    plural = "exchanges",
    singular = "exchange",
    status = "ExchangeStatus",
    derive = "PartialEq"
)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ExchangeSpec {}

/// The answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExchangeStatus {
    /// Speaks for the requester at the harness, and at nothing else. A secret.
    pub token: String,
    /// When it ends, at most 15 minutes from now.
    pub expires_at: Time,
    /// Whom it speaks for.
    pub user: String,
    /// Where files and commands are reached.
    pub gateway: GatewayEndpoint,
}

/// How the gateway is reached.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct GatewayEndpoint {
    /// `https://HOST:PORT`, as the platform team made it reachable.
    pub url: String,
    /// The name in its certificate, which holds whatever the address is.
    pub server_name: String,
    /// Who signed that certificate, PEM.
    pub certificate_authority: String,
}
