//! Serves a scripted model and prints its address as one line of JSON: `{"address":"127.0.0.1:4711","url":"http://…/v1"}`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context as _;
use clap::Parser;
use mooring_e2e::model::RunningModel;
use mooring_e2e::script::Script;

/// A model that answers as a YAML script says; the format is in the documentation of `mooring_e2e::script`.
#[derive(Parser)]
#[command(version)]
struct Args {
    /// The script.
    script: PathBuf,
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// A variable of the script.
    #[arg(long = "set", value_name = "NAME=VALUE", value_parser = variable)]
    set: Vec<(String, String)>,
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    let args = Args::parse();
    let read = Script::read(&args.script).with_context(|| format!("script {}", args.script.display()))?;
    let script = args.set.into_iter().fold(read, |script, (name, value)| script.with(&name, value));
    let model = RunningModel::start_at(script, args.listen).await.context("cannot listen")?;
    let line = serde_json::json!({"address": model.address(), "url": model.url()});
    writeln!(std::io::stdout(), "{line}")?;
    model.wait().await;
    Ok(())
}

fn variable(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("expected NAME=VALUE")?;
    Ok((name.to_owned(), value.to_owned()))
}
