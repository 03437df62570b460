//! The command line, converted at once into types.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::key;
use crate::run::{LocalConfig, ModelChoice};
use crate::state::StateFolder;

/// Sessions of coding agents over a sandboxed executor.
#[derive(Debug, Parser)]
#[command(name = "mooring", version)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve the HTTP API.
    Serve(ServeArgs),
}

#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Serve this folder of this machine: sessions work in it, commands may write in it and nowhere else.
    #[arg(long, value_name = "DIR")]
    local: PathBuf,

    /// Where to listen: a loopback address; port 0 takes a free one.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8081", value_parser = loopback)]
    listen: SocketAddr,

    /// Where the state is: a folder outside DIR, for its owner alone [default: $XDG_DATA_HOME/mooring].
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,

    /// Base URL of an OpenAI-compatible API, up to and without /chat/completions.
    #[arg(long, value_name = "URL")]
    model: Option<String>,

    /// The provider's name of the model.
    #[arg(long, value_name = "NAME", default_value = "default", requires = "model")]
    model_name: String,

    /// Read the provider key from this file, which its owner alone may read (0600). Otherwise the variable
    /// MOORING_PROVIDER_KEY is taken, and removed from the environment at once.
    #[arg(long, value_name = "FILE")]
    provider_key_file: Option<PathBuf>,

    /// Read the provider key from standard input, to its end.
    #[arg(long)]
    provider_key_stdin: bool,

    /// A further folder that commands may read. Repeatable.
    #[arg(long, value_name = "DIR")]
    read_only: Vec<PathBuf>,

    /// The executor program [default: mooring-executor beside this program].
    #[arg(long, value_name = "FILE")]
    executor: Option<PathBuf>,
}

impl Args {
    /// The configuration that these arguments describe. Reads the provider key.
    ///
    /// # Errors
    /// When a default cannot be found or the key cannot be read.
    pub fn into_config(self) -> anyhow::Result<LocalConfig> {
        let Command::Serve(serve) = self.command;
        let mut commands_read = vec![serve.local.clone()];
        commands_read.extend(serve.read_only.iter().cloned());
        // Standard input is read even if the file wins: nothing of the key stays in the pipe.
        let from_stdin = serve.provider_key_stdin.then(key::read_stdin).transpose()?;
        let provider_key = match &serve.provider_key_file {
            Some(path) => Some(key::read_file(path, &commands_read)?),
            None => from_stdin,
        };
        let key_file = serve
            .provider_key_file
            .map(std::fs::canonicalize)
            .transpose()
            .context("cannot find the key file")?;
        let state = match serve.state {
            Some(path) => path,
            None => StateFolder::default_path(|name| std::env::var_os(name))?,
        };
        let executor = match serve.executor {
            Some(path) => path,
            None => beside_this_program()?,
        };
        Ok(LocalConfig {
            tree: serve.local,
            listen: serve.listen,
            state,
            model: serve.model.map(|base_url| ModelChoice {
                base_url,
                name: serve.model_name,
                provider_key,
                key_file,
            }),
            read_only: serve.read_only,
            executor,
            variables: std::env::vars_os().collect(),
        })
    }
}

fn loopback(text: &str) -> Result<SocketAddr, String> {
    let address: SocketAddr = text.parse().map_err(|_| "must be ADDRESS:PORT".to_owned())?;
    if address.ip().is_loopback() {
        Ok(address)
    } else {
        Err("must be a loopback address: local mode is not served to other machines".to_owned())
    }
}

fn beside_this_program() -> anyhow::Result<PathBuf> {
    let own = std::env::current_exe()
        .context("cannot find this program; hint: name the executor with --executor")?;
    Ok(own.with_file_name("mooring-executor"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_loopback_address_is_listened_at() {
        for good in ["127.0.0.1:8081", "127.1.2.3:0", "[::1]:8081"] {
            assert!(loopback(good).is_ok(), "{good}");
        }
        for bad in ["0.0.0.0:8081", "[::]:8081", "10.0.0.1:8081", "localhost:8081", "8081", ""] {
            assert!(loopback(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_folder_to_serve_is_required() {
        assert!(Args::try_parse_from(["mooring", "serve"]).is_err());
        assert!(Args::try_parse_from(["mooring", "serve", "--local", "."]).is_ok());
        assert!(Args::try_parse_from(["mooring", "serve", "--local", ".", "--listen", "0.0.0.0:1"]).is_err());
    }
}
