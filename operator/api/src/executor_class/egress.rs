//! What the commands of a class may reach over the network.

use kube_derive::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::rule::rules;

/// Addresses that tell a machine's identity and credentials to whoever asks. No class reaches them, whatever it allows:
/// link-local of both families (169.254.169.254 among them), and those that clouds placed elsewhere.
pub const METADATA_ADDRESSES: [&str; 5] =
    ["169.254.0.0/16", "100.100.100.200/32", "168.63.129.16/32", "fe80::/10", "fd00:ec2::254/128"];

const BLOCK: (&str, &str) =
    ("isCIDR(self)", "must be a block of addresses, such as 203.0.113.0/24 or 2001:db8::/32");

/// The rule that a block does not lie within [`METADATA_ADDRESSES`]. One around them is allowed: the operator leaves them out.
fn never_metadata() -> String {
    let blocks = METADATA_ADDRESSES.map(|block| format!("'{block}'")).join(", ");
    format!("!isCIDR(self.cidr) || ![{blocks}].exists(m, cidr(m).containsCIDR(self.cidr))")
}

/// What commands may reach.
#[derive(JsonSchema, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Egress {
    /// Blocks of addresses, at most 32. Addresses that serve a machine's metadata are left out of every one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub rules: Vec<EgressRule>,
    /// Whether names are resolved: reaches the cluster's DNS. A name asked for is a message to whoever serves it.
    #[serde(default)]
    pub dns: bool,
}

/// A block of addresses, at most 64 characters.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(extend("minLength" = 1, "maxLength" = 64, "x-kubernetes-validations" = rules(&[BLOCK])))]
pub struct AddressBlock(pub String);

/// A block of addresses and the ports there.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.except) || !isCIDR(self.cidr) || self.except.all(e, !isCIDR(e) || (cidr(self.cidr).containsCIDR(e) && e != self.cidr))")
        .message("each block of except lies within cidr").field_path(".except"),
    validation = Rule::new(never_metadata())
        .message("addresses that serve a machine's metadata are never reached").field_path(".cidr"),
)]
#[serde(rename_all = "camelCase")]
pub struct EgressRule {
    /// The block, such as `203.0.113.0/24`.
    pub cidr: AddressBlock,
    /// Blocks within it that are not reached, at most 32.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub except: Vec<AddressBlock>,
    /// The ports there, at most 32. Left out, all of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(length(max = 32))]
    pub ports: Vec<PortRange>,
}

/// A port, or a range of ports.
#[derive(KubeSchema, Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[x_kube(
    crates(kube_core = "::kube_core"),
    validation = Rule::new("!has(self.endPort) || self.endPort >= self.port")
        .message("endPort is not below port").field_path(".endPort"),
)]
#[serde(rename_all = "camelCase")]
pub struct PortRange {
    /// `TCP` or `UDP`.
    #[serde(default)]
    pub protocol: Protocol,
    /// The port, or the first of the range, 1 to 65,535.
    #[schemars(range(min = 1, max = 65_535))]
    pub port: i32,
    /// The last of the range; left out, it is the one port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 65_535))]
    pub end_port: Option<i32>,
}

/// What is spoken on a port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "UPPERCASE")]
pub enum Protocol {
    /// TCP.
    #[default]
    Tcp,
    /// UDP.
    Udp,
}
