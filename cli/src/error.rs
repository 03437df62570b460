//! Why a call ended without what was asked for, and what a person can do about it.

use std::io;
use std::path::PathBuf;

use mooring_proto::v1::ErrorCode;
use tonic::Status;

use crate::refusal::{self, Refusal};

/// Why a call ended without what was asked for.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// The command line.
    #[error("{0}")]
    Usage(String),
    /// The kubeconfig is missing, broken, or has no such context.
    #[error("cannot use the kubeconfig")]
    Kubeconfig(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The API server was not reached.
    #[error("cannot {what}")]
    Cluster {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        source: Box<kube::Error>,
    },
    /// The API server answered, and not with what was asked for.
    #[error("cannot {what}: {message}")]
    ApiServer {
        /// What was tried.
        what: String,
        /// Its words.
        message: String,
        /// HTTP status code.
        code: u16,
    },
    /// `tokens.mooring.dev` is not served.
    #[error("this cluster gives no tokens for the gateway: {0}")]
    NoGateway(String),
    /// `tokens.mooring.dev` is served by nobody at the moment.
    #[error("the harness does not answer: {0}")]
    Away(String),
    /// What the gateway is reached by makes no sense.
    #[error("the gateway cannot be used: {0}")]
    Gateway(String),
    /// There is no way to the gateway.
    #[error("cannot reach the gateway at {url}: {cause}")]
    Unreachable {
        /// Its address.
        url: String,
        /// The deepest cause.
        cause: String,
    },
    /// The gateway or the executor refused the call.
    #[error("{0}")]
    Refused(Refusal),
    /// The connection broke, or somebody in between answered.
    #[error("the connection to the gateway broke: {0}")]
    Broken(String),
    /// What came was not what its end says.
    #[error("{0} did not arrive as it was sent")]
    Damaged(&'static str),
    /// A person ended it.
    #[error("interrupted: nothing was changed")]
    Interrupted,
    /// This machine refused something.
    #[error("cannot {what}")]
    Local {
        /// What was tried.
        what: String,
        /// Why it failed.
        #[source]
        source: io::Error,
    },
    /// Standard output is closed or full.
    #[error("cannot write to standard output")]
    Output(#[source] io::Error),
    /// An archive that no workspace should give.
    #[error("the archive holds {entry}, which {why}: nothing was changed")]
    Hostile {
        /// The entry's name.
        entry: String,
        /// What is wrong with it.
        why: &'static str,
    },
    /// Bytes that are no archive.
    #[error("what came is no archive: {0}")]
    NoArchive(&'static str),
    /// Files are there already.
    #[error("{count} of the files are there already, such as {path}: nothing was changed", path = path.display())]
    Overwrites {
        /// How many.
        count: u64,
        /// The first one.
        path: PathBuf,
    },
    /// A file where the archive has a folder, or the other way round, or a link where it has a folder.
    #[error("{path} is there and is something else: nothing was changed", path = path.display())]
    OtherKind {
        /// Where.
        path: PathBuf,
    },
    /// A Session did not become ready.
    #[error("{name} is not ready: {reason}: {message}")]
    NotReady {
        /// The Session.
        name: String,
        /// The reason of its condition Ready.
        reason: String,
        /// The message of that condition.
        message: String,
    },
}

impl Error {
    /// What was tried at the API server, and what came of it.
    pub(crate) fn cluster(what: impl Into<String>, error: kube::Error) -> Self {
        let what = what.into();
        if let kube::Error::Api(status) = error {
            return Self::ApiServer { what, message: status.message.clone(), code: status.code };
        }
        Self::Cluster { what, source: Box::new(error) }
    }

    /// What was tried on this machine.
    pub(crate) fn local(what: impl Into<String>, source: io::Error) -> Self {
        Self::Local { what: what.into(), source }
    }

    /// The error's chain in one line.
    pub(crate) fn line(&self) -> String {
        let mut line = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let said = error.to_string();
            // Some errors repeat their cause in their own words.
            if !line.contains(&said) {
                line = format!("{line}: {said}");
            }
            cause = error.source();
        }
        line
    }

    /// What a person can do about it.
    pub(crate) fn hint(&self) -> Option<String> {
        let hint = match self {
            Self::Usage(_) => "see --help",
            Self::Kubeconfig(_) => {
                "kubectl config view shows what there is; --kubeconfig and --context choose"
            }
            Self::Cluster { .. } => "kubectl cluster-info shows whether the API server can be reached",
            Self::ApiServer { code: 401, .. } => "the API server does not know your credential: renew it",
            Self::ApiServer { code: 403, message, .. } if message.contains("belongs to") => {
                "it is another person's: they change or end it, or whoever administers the namespace"
            }
            Self::ApiServer { code: 403, message, .. } if message.contains("exchanges") => {
                "ask for the role mooring-caller, bound in the whole cluster"
            }
            Self::ApiServer { code: 403, .. } => "ask for the role mooring-person in this namespace",
            Self::ApiServer { code: 404, .. } => "kubectl mooring session list shows what there is",
            Self::Away(_) => "the harness is being started or has failed: try again in a moment",
            Self::NoGateway(_) => "ask the platform team whether Mooring and its harness are installed",
            Self::Gateway(_) => "name another address of the gateway with --gateway or MOORING_GATEWAY",
            Self::Unreachable { .. } => {
                "--gateway or MOORING_GATEWAY names a way to it; kubectl port-forward to its Service makes one"
            }
            Self::Refused(refusal) => return refusal.hint(),
            Self::Broken(_) | Self::Damaged(_) => "try again",
            Self::Overwrites { .. } => "--force replaces them; other files stay as they are",
            Self::OtherKind { .. } => "move it away, or pull into another folder",
            Self::Hostile { .. } | Self::NoArchive(_) => {
                "somebody tampered with the executor or the connection: tell the platform team"
            }
            Self::NotReady { reason, .. } => return refusal::remedy(reason).map(str::to_owned),
            Self::ApiServer { .. } | Self::Local { .. } | Self::Output(_) | Self::Interrupted => {
                return None;
            }
        };
        Some(hint.to_owned())
    }

    /// The code of a refusal, none for anything else.
    pub(crate) fn code(&self) -> Option<ErrorCode> {
        if let Self::Refused(refusal) = self { Some(refusal.code) } else { None }
    }
}

impl From<Status> for Error {
    fn from(status: Status) -> Self {
        refusal::read(&status)
    }
}
