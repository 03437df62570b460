//! The node's network: a namespace of its own, one link to the host, and ranges no other run uses.
//!
//! Bridges, firewall rules, sets of addresses and port forwards of a run exist only in the namespace, so they end with it, and
//! two runs do not see each other. Nothing translates the node's addresses on their way out: a run reaches this machine and no
//! further.

use std::net::Ipv4Addr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use rustix::fs::{FlockOperation, flock};
use serde::{Deserialize, Serialize};

use super::command::{output, run};
use super::run::RunFolder;
use crate::fixture::await_condition;

/// 198.18.0.0/15 is set aside for benchmarks (RFC 2544 section C.2.2), so it meets no real network.
const BASE: u32 = u32::from_be_bytes([198, 18, 0, 0]);
/// Addresses of one run: a /22.
const BLOCK: u32 = 1024;
const BLOCKS: u32 = 128;
const BLOCK_PREFIX: u32 = 22;
/// Held while a block is chosen and taken, by every run of this machine.
const LOCK: &str = "/run/lock/mooring-cluster.lock";
/// Making a network is a dozen short programs.
const LOCK_DEADLINE: Duration = Duration::from_mins(1);
/// The node's end of the link.
const NODE_LINK: &str = "node0";

/// Which addresses a run uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Ranges {
    block: u32,
}

impl Ranges {
    fn address(self, offset: u32) -> Ipv4Addr {
        Ipv4Addr::from_bits(BASE + self.block * BLOCK + offset)
    }

    /// Pods, about five hundred.
    pub(super) fn pods(self) -> String {
        format!("{}/23", self.address(0))
    }

    /// Services.
    pub(super) fn services(self) -> String {
        format!("{}/24", self.address(512))
    }

    /// The API server for pods.
    pub(super) fn kubernetes_service(self) -> Ipv4Addr {
        self.address(513)
    }

    /// DNS for pods.
    pub(super) fn dns_service(self) -> Ipv4Addr {
        self.address(522)
    }

    /// This machine as the node and its pods see it.
    pub(super) fn host(self) -> Ipv4Addr {
        self.address(769)
    }

    /// The node, and the API server on it, as this machine sees it.
    pub(super) fn node(self) -> Ipv4Addr {
        self.address(770)
    }

    /// Whether a range `address/prefix` that something else uses shares an address with these.
    fn meets(self, range: &str) -> bool {
        let (address, prefix) = range.split_once('/').unwrap_or((range, "32"));
        let (Ok(address), Ok(prefix)) = (address.parse::<Ipv4Addr>(), prefix.parse::<u32>()) else {
            return false;
        };
        let shift = 32 - prefix.min(BLOCK_PREFIX);
        // A shift by 32 is the default route, which says nothing about who uses an address.
        shift < 32 && address.to_bits() >> shift == self.address(0).to_bits() >> shift
    }
}

/// Makes the namespace and the link of `run`, with the first block that nothing on this machine uses.
pub(super) async fn make(folder: &RunFolder) -> anyhow::Result<Ranges> {
    let lock = std::fs::File::create(LOCK).with_context(|| format!("make {LOCK}"))?;
    let taken = async || flock(&lock, FlockOperation::NonBlockingLockExclusive).ok();
    await_condition(LOCK_DEADLINE, &format!("the lock {LOCK}, held while a run makes its network"), taken)
        .await?;
    let routes = output("ip", ["-json", "-4", "route", "show", "table", "all"]).await?;
    let ranges = free(&routes)?;
    let (network, link) = (folder.network(), folder.link());
    let (host, node) = (format!("{}/30", ranges.host()), format!("{}/30", ranges.node()));
    let (via, back) = (ranges.node().to_string(), ranges.host().to_string());
    run("ip", ["netns", "add", &network]).await?;
    run("ip", ["link", "add", &link, "type", "veth", "peer", "name", NODE_LINK, "netns", &network]).await?;
    run("ip", ["addr", "add", &host, "dev", &link]).await?;
    run("ip", ["link", "set", &link, "up"]).await?;
    run("ip", ["-n", &network, "link", "set", "lo", "up"]).await?;
    run("ip", ["-n", &network, "addr", "add", &node, "dev", NODE_LINK]).await?;
    run("ip", ["-n", &network, "link", "set", NODE_LINK, "up"]).await?;
    // The kubelet and kube-proxy look for a default route to learn the node's address.
    run("ip", ["-n", &network, "route", "add", "default", "via", &back]).await?;
    for range in [ranges.pods(), ranges.services()] {
        run("ip", ["route", "add", &range, "via", &via, "dev", &link]).await?;
    }
    let inside = format!("/run/netns/{network}");
    // Traffic between pods of one bridge meets the policies only when bridged packets go through the firewall.
    let settings =
        "echo 1 >/proc/sys/net/ipv4/ip_forward && echo 1 >/proc/sys/net/bridge/bridge-nf-call-iptables";
    run("nsenter", [&format!("--net={inside}"), "--", "sh", "-c", settings])
        .await
        .context("the kernel's bridge firewall; `modprobe br_netfilter` loads it")?;
    Ok(ranges)
}

/// Removes the namespace and the link, with everything in them. Nothing runs in it any more.
pub(super) async fn remove(folder: &RunFolder) -> anyhow::Result<()> {
    if std::path::Path::new("/run/netns").join(folder.network()).exists() {
        run("ip", ["netns", "delete", &folder.network()]).await?;
    }
    // Its other end usually took it along already.
    if std::path::Path::new("/sys/class/net").join(folder.link()).exists() {
        let removed = run("ip", ["link", "delete", &folder.link()]).await;
        if std::path::Path::new("/sys/class/net").join(folder.link()).exists() {
            removed?;
        }
    }
    Ok(())
}

#[derive(Deserialize)]
struct Route {
    dst: String,
}

fn free(routes: &str) -> anyhow::Result<Ranges> {
    let routes: Vec<Route> = serde_json::from_str(routes).context("what `ip -json route` prints")?;
    let mut blocks = (0..BLOCKS).map(|block| Ranges { block });
    let found = blocks.find(|ranges| !routes.iter().any(|route| ranges.meets(&route.dst)));
    let Some(found) = found else {
        bail!("every range of 198.18.0.0/15 is in use: look at `ip -4 route`");
    };
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_the_first_block_that_no_route_meets() {
        let routes =
            r#"[{"dst":"default"},{"dst":"10.0.0.0/8"},{"dst":"198.18.0.0/23"},{"dst":"198.18.7.1"}]"#;
        let ranges = free(routes).expect("a block");
        assert_eq!(ranges, Ranges { block: 2 });
        assert_eq!(ranges.pods(), "198.18.8.0/23");
        assert_eq!(ranges.services(), "198.18.10.0/24");
        assert_eq!(ranges.node().to_string(), "198.18.11.2");
    }

    #[test]
    fn a_network_over_the_whole_range_leaves_nothing() {
        assert!(free(r#"[{"dst":"198.18.0.0/15"}]"#).is_err());
    }
}
