//! The program against an API server and a gateway of the tests' own, over loopback.

mod exec;
mod files;
mod fixture;
mod pull;
mod push;
mod reaching;
mod session;
