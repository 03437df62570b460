//! The command line of the two halves.

use std::os::fd::RawFd;

use clap::{Parser, Subcommand};

/// Files and commands of one execution environment.
#[derive(Debug, Parser)]
#[command(name = "mooring-executor", version)]
pub struct Args {
    /// Which half to be.
    #[command(subcommand)]
    pub half: Half,
}

/// The two halves. Neither takes a path, a name or a secret on its command line.
#[derive(Debug, Subcommand)]
pub enum Half {
    /// Serve files and commands over gRPC.
    Serve(ServeArgs),
    /// Run commands for the serving half.
    Run(RunArgs),
}

/// Arguments of `serve`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct ServeArgs {
    /// Descriptor of a connected Unix stream socket to speak gRPC over. The process ends when it closes.
    #[arg(long, value_name = "N")]
    pub grpc_fd: RawFd,
    /// Descriptor of a connected Unix seqpacket socket with the runner at the other end.
    #[arg(long, value_name = "M")]
    pub runner_fd: RawFd,
    /// Serve an environment of kind `local`, the only kind that an inherited socket can carry.
    #[arg(long)]
    pub local: bool,
}

/// Arguments of `run`.
#[derive(Clone, Copy, Debug, clap::Args)]
pub struct RunArgs {
    /// Descriptor of a connected Unix seqpacket socket with the serving half at the other end. The process, and every
    /// command, ends when it closes.
    #[arg(long, value_name = "M")]
    pub link_fd: RawFd,
}
