//! The network policy of a class: who reaches its pods, and what they reach.
//!
//! In: the operator and the harness, on the executor's port, from nowhere else. Out: nothing, then the class's blocks
//! without the addresses that serve a machine's metadata, then the cluster's DNS where the class asks for it. A block that
//! covers the API server's address reaches it: pods hold no credential for it, and a class that minds says `except`.
//!
//! Nobody owns it: the garbage collector would end it before the last pod of its class. The class's finalizer does.

use k8s_openapi::api::networking::v1::{
    IPBlock, NetworkPolicy, NetworkPolicyEgressRule, NetworkPolicyIngressRule, NetworkPolicyPeer,
    NetworkPolicyPort, NetworkPolicySpec,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, LabelSelectorRequirement};
use k8s_openapi::apimachinery::pkg::util::intstr::IntOrString;
use kube::api::ObjectMeta;
use kube::{Resource as _, ResourceExt as _};
use mooring_operator_api::executor_class::{Egress, EgressRule, METADATA_ADDRESSES, PortRange, Protocol};
use mooring_operator_api::{ExecutorClass, Uid, label};
use mooring_proto::certificate::EXECUTOR_PORT;

use super::block::Block;
use crate::{labels, names};

/// Label that the API server puts on every namespace: its name (KEP-2161).
const NAMESPACE: &str = "kubernetes.io/metadata.name";
const DNS_NAMESPACE: &str = "kube-system";
const DNS_PORT: i32 = 53;

/// The policy of a class, for an operator that runs in `operator_namespace`.
pub(crate) fn desired_policy(class: &ExecutorClass, operator_namespace: &str) -> NetworkPolicy {
    NetworkPolicy {
        metadata: ObjectMeta {
            name: Some(names::policy(&Uid::from(class.uid().unwrap_or_default()))),
            namespace: class.meta().namespace.clone(),
            labels: Some({
                let mut labels = labels::own();
                labels.extend(labels::pairs([(label::CLASS, &names::label(&class.name_any()))]));
                labels
            }),
            ..ObjectMeta::default()
        },
        spec: Some(NetworkPolicySpec {
            pod_selector: Some(LabelSelector {
                match_labels: Some(labels::selector_of_class(class)),
                match_expressions: None,
            }),
            policy_types: Some(vec!["Ingress".to_owned(), "Egress".to_owned()]),
            ingress: Some(vec![ingress(operator_namespace)]),
            // None at all and an empty list mean the same, and the API server gives back the former.
            egress: Some(egress(class.spec.egress.as_ref())).filter(|rules| !rules.is_empty()),
        }),
    }
}

/// Whether an observed policy is the one that is wanted, and stays.
pub(crate) fn is_current(observed: &NetworkPolicy, desired: &NetworkPolicy) -> bool {
    observed.spec == desired.spec && observed.metadata.deletion_timestamp.is_none()
}

fn ingress(operator_namespace: &str) -> NetworkPolicyIngressRule {
    let callers = LabelSelector {
        match_labels: None,
        match_expressions: Some(vec![LabelSelectorRequirement {
            key: label::APP_NAME.to_owned(),
            operator: "In".to_owned(),
            values: Some(vec![label::OPERATOR.to_owned(), label::HARNESS.to_owned()]),
        }]),
    };
    NetworkPolicyIngressRule {
        from: Some(vec![NetworkPolicyPeer {
            namespace_selector: Some(named(operator_namespace)),
            pod_selector: Some(callers),
            ip_block: None,
        }]),
        ports: Some(vec![port("TCP", i32::from(EXECUTOR_PORT), None)]),
    }
}

fn egress(said: Option<&Egress>) -> Vec<NetworkPolicyEgressRule> {
    let Some(Egress { rules, dns }) = said else { return Vec::new() };
    let mut rules: Vec<_> = rules.iter().filter_map(reach).collect();
    if *dns {
        rules.push(NetworkPolicyEgressRule {
            to: Some(vec![NetworkPolicyPeer {
                namespace_selector: Some(named(DNS_NAMESPACE)),
                ..NetworkPolicyPeer::default()
            }]),
            ports: Some(vec![port("UDP", DNS_PORT, None), port("TCP", DNS_PORT, None)]),
        });
    }
    rules
}

/// A rule without the metadata addresses. The API server has refused what lies within them, and what is no block; should
/// one be here all the same, it reaches nothing.
fn reach(rule: &EgressRule) -> Option<NetworkPolicyEgressRule> {
    let block: Block = rule.cidr.0.parse().ok()?;
    let metadata: Vec<Block> = METADATA_ADDRESSES.iter().filter_map(|text| text.parse().ok()).collect();
    if metadata.iter().any(|it| it.contains(&block)) {
        return None;
    }
    let said = rule.except.iter().map(|text| text.0.parse()).collect::<Result<Vec<Block>, _>>().ok()?;
    if said.contains(&block) {
        return None;
    }
    let mut except: Vec<Block> = Vec::new();
    for hole in said.into_iter().chain(metadata) {
        if block.contains(&hole) && !except.contains(&hole) {
            except.push(hole);
        }
    }
    Some(NetworkPolicyEgressRule {
        to: Some(vec![NetworkPolicyPeer {
            ip_block: Some(IPBlock {
                cidr: block.to_string(),
                except: Some(except.iter().map(ToString::to_string).collect())
                    .filter(|it: &Vec<_>| !it.is_empty()),
            }),
            ..NetworkPolicyPeer::default()
        }]),
        ports: Some(rule.ports.iter().map(ports).collect()).filter(|it: &Vec<_>| !it.is_empty()),
    })
}

fn ports(range: &PortRange) -> NetworkPolicyPort {
    let protocol = match range.protocol {
        Protocol::Tcp => "TCP",
        Protocol::Udp => "UDP",
    };
    port(protocol, range.port, range.end_port)
}

fn port(protocol: &str, first: i32, last: Option<i32>) -> NetworkPolicyPort {
    NetworkPolicyPort {
        protocol: Some(protocol.to_owned()),
        port: Some(IntOrString::Int(first)),
        end_port: last,
    }
}

fn named(namespace: &str) -> LabelSelector {
    LabelSelector { match_labels: Some(labels::pairs([(NAMESPACE, namespace)])), match_expressions: None }
}

#[cfg(test)]
mod tests;
