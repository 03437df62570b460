//! The command line, converted at once into a configuration. A flag wins over its variable.

use std::net::SocketAddr;

use clap::Parser;

use crate::run::Config;

/// Prepares an execution environment for each Session of the cluster, and keeps it.
///
/// Reaches the API server as its own pod does, or as the KUBECONFIG says.
#[derive(Debug, Parser)]
#[command(name = "mooring-operator", version)]
pub struct Args {
    /// The namespace that this operator runs in: its certificate authority is kept there, and executors accept calls from
    /// pods of the operator and of the harness there alone.
    #[arg(long, env = "MOORING_NAMESPACE", value_name = "NAME", default_value = "mooring-system", value_parser = namespace)]
    namespace: String,

    /// Where `/healthz` and `/readyz` are answered; port 0 takes a free one.
    #[arg(long, env = "MOORING_HEALTH_LISTEN", value_name = "ADDRESS", default_value = "0.0.0.0:8081")]
    health_listen: SocketAddr,

    /// How many Sessions are worked on at once, 1 to 256.
    #[arg(long, env = "MOORING_CONCURRENCY", value_name = "N", default_value_t = 16, value_parser = clap::value_parser!(u16).range(1..=256))]
    concurrency: u16,
}

impl From<Args> for Config {
    fn from(args: Args) -> Self {
        Self { namespace: args.namespace, health_listen: args.health_listen, concurrency: args.concurrency }
    }
}

/// RFC 1123 label, as the API server demands of a namespace.
fn namespace(text: &str) -> Result<String, String> {
    let is_plain = |letter: u8| letter.is_ascii_lowercase() || letter.is_ascii_digit();
    let bytes = text.as_bytes();
    let ends = bytes.first().copied().is_some_and(is_plain) && bytes.last().copied().is_some_and(is_plain);
    if ends && bytes.len() <= 63 && bytes.iter().all(|letter| is_plain(*letter) || *letter == b'-') {
        Ok(text.to_owned())
    } else {
        Err("must be 1 to 63 lower-case letters, digits and '-', a letter or digit at both ends".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_well_formed() {
        use clap::CommandFactory;
        Args::command().debug_assert();
    }

    #[test]
    fn a_namespace_is_one_label() {
        for good in ["a", "mooring-system", "0", &"x".repeat(63)] {
            assert!(namespace(good).is_ok(), "{good}");
        }
        for bad in ["", "-a", "a-", "a.b", "A", "ä", &"x".repeat(64)] {
            assert!(namespace(bad).is_err(), "{bad}");
        }
    }
}
