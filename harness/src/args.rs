//! The command line, converted at once into types.

use std::net::SocketAddr;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::cluster::ClusterConfig;
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
    /// Serve a folder of this machine, with --local, or the Sessions of a cluster.
    Serve(ServeArgs),
}

/// What to serve.
#[derive(Debug)]
pub enum Config {
    /// A folder of this machine.
    Local(LocalConfig),
    /// The Sessions of a cluster.
    Cluster(ClusterConfig),
}

#[derive(Debug, ClapArgs)]
struct ServeArgs {
    /// Serve this folder of this machine: sessions work in it, commands may write in it and nowhere else.
    #[arg(long, value_name = "DIR")]
    local: Option<PathBuf>,

    #[command(flatten)]
    in_a_cluster: ClusterArgs,

    #[command(flatten)]
    on_a_machine: LocalArgs,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "In a cluster")]
struct ClusterArgs {
    /// Where the gateway for files and commands listens, with TLS.
    #[arg(long, value_name = "ADDRESS", env = "MOORING_GATEWAY_LISTEN", default_value = "0.0.0.0:8080")]
    gateway_listen: SocketAddr,

    /// Where the token exchange listens, with TLS: an API that the API server aggregates.
    #[arg(long, value_name = "ADDRESS", env = "MOORING_EXCHANGE_LISTEN", default_value = "0.0.0.0:8443")]
    exchange_listen: SocketAddr,

    /// Where /healthz and /readyz are answered.
    #[arg(long, value_name = "ADDRESS", env = "MOORING_HEALTH_LISTEN", default_value = "0.0.0.0:8082")]
    health_listen: SocketAddr,

    /// A folder with tls.crt, tls.key, ca.crt and token.key.
    #[arg(long, value_name = "DIR", env = "MOORING_TLS", required_unless_present = "local")]
    tls: Option<PathBuf>,

    /// A folder with the certificate that executors know the harness by: tls.crt, tls.key, ca.crt.
    #[arg(long, value_name = "DIR", env = "MOORING_EXECUTOR_CLIENT", required_unless_present = "local")]
    executor_client: Option<PathBuf>,

    /// Environments that are served: `kubernetes`, or none.
    #[arg(
        long,
        value_name = "KIND",
        env = "MOORING_ENVIRONMENTS",
        default_value = "",
        hide_default_value = true,
        action = clap::ArgAction::Set,
        value_parser = kubernetes
    )]
    environments: bool,

    /// How clients reach the gateway: https://HOST:PORT.
    #[arg(long, value_name = "URL", env = "MOORING_GATEWAY_URL", required_unless_present = "local",
        value_parser = https)]
    gateway_url: Option<String>,

    /// The name in the gateway's certificate.
    #[arg(long, value_name = "NAME", env = "MOORING_GATEWAY_NAME", required_unless_present = "local")]
    gateway_name: Option<String>,
}

#[derive(Debug, ClapArgs)]
#[command(next_help_heading = "With --local")]
struct LocalArgs {
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
    pub fn into_config(self) -> anyhow::Result<Config> {
        let Command::Serve(serve) = self.command;
        match serve.local {
            Some(tree) => serve.on_a_machine.into_config(tree).map(Config::Local),
            None => serve.in_a_cluster.into_config().map(Config::Cluster),
        }
    }
}

impl ClusterArgs {
    fn into_config(self) -> anyhow::Result<ClusterConfig> {
        // The command line was refused without them.
        let missing = |name: &str| format!("{name} is missing");
        Ok(ClusterConfig {
            gateway_listen: self.gateway_listen,
            exchange_listen: self.exchange_listen,
            health_listen: self.health_listen,
            tls: self.tls.with_context(|| missing("--tls"))?,
            executor_client: self.executor_client.with_context(|| missing("--executor-client"))?,
            serves_kubernetes: self.environments,
            gateway_url: self.gateway_url.with_context(|| missing("--gateway-url"))?,
            gateway_name: self.gateway_name.with_context(|| missing("--gateway-name"))?,
        })
    }
}

impl LocalArgs {
    fn into_config(self, tree: PathBuf) -> anyhow::Result<LocalConfig> {
        let mut commands_read = vec![tree.clone()];
        commands_read.extend(self.read_only.iter().cloned());
        // Standard input is read even if the file wins: nothing of the key stays in the pipe.
        let from_stdin = self.provider_key_stdin.then(key::read_stdin).transpose()?;
        let provider_key = match &self.provider_key_file {
            Some(path) => Some(key::read_file(path, &commands_read)?),
            None => from_stdin,
        };
        let key_file = self
            .provider_key_file
            .map(std::fs::canonicalize)
            .transpose()
            .context("cannot find the key file")?;
        let state = match self.state {
            Some(path) => path,
            None => StateFolder::default_path(|name| std::env::var_os(name))?,
        };
        let executor = match self.executor {
            Some(path) => path,
            None => beside_this_program()?,
        };
        Ok(LocalConfig {
            tree,
            listen: self.listen,
            state,
            model: self.model.map(|base_url| ModelChoice {
                base_url,
                name: self.model_name,
                provider_key,
                key_file,
            }),
            read_only: self.read_only,
            executor,
            variables: std::env::vars_os().collect(),
        })
    }
}

fn kubernetes(text: &str) -> Result<bool, String> {
    match text {
        "" => Ok(false),
        "kubernetes" => Ok(true),
        _ => Err("must be `kubernetes` or empty".to_owned()),
    }
}

fn https(text: &str) -> Result<String, String> {
    let is_whole = text.parse::<axum::http::Uri>().is_ok_and(|uri| {
        uri.scheme_str() == Some("https") && uri.port().is_some() && matches!(uri.path(), "" | "/")
    });
    if is_whole { Ok(text.to_owned()) } else { Err("must be https://HOST:PORT".to_owned()) }
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
    fn a_folder_or_a_cluster_is_served() {
        assert!(Args::try_parse_from(["mooring", "serve"]).is_err());
        assert!(Args::try_parse_from(["mooring", "serve", "--local", "."]).is_ok());
        let cluster = ["--tls", "t", "--executor-client", "c", "--gateway-name", "n", "--gateway-url"];
        let served = |url: &str| {
            Args::try_parse_from(["mooring", "serve"].iter().chain(&cluster).copied().chain([url]))
        };
        let Ok(Config::Cluster(config)) = served("https://h:8080").expect("good").into_config() else {
            panic!("a cluster")
        };
        assert!(!config.serves_kubernetes, "nothing is served unless it is said");
        for bad in ["http://h:8080", "https://h", "https://h:8080/path", "h:8080", ""] {
            assert!(served(bad).is_err(), "{bad}");
        }
        assert_eq!((kubernetes(""), kubernetes("kubernetes")), (Ok(false), Ok(true)));
        assert!(kubernetes("local").is_err());
        assert!(Args::try_parse_from(["mooring", "serve", "--local", ".", "--listen", "0.0.0.0:1"]).is_err());
    }
}
