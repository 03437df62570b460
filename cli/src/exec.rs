//! One command, from its start to its true end.
//!
//! ```text
//!  start ──▶ follow ──▶ exit::of          the command, its output by offset, its end
//!    │          ▲
//!    │          └── again, after whatever broke
//!    ├──▶ input                           standard input, when it is asked for
//!    └──▶ interrupt                       the first signal cancels, the second leaves
//! ```
//!
//! A start is repeated only where it cannot start twice: under the same operation id, which an executor keeps as long as it
//! lives, and under the epoch that the Session had before, which no other executor accepts.

mod follow;
mod input;
mod interrupt;
mod line;
mod start;

use std::os::unix::ffi::OsStrExt as _;
use std::sync::Arc;

use mooring_proto::v1::{ArgumentVector, EnvironmentVariable, StartRequest, start_request::Program};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::args::{Access, Exec};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::exit::{self, Outcome};
use crate::files::workspace_path;
use crate::gateway::{Gateway, effect};
use crate::progress::tell;
use follow::Ended;
use interrupt::Signals;
use start::Started;

/// Runs a command and gives the code to end with.
///
/// # Errors
/// Whatever is not the command's own end.
pub(crate) async fn exec(access: Access, plan: Exec) -> Result<u8, Error> {
    let mut signals = Signals::listen()?;
    let request = request(&plan)?;
    let cluster = Cluster::open(&access).await?;
    let opening = async {
        let gateway = Gateway::open(cluster.clone(), access.gateway.clone(), &plan.name);
        tokio::join!(gateway, cluster.epoch(&plan.name))
    };
    // Nothing was asked for yet, so the first signal leaves.
    let (gateway, epoch) = tokio::select! {
        opened = opening => opened,
        signal = signals.next() => return Ok(exit::SIGNALLED + signal),
    };
    let gateway = Arc::new(gateway?);
    let outcome = run(gateway, &cluster, &plan, request, epoch, signals).await?;
    if let Some(told) = &outcome.told {
        tell(&format!("error: {told}"));
    }
    if let Some(hint) = outcome.hint {
        tell(&format!("hint: {hint}"));
    }
    Ok(outcome.code)
}

async fn run(
    gateway: Arc<Gateway>,
    cluster: &Cluster,
    plan: &Exec,
    request: StartRequest,
    epoch: Option<u64>,
    signals: Signals,
) -> Result<Outcome, Error> {
    // What is known of the command, for those that act on it beside.
    let (publish, command) = watch::channel(None);
    let (cancel, cancelled) = watch::channel(None);
    let left = interrupt::obey(signals, Arc::clone(&gateway), command.clone(), cancel);
    let mut beside = JoinSet::new();
    let work = async {
        let started = match start::start(&gateway, cluster, &plan.name, request, epoch).await? {
            Started::Command(command) => command,
            Started::Lost => return Ok(Outcome::lost("executor")),
        };
        publish.send_replace(Some(started.clone()));
        if plan.stdin {
            beside.spawn(input::forward(Arc::clone(&gateway), started.clone()));
        }
        let ended = follow::follow(&gateway, &started).await?;
        let own_signal = *cancelled.borrow();
        Ok(match ended {
            Ended::End { end, lost } => exit::of(end.end.as_ref(), own_signal).without(lost),
            Ended::Lost => Outcome::lost("executor"),
            Ended::NobodyReads => {
                interrupt::cancel(&gateway, &started).await;
                Outcome { code: exit::SIGNALLED + exit::BROKEN_PIPE, told: None, hint: None }
            }
        })
    };
    let outcome = tokio::select! {
        outcome = work => outcome,
        signal = left => Ok(Outcome {
            code: exit::SIGNALLED + signal,
            told: Some("left before the command's end was known: it may still run".to_owned()),
            hint: None,
        }),
    };
    beside.shutdown().await;
    outcome
}

fn request(plan: &Exec) -> Result<StartRequest, Error> {
    let program = match &plan.shell {
        Some(text) => Program::ShellText(text.as_bytes().to_vec().into()),
        None => Program::Argv(ArgumentVector {
            arguments: plan.argv.iter().map(|word| word.as_bytes().to_vec().into()).collect(),
        }),
    };
    let mut env = Vec::new();
    for variable in &plan.env {
        let bytes = variable.as_bytes();
        let equals = bytes.iter().position(|byte| *byte == b'=').filter(|at| *at > 0).ok_or_else(|| {
            Error::Usage(format!("--env is NAME=VALUE, not {}", variable.to_string_lossy()))
        })?;
        let (name, value) = (bytes[..equals].to_vec().into(), bytes[equals + 1..].to_vec().into());
        env.push(EnvironmentVariable { name, value });
    }
    Ok(StartRequest {
        context: Some(effect()),
        program: Some(program),
        cwd: workspace_path(&plan.cwd)?,
        env,
        timeout_millis: plan.timeout.map_or(0, |limit| i64::try_from(limit.as_millis()).unwrap_or(i64::MAX)),
        stdin: plan.stdin,
        ..StartRequest::default()
    })
}
