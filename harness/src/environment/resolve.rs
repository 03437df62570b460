//! From a stored reference to an environment, by exact comparison.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::Mutex;

use super::executor::{Launch, StartError};
use super::folder::Folder;
use super::given::{Variable, given};
use super::kubernetes::LinkError;
use super::local::{Live, LocalEnvironment};
use crate::session::{EnvironmentKind, EnvironmentRef, SessionId};
use crate::store::{Store, StoreError};

/// What local environments are made from.
#[derive(Debug, Clone)]
pub struct LocalSettings {
    /// The executor program.
    pub program: PathBuf,
    /// The folder named by the person; workspaces are it or lie in it.
    pub root: PathBuf,
    /// The product's own folder, mode 0700, outside the root.
    pub state: PathBuf,
    /// Further folders that commands may read.
    pub read_only: Vec<PathBuf>,
    /// What commands start from, before anything is taken out.
    pub variables: Vec<Variable>,
    /// Names never passed on: those under which a provider's key is given.
    pub withheld: Vec<String>,
}

/// Why local environments cannot be offered at all.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// The folder cannot be looked at.
    #[error("cannot use the folder {path}")]
    Folder {
        /// As it was given.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The state folder is in the root, or holds it: commands could then reach the product's own state.
    #[error(
        "the state folder {state} and the workspace {root} hold one another; choose another with --state"
    )]
    Overlap {
        /// The state folder.
        state: PathBuf,
        /// The workspace root.
        root: PathBuf,
    },
}

/// Why an environment cannot be used now.
#[derive(Debug, Clone, thiserror::Error)]
pub enum NotReady {
    /// Its executor cannot be started.
    #[error(transparent)]
    Start(Arc<StartError>),
    /// The operator says so.
    #[error("{reason}: {message}")]
    Standing {
        /// Of the Session's condition Ready.
        reason: String,
        /// Of the same.
        message: String,
    },
    /// Its executor is bound and not reached.
    #[error(transparent)]
    Unreachable(Arc<LinkError>),
}

/// Why a reference gives no environment.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Nothing here serves environments of this kind.
    #[error("no resolver for environments of kind {kind}")]
    NoResolver {
        /// The kind asked for.
        kind: EnvironmentKind,
    },
    /// No such environment, or the session's snapshot names none.
    #[error("the environment is not known")]
    Unknown,
    /// Something else is where the environment was: another folder, another root, another revision.
    #[error("the environment is not the one this session was made with")]
    Mismatch,
    /// The environment is known and cannot be used now.
    #[error("the environment is not ready")]
    NotReady {
        /// Why, where it is known.
        #[source]
        source: Option<NotReady>,
    },
    /// The workspace is gone.
    #[error("the workspace is gone")]
    EmptyWorkspace,
    /// A workspace for a new session that is not a folder inside the root.
    #[error("the workspace is not a folder inside the served one")]
    NotInside,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl ResolveError {
    /// The stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoResolver { .. } => "no_resolver",
            Self::Unknown => "environment_unknown",
            Self::Mismatch => "environment_mismatch",
            Self::NotReady { .. } => "environment_not_ready",
            Self::EmptyWorkspace => "empty_workspace",
            Self::NotInside => "workspace_not_inside",
            Self::Store(error) => error.code(),
        }
    }

    /// Whether the same call may succeed later without any change.
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::NotReady { .. } => true,
            Self::Store(error) => error.is_retryable(),
            Self::NoResolver { .. }
            | Self::Unknown
            | Self::Mismatch
            | Self::EmptyWorkspace
            | Self::NotInside => false,
        }
    }
}

/// What a session's tools act in.
#[derive(Clone)]
pub enum Environment {
    /// Nothing: a session without files.
    None,
    /// A folder of this machine.
    Local(Arc<LocalEnvironment>),
}

/// Finds environments again.
pub struct EnvironmentResolver {
    store: Store,
    local: Option<LocalSettings>,
    open: Mutex<HashMap<EnvironmentRef, Arc<LocalEnvironment>>>,
    #[cfg(test)]
    fake: Option<super::fake::FakeExecutor>,
}

impl EnvironmentResolver {
    /// A resolver for `none`, and for `local` when settings for it are given. Their paths are made canonical here.
    ///
    /// # Errors
    /// [`SettingsError`].
    pub fn new(store: Store, local: Option<LocalSettings>) -> Result<Self, SettingsError> {
        let local = local.map(checked).transpose()?;
        Ok(Self {
            store,
            local,
            open: Mutex::default(),
            #[cfg(test)]
            fake: None,
        })
    }

    /// The same, with a fake in place of the program.
    #[cfg(test)]
    pub(crate) fn with_fake(mut self, fake: super::fake::FakeExecutor) -> Self {
        self.fake = Some(fake);
        self
    }

    /// The reference for a new session's workspace: the root, or the folder `workspace` inside it (relative to the root,
    /// or absolute and inside it; links are followed before it is looked where they lead).
    ///
    /// # Errors
    /// [`ResolveError::NoResolver`] without local settings, [`ResolveError::NotInside`], [`ResolveError::EmptyWorkspace`]
    /// when the root itself is gone, [`ResolveError::Store`].
    pub async fn bind_local(&self, workspace: Option<&str>) -> Result<EnvironmentRef, ResolveError> {
        let local = self.local.as_ref().ok_or(ResolveError::NoResolver { kind: EnvironmentKind::Local })?;
        let folder = match workspace {
            None => Folder::look(&local.root).map_err(|_| ResolveError::EmptyWorkspace)?,
            Some(name) => Folder::look(&local.root.join(name)).map_err(|_| ResolveError::NotInside)?,
        };
        if !folder.path.starts_with(&local.root) {
            return Err(ResolveError::NotInside);
        }
        let root = folder.path.to_str().ok_or(ResolveError::NotInside)?;
        Ok(self.store.bind_local(root, folder.filesystem, folder.inode).await?)
    }

    /// The environment that `reference` names, for the session `session`. Starts no executor.
    ///
    /// # Errors
    /// [`ResolveError::Unknown`] for no reference, for a folder that was never bound and for another session's `none`;
    /// [`ResolveError::Mismatch`] when any part differs; [`ResolveError::EmptyWorkspace`] when nothing is there;
    /// [`ResolveError::NoResolver`], [`ResolveError::Store`].
    pub async fn resolve(
        &self,
        session: SessionId,
        reference: Option<&EnvironmentRef>,
    ) -> Result<Environment, ResolveError> {
        let reference = reference.ok_or(ResolveError::Unknown)?;
        match reference.kind {
            EnvironmentKind::None if reference.id != session.to_string() => Err(ResolveError::Unknown),
            EnvironmentKind::None if *reference != EnvironmentRef::none(session) => {
                Err(ResolveError::Mismatch)
            }
            EnvironmentKind::None => Ok(Environment::None),
            EnvironmentKind::Kubernetes => Err(ResolveError::NoResolver { kind: reference.kind }),
            EnvironmentKind::Local => self.resolve_local(reference).await.map(Environment::Local),
        }
    }

    /// Ends all executors.
    pub async fn close(&self) {
        let open: Vec<_> = self.open.lock().await.drain().map(|(_, environment)| environment).collect();
        futures::future::join_all(open.iter().map(|environment| environment.close())).await;
    }

    #[cfg_attr(not(test), expect(clippy::unused_self, reason = "tests put a fake in its place"))]
    fn launch(&self, local: &LocalSettings) -> Launch {
        #[cfg(test)]
        if let Some(fake) = &self.fake {
            return Launch::Within(fake.clone());
        }
        Launch::Program(local.program.clone())
    }

    async fn resolve_local(&self, reference: &EnvironmentRef) -> Result<Arc<LocalEnvironment>, ResolveError> {
        let local = self.local.as_ref().ok_or(ResolveError::NoResolver { kind: reference.kind })?;
        let root = Path::new(&reference.id);
        if !root.starts_with(&local.root) {
            return Err(ResolveError::Mismatch);
        }
        let binding = self.store.local_binding(&reference.id).await?.ok_or(ResolveError::Unknown)?;
        if binding.revision != reference.revision {
            return Err(ResolveError::Mismatch);
        }
        let folder = Folder { path: root.to_owned(), filesystem: binding.filesystem, inode: binding.inode };
        compare_folder(&folder)?;
        let mut open = self.open.lock().await;
        let environment = open.entry(reference.clone()).or_insert_with(|| {
            let given = given(
                local.variables.iter().cloned(),
                &local.withheld,
                &local.read_only,
                &[local.state.clone(), local.root.clone()],
            );
            Arc::new(LocalEnvironment {
                reference: reference.clone(),
                folder,
                launch: self.launch(local),
                state: local.state.join("environments").join(&reference.revision),
                given,
                store: self.store.clone(),
                live: Mutex::new(Live::Idle),
            })
        });
        Ok(Arc::clone(environment))
    }
}

/// Whether the folder is there and still the same one.
pub(super) fn compare_folder(bound: &Folder) -> Result<(), ResolveError> {
    match Folder::look(&bound.path) {
        Ok(found) if found == *bound => Ok(()),
        Ok(_) => Err(ResolveError::Mismatch),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Err(ResolveError::EmptyWorkspace),
        // A file, a loop of links, a part of the path that may not be entered: something else is there.
        Err(_) => Err(ResolveError::Mismatch),
    }
}

fn checked(settings: LocalSettings) -> Result<LocalSettings, SettingsError> {
    let look = |path: &Path| {
        Folder::look(path)
            .map(|folder| folder.path)
            .map_err(|source| SettingsError::Folder { path: path.to_owned(), source })
    };
    let (root, state) = (look(&settings.root)?, look(&settings.state)?);
    if root.starts_with(&state) || state.starts_with(&root) {
        return Err(SettingsError::Overlap { state, root });
    }
    Ok(LocalSettings { root, state, ..settings })
}

#[cfg(test)]
mod tests;
