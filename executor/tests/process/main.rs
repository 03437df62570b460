//! Tests of the real processes: the serving half and the running half as a parent process starts them, spoken to over
//! the inherited socket.

mod archives;
mod bind;
mod commands;
mod ends;
mod enter;
mod files;
mod fixture;
mod output;
mod roles;
mod rotation;
mod shutdown;
mod sidecar;
mod strangers;
mod volume;
mod wire;
