//! The programs a cluster consists of, in the order of their start.

use std::fmt;
use std::str::FromStr;

/// One program of a cluster that can be stopped and started by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Component {
    /// The store of the API server.
    Etcd,
    /// The API server, with the aggregation layer.
    Apiserver,
    /// The controllers of Kubernetes itself.
    ControllerManager,
    /// What chooses a node for a pod.
    Scheduler,
    /// The container runtime. Containers outlive it.
    Containerd,
    /// What runs pods on the one node. Pods outlive it.
    Kubelet,
    /// What makes service addresses work.
    Proxy,
    /// What enforces network policies.
    NetworkPolicy,
    /// What makes and deletes volumes: our own.
    Volumes,
}

impl Component {
    /// All of them, each after those it needs.
    pub const ALL: [Self; 9] = [
        Self::Etcd,
        Self::Apiserver,
        Self::ControllerManager,
        Self::Scheduler,
        Self::Containerd,
        Self::Kubelet,
        Self::Proxy,
        Self::NetworkPolicy,
        Self::Volumes,
    ];

    /// Its name on the command line and in the run folder.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Etcd => "etcd",
            Self::Apiserver => "apiserver",
            Self::ControllerManager => "controller-manager",
            Self::Scheduler => "scheduler",
            Self::Containerd => "containerd",
            Self::Kubelet => "kubelet",
            Self::Proxy => "proxy",
            Self::NetworkPolicy => "network-policy",
            Self::Volumes => "volumes",
        }
    }
}

impl fmt::Display for Component {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Component {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|component| component.name() == name);
        found.ok_or_else(|| format!("no component `{name}`: one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_component_is_found_by_the_name_it_prints() {
        for component in Component::ALL {
            assert_eq!(component.to_string().parse(), Ok(component));
        }
        assert!("docker".parse::<Component>().is_err());
    }
}
