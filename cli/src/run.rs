//! From the words of a command line to an exit code.

use std::ffi::OsString;
use std::io::Write as _;
use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::{Access, Args, Command, SessionCommand};
use crate::cluster::Cluster;
use crate::error::Error;
use crate::exit::OWN_FAILURE;
use crate::gateway::Gateway;
use crate::progress::tell;
use crate::{exec, files, output, pull, push, session};

/// One provider for all TLS of the process.
pub fn install_crypto() {
    // Fails when there is one already, which then is the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
}

/// Does what the words say, and gives the code to end with.
pub fn run(words: impl IntoIterator<Item = OsString>) -> ExitCode {
    let args = match Args::try_parse_from(words) {
        Ok(args) => args,
        Err(error) => {
            // Nothing can be done about an output that is closed.
            let _ = error.print();
            return ExitCode::from(if error.use_stderr() { OWN_FAILURE } else { 0 });
        }
    };
    let runtime = match tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return fail(&Error::local("start threads", error)),
    };
    let code = match runtime.block_on(dispatch(args)) {
        Ok(code) => ExitCode::from(code),
        Err(error) => fail(&error),
    };
    // Standard input may be read by a thread that only its end would wake.
    runtime.shutdown_background();
    code
}

fn fail(error: &Error) -> ExitCode {
    tell(&format!("error: {}", error.line()));
    if let Some(hint) = error.hint() {
        tell(&format!("hint: {hint}"));
    }
    ExitCode::from(OWN_FAILURE)
}

async fn dispatch(args: Args) -> Result<u8, Error> {
    let access = args.access;
    match args.command {
        Command::Completion { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Args::command(), "kubectl-mooring", &mut script);
            std::io::stdout().lock().write_all(&script).map_err(Error::Output)?;
        }
        Command::Session(command) => return about_session(access, command).await,
    }
    Ok(0)
}

async fn about_session(access: Access, command: SessionCommand) -> Result<u8, Error> {
    match command {
        SessionCommand::Create(create) => session::create(&Cluster::open(&access).await?, create).await?,
        SessionCommand::List { all_namespaces, output } => {
            session::list(&Cluster::open(&access).await?, all_namespaces, output).await?;
        }
        SessionCommand::Delete { name } => session::delete(&Cluster::open(&access).await?, &name).await?,
        SessionCommand::Suspend { name } => {
            session::suspend(&Cluster::open(&access).await?, &name, true).await?;
            output::line(&format!("session.mooring.dev/{name} suspended"))?;
        }
        SessionCommand::Resume { name, wait, wait_timeout } => {
            let cluster = Cluster::open(&access).await?;
            session::suspend(&cluster, &name, false).await?;
            if wait {
                session::await_ready(&cluster, &name, wait_timeout).await?;
            }
            output::line(&format!("session.mooring.dev/{name} resumed"))?;
        }
        SessionCommand::Push(plan) if plan.dry_run => push::preview(&plan).await?,
        SessionCommand::Push(plan) => push::push(async || open(&access, &plan.name).await, &plan).await?,
        SessionCommand::Pull(plan) => pull::pull(&open(&access, &plan.name).await?, &plan).await?,
        SessionCommand::Exec(plan) => return exec::exec(access, plan).await,
        SessionCommand::Files(command) => {
            files::files(&open(&access, command.session()).await?, command).await?;
        }
    }
    Ok(0)
}

async fn open(access: &Access, name: &str) -> Result<Gateway, Error> {
    Gateway::open(Cluster::open(access).await?, access.gateway.clone(), name).await
}
