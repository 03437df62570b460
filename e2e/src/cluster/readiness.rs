//! Waiting until a component does its work, with a look at why it does not.

use std::time::Duration;

use anyhow::{Context as _, bail};

use super::arguments::NETWORK_POLICY_PORT;
use super::command::output;
use super::process::{State, state};
use super::run::RunFolder;
use super::{Component, Record};
use crate::fixture::await_condition;

/// From a component's start to its work, on a machine that does much else.
const READY_DEADLINE: Duration = Duration::from_mins(3);
/// One question to a component.
const ASK_DEADLINE: Duration = Duration::from_secs(5);
/// Lines of a log that an error shows.
const SHOWN_LINES: usize = 12;

/// Waits until a started component answers. One that ends instead is an error at once.
pub(super) async fn await_ready(
    folder: &RunFolder,
    record: &Record,
    component: Component,
) -> anyhow::Result<()> {
    let http = client()?;
    let look = async || match state(folder, component) {
        Ok(State::Running { .. }) => answers(folder, record, component, &http).await.then_some(true),
        Ok(State::Dead | State::Stopped) | Err(_) => Some(false),
    };
    let what = format!("{component} is ready");
    let told =
        || format!("its log is {}\n{}", folder.log(component).display(), last_lines(folder, component));
    if !await_condition(READY_DEADLINE, &what, look).await.with_context(told)? {
        bail!("{component} ended; {}", told());
    }
    Ok(())
}

async fn answers(folder: &RunFolder, record: &Record, component: Component, http: &reqwest::Client) -> bool {
    let node = record.ranges.node();
    let ok =
        async |url: String| http.get(url).send().await.is_ok_and(|response| response.status().is_success());
    let listens = async |port: u16| {
        let connection = tokio::net::TcpStream::connect((node, port));
        tokio::time::timeout(ASK_DEADLINE, connection).await.is_ok_and(|connected| connected.is_ok())
    };
    match component {
        // It listens inside the node's network alone; the API server's readiness covers it.
        Component::Etcd => true,
        Component::Apiserver => ok(format!("https://{node}:6443/readyz")).await,
        Component::ControllerManager => listens(10257).await,
        Component::Scheduler => listens(10259).await,
        Component::Containerd => {
            let socket = folder.containerd_socket().display().to_string();
            output(record.bin.join("ctr"), ["--address", &socket, "version"]).await.is_ok()
        }
        Component::Kubelet => ok(format!("http://{node}:10248/healthz")).await,
        Component::Proxy => listens(10256).await,
        Component::NetworkPolicy => ok(format!("http://{node}:{NETWORK_POLICY_PORT}/healthz")).await,
        // It answers to nobody; that it does its work is seen at what it makes.
        Component::Volumes => true,
    }
}

/// The API server's readiness is open to everybody (the role `system:public-info-viewer`), and nothing secret is sent.
fn client() -> anyhow::Result<reqwest::Client> {
    crate::install_crypto();
    let builder = reqwest::Client::builder().no_proxy().timeout(ASK_DEADLINE);
    builder.danger_accept_invalid_certs(true).build().context("http client")
}

fn last_lines(folder: &RunFolder, component: Component) -> String {
    let log = std::fs::read(folder.log(component)).unwrap_or_default();
    let log = String::from_utf8_lossy(&log);
    let lines: Vec<&str> = log.lines().collect();
    lines[lines.len().saturating_sub(SHOWN_LINES)..].join("\n")
}
