//! Keeping the authority and the harness's certificate in Secrets of the operator's own namespace.

use std::collections::BTreeMap;

use jiff::Timestamp;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{Api, ObjectMeta, Patch, PatchParams, PostParams};
use secrecy::{ExposeSecret as _, SecretString};

use super::{Authority, AuthorityError, Credential, Role};
use crate::FIELD_MANAGER;

/// The Secret with the authority's certificate and key.
pub const CA_SECRET: &str = "mooring-ca";
/// The Secret with the harness's client certificate, key, and the authority's certificate.
pub const HARNESS_SECRET: &str = "mooring-harness-client";

const CERTIFICATE: &str = "tls.crt";
const KEY: &str = "tls.key";
const TRUST: &str = "ca.crt";

/// Why the authority or a certificate could not be kept.
#[derive(Debug, thiserror::Error)]
pub enum KeepError {
    /// The API server refused or did not answer.
    #[error("cannot read or write secret {name}")]
    Api {
        /// Which Secret.
        name: &'static str,
        /// Why.
        #[source]
        source: Box<kube::Error>,
    },
    /// A key is missing or no text. The Secret is left as it is: executors trust what it held.
    #[error("secret {name} has no {key} that is PEM")]
    Incomplete {
        /// Which Secret.
        name: &'static str,
        /// Which key of it.
        key: &'static str,
    },
    /// The authority is gone, and certificates from it are still about: executors trust it, and would not know another one.
    #[error(
        "secret {CA_SECRET} is gone, but {HARNESS_SECRET} was issued by it; restore it, or delete {HARNESS_SECRET} and every \
         executor pod to begin with another authority"
    )]
    Gone,
    /// What it holds cannot be used, or nothing can be issued.
    #[error(transparent)]
    Authority(#[from] AuthorityError),
}

impl KeepError {
    /// Whether it may be gone in a moment: the API server was not reached, was busy, or had a fault of its own.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Api { source, .. } => {
                let code = if let kube::Error::Api(status) = &**source { Some(status.code) } else { None };
                code.is_none_or(|code| matches!(code, 409 | 429 | 500..))
            }
            Self::Incomplete { .. } | Self::Gone | Self::Authority(_) => false,
        }
    }
}

/// Reads the authority, or makes it when there is none. Safe against another operator doing the same: the Secret that was
/// created first counts for both.
///
/// # Errors
/// When the API server refuses, or the Secret holds something else. Nothing is overwritten.
pub async fn load_authority(secrets: &Api<Secret>, now: Timestamp) -> Result<Authority, KeepError> {
    let api = |source| KeepError::Api { name: CA_SECRET, source: Box::new(source) };
    if let Some(kept) = secrets.get_opt(CA_SECRET).await.map_err(api)? {
        return Ok(Authority::read(&credential(CA_SECRET, &kept)?)?);
    }
    let api_harness = |source| KeepError::Api { name: HARNESS_SECRET, source: Box::new(source) };
    if secrets.get_metadata_opt(HARNESS_SECRET).await.map_err(api_harness)?.is_some() {
        return Err(KeepError::Gone);
    }
    let made = Authority::generate(now)?;
    let secret = content(CA_SECRET, &made, &made.certificate);
    let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
    let kept = match secrets.create(&params, &secret).await {
        Ok(created) => created,
        Err(kube::Error::Api(status)) if status.is_already_exists() => {
            secrets.get(CA_SECRET).await.map_err(api)?
        }
        Err(error) => return Err(api(error)),
    };
    Ok(Authority::read(&credential(CA_SECRET, &kept)?)?)
}

/// Makes or renews the harness's client certificate; writes only when the kept one is not fresh.
///
/// # Errors
/// When the API server refuses.
pub async fn keep_harness_client(
    secrets: &Api<Secret>,
    authority: &Authority,
    now: Timestamp,
) -> Result<(), KeepError> {
    let api = |source| KeepError::Api { name: HARNESS_SECRET, source: Box::new(source) };
    let kept = secrets.get_opt(HARNESS_SECRET).await.map_err(api)?;
    if kept.is_some_and(|kept| is_fresh(&kept, authority, Role::Harness, now)) {
        return Ok(());
    }
    let secret = content(HARNESS_SECRET, &authority.issue(Role::Harness, now)?, authority.certificate());
    let params = PatchParams::apply(FIELD_MANAGER).force();
    secrets.patch(HARNESS_SECRET, &params, &Patch::Apply(&secret)).await.map_err(api)?;
    tracing::info!(secret = HARNESS_SECRET, "client certificate issued");
    Ok(())
}

/// Whether a Secret holds a credential that [`Authority::is_fresh`], beside the authority's own certificate.
pub(crate) fn is_fresh(secret: &Secret, authority: &Authority, role: Role<'_>, now: Timestamp) -> bool {
    text(secret, TRUST).as_deref() == Some(authority.certificate())
        && credential("", secret).is_ok_and(|kept| authority.is_fresh(role, &kept, now))
}

/// A Secret's three entries.
pub(crate) fn entries(credential: &Credential, trust: &str) -> BTreeMap<String, ByteString> {
    [(CERTIFICATE, credential.certificate.as_str()), (KEY, credential.key.expose_secret()), (TRUST, trust)]
        .into_iter()
        .map(|(key, text)| (key.to_owned(), ByteString(text.as_bytes().to_vec())))
        .collect()
}

fn content(name: &str, credential: &Credential, trust: &str) -> Secret {
    Secret {
        metadata: ObjectMeta {
            name: Some(name.to_owned()),
            labels: Some(crate::labels::own()),
            ..ObjectMeta::default()
        },
        type_: Some("kubernetes.io/tls".to_owned()),
        data: Some(entries(credential, trust)),
        ..Secret::default()
    }
}

fn text(secret: &Secret, key: &str) -> Option<String> {
    let bytes = &secret.data.as_ref()?.get(key)?.0;
    String::from_utf8(bytes.clone()).ok()
}

fn credential(name: &'static str, secret: &Secret) -> Result<Credential, KeepError> {
    let entry = |key| text(secret, key).ok_or(KeepError::Incomplete { name, key });
    Ok(Credential { certificate: entry(CERTIFICATE)?, key: SecretString::from(entry(KEY)?) })
}
