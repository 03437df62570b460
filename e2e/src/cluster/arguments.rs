//! How each component is started: its program and its arguments.

use std::path::{Path, PathBuf};

use anyhow::Context as _;

use super::network::Ranges;
use super::process::{Launch, remember};
use super::run::RunFolder;
use super::{Component, NODE};

/// Where the system's own programs are: runc, iptables, ipset, nft, mount.
const SYSTEM_PATH: &str = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
/// Where kube-router tells that it does its work, on the node's address.
pub(super) const NETWORK_POLICY_PORT: u16 = 20244;

/// Who starts what, with what.
pub(super) struct Arguments<'a> {
    pub(super) folder: &'a RunFolder,
    pub(super) ranges: Ranges,
    pub(super) bin: &'a Path,
}

impl Arguments<'_> {
    /// Keeps for every component how it is started.
    pub(super) fn remember(&self) -> anyhow::Result<()> {
        for component in Component::ALL {
            let (program, arguments) = self.of(component)?;
            let path = format!("{}:{SYSTEM_PATH}", self.bin.display());
            remember(self.folder, component, &Launch { program, arguments, path })?;
        }
        Ok(())
    }

    fn of(&self, component: Component) -> anyhow::Result<(PathBuf, Vec<String>)> {
        let bin = |name: &str| self.bin.join(name);
        Ok(match component {
            Component::Etcd => (bin("etcd"), self.etcd()),
            Component::Apiserver => (bin("kube-apiserver"), self.apiserver()),
            Component::ControllerManager => (bin("kube-controller-manager"), self.controller_manager()),
            Component::Scheduler => (bin("kube-scheduler"), self.scheduler()),
            Component::Containerd => {
                let file = self.file("configuration/containerd.toml");
                (bin("containerd"), vec!["--config".to_owned(), file])
            }
            Component::Kubelet => (bin("kubelet"), self.kubelet()),
            Component::Proxy => (bin("kube-proxy"), self.proxy()),
            Component::NetworkPolicy => (bin("kube-router"), self.network_policy()),
            Component::Volumes => {
                let own = std::env::current_exe().context("the path of this program")?;
                let run = self.folder.path().display().to_string();
                (own, ["volumes", "--run", &run].map(String::from).to_vec())
            }
        })
    }

    fn file(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    fn certificate(&self, name: &str) -> String {
        self.file(&format!("certificate/{name}"))
    }

    fn kubeconfig(&self, user: &str) -> String {
        self.folder.kubeconfig(user).display().to_string()
    }

    /// The store lies on a disk that may be lost with the run, so it does not wait for the disk.
    fn etcd(&self) -> Vec<String> {
        flags([
            ("data-dir", self.file("etcd")),
            ("listen-client-urls", "http://127.0.0.1:2379".into()),
            ("advertise-client-urls", "http://127.0.0.1:2379".into()),
            ("listen-peer-urls", "http://127.0.0.1:2380".into()),
            ("unsafe-no-fsync", "true".into()),
            ("log-level", "warn".into()),
        ])
    }

    fn apiserver(&self) -> Vec<String> {
        flags([
            ("etcd-servers", "http://127.0.0.1:2379".into()),
            ("secure-port", "6443".into()),
            ("bind-address", "0.0.0.0".into()),
            ("advertise-address", self.ranges.node().to_string()),
            ("service-cluster-ip-range", self.ranges.services()),
            ("client-ca-file", self.certificate("ca.crt")),
            ("tls-cert-file", self.certificate("apiserver.crt")),
            ("tls-private-key-file", self.certificate("apiserver.key")),
            ("service-account-key-file", self.certificate("service-accounts.pub")),
            ("service-account-signing-key-file", self.certificate("service-accounts.key")),
            ("service-account-issuer", "https://kubernetes.default.svc.cluster.local".into()),
            ("authorization-mode", "Node,RBAC".into()),
            ("enable-admission-plugins", "NodeRestriction".into()),
            ("allow-privileged", "true".into()),
            ("kubelet-certificate-authority", self.certificate("ca.crt")),
            ("kubelet-client-certificate", self.certificate("kubelet-client.crt")),
            ("kubelet-client-key", self.certificate("kubelet-client.key")),
            // The node's name means nothing to this machine's resolver.
            ("kubelet-preferred-address-types", "InternalIP".into()),
            ("requestheader-client-ca-file", self.certificate("ca.crt")),
            ("requestheader-allowed-names", "front-proxy".into()),
            ("requestheader-username-headers", "X-Remote-User".into()),
            ("requestheader-group-headers", "X-Remote-Group".into()),
            ("requestheader-extra-headers-prefix", "X-Remote-Extra-".into()),
            ("proxy-client-cert-file", self.certificate("aggregator.crt")),
            ("proxy-client-key-file", self.certificate("aggregator.key")),
            ("enable-aggregator-routing", "true".into()),
            ("profiling", "false".into()),
        ])
    }

    fn controller_manager(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig("controller-manager");
        flags([
            ("kubeconfig", kubeconfig.clone()),
            ("authentication-kubeconfig", kubeconfig.clone()),
            ("authorization-kubeconfig", kubeconfig),
            ("bind-address", self.ranges.node().to_string()),
            ("service-account-private-key-file", self.certificate("service-accounts.key")),
            ("root-ca-file", self.certificate("ca.crt")),
            ("cluster-signing-cert-file", self.certificate("ca.crt")),
            ("cluster-signing-key-file", self.certificate("ca.key")),
            ("use-service-account-credentials", "true".into()),
            ("leader-elect", "false".into()),
            ("allocate-node-cidrs", "true".into()),
            ("cluster-cidr", self.ranges.pods()),
            ("node-cidr-mask-size", "23".into()),
            ("service-cluster-ip-range", self.ranges.services()),
            // A node is away when its lease of 20 s has run out.
            ("node-monitor-grace-period", "20s".into()),
            ("node-monitor-period", "2s".into()),
        ])
    }

    fn scheduler(&self) -> Vec<String> {
        let kubeconfig = self.kubeconfig("scheduler");
        flags([
            ("kubeconfig", kubeconfig.clone()),
            ("authentication-kubeconfig", kubeconfig.clone()),
            ("authorization-kubeconfig", kubeconfig),
            ("bind-address", self.ranges.node().to_string()),
            ("leader-elect", "false".into()),
        ])
    }

    fn kubelet(&self) -> Vec<String> {
        flags([
            ("config", self.file("configuration/kubelet.yaml")),
            ("kubeconfig", self.kubeconfig("kubelet")),
            ("hostname-override", NODE.into()),
            ("node-ip", self.ranges.node().to_string()),
            ("root-dir", self.file("kubelet")),
            ("cert-dir", self.file("kubelet/certificate")),
        ])
    }

    fn proxy(&self) -> Vec<String> {
        flags([
            ("kubeconfig", self.kubeconfig("proxy")),
            ("proxy-mode", "nftables".into()),
            ("cluster-cidr", self.ranges.pods()),
            ("hostname-override", NODE.into()),
            ("bind-address", self.ranges.node().to_string()),
            ("healthz-bind-address", format!("{}:10256", self.ranges.node())),
            ("metrics-bind-address", "127.0.0.1:10249".into()),
            // The size of the kernel's table is the machine's, not the namespace's.
            ("conntrack-max-per-core", "0".into()),
        ])
    }

    fn network_policy(&self) -> Vec<String> {
        flags([
            ("kubeconfig", self.kubeconfig("network-policy")),
            ("hostname-override", NODE.into()),
            ("run-firewall", "true".into()),
            ("run-router", "false".into()),
            ("run-service-proxy", "false".into()),
            ("run-loadbalancer", "false".into()),
            ("service-cluster-ip-range", self.ranges.services()),
            ("iptables-sync-period", "1m".into()),
            ("enable-ipv6", "false".into()),
            ("health-port", NETWORK_POLICY_PORT.to_string()),
        ])
    }
}

fn flags<const N: usize>(flags: [(&str, String); N]) -> Vec<String> {
    flags.into_iter().map(|(name, value)| format!("--{name}={value}")).collect()
}
