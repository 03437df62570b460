//! The product on a real Kubernetes: one sentence for each test. Needs a cluster: `./taskw test`, or `./taskw cluster:up`.
//!
//! ```text
//!  stage     a namespace of the test's own, removed at its end; alone for what disturbs everybody
//!  cast      people, a person's account and our own accounts, each with a credential of its own
//!  turn      one Session with this repository in it, which the tests of `repository` and `loss` use in turn
//!  absence   what has nothing beside it; in the alphabet, and so in time, before everything that would wait for it
//! ```

#[path = "cluster/absence.rs"]
mod absence;
#[path = "cluster/admission.rs"]
mod admission;
#[path = "cluster/case.rs"]
mod case;
#[path = "cluster/cast.rs"]
mod cast;
#[path = "cluster/chart.rs"]
mod chart;
#[path = "cluster/class.rs"]
mod class;
#[path = "cluster/client.rs"]
mod client;
#[path = "cluster/command.rs"]
mod command;
#[path = "cluster/condition.rs"]
mod condition;
#[path = "cluster/gateway.rs"]
mod gateway;
#[path = "cluster/lifecycle.rs"]
mod lifecycle;
#[path = "cluster/loss.rs"]
mod loss;
#[path = "cluster/meddling.rs"]
mod meddling;
#[path = "cluster/name.rs"]
mod name;
#[path = "cluster/power.rs"]
mod power;
#[path = "cluster/reach.rs"]
mod reach;
#[path = "cluster/reaching_in.rs"]
mod reaching_in;
#[path = "cluster/refusal.rs"]
mod refusal;
#[path = "cluster/repository.rs"]
mod repository;
#[path = "cluster/resource.rs"]
mod resource;
#[path = "cluster/runner.rs"]
mod runner;
#[path = "cluster/secrecy.rs"]
mod secrecy;
#[path = "cluster/stage.rs"]
mod stage;
#[path = "cluster/turn.rs"]
mod turn;
