use expect_test::{Expect, expect};
use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use mooring_operator_api::executor_class::{AddressBlock, ExecutorClassSpec};

use super::*;

fn class(egress: Option<Egress>) -> ExecutorClass {
    let spec = ExecutorClassSpec { egress, ..ExecutorClassSpec::of("example.test/environment:1") };
    let mut class = ExecutorClass::new("default", spec);
    class.metadata.namespace = Some("team-a".to_owned());
    class.metadata.uid = Some("7b0c".to_owned());
    class
}

fn rule(cidr: &str, except: &[&str]) -> EgressRule {
    EgressRule {
        cidr: AddressBlock(cidr.to_owned()),
        except: except.iter().map(|block| AddressBlock((*block).to_owned())).collect(),
        ports: Vec::new(),
    }
}

/// What a class with these rules reaches, a rule a line.
#[track_caller]
#[expect(clippy::needless_pass_by_value, reason = "an expectation is written where it is checked")]
fn check(rules: Vec<EgressRule>, dns: bool, expected: Expect) {
    let policy = desired_policy(&class(Some(Egress { rules, dns })), "mooring-system");
    let spec = policy.spec.expect("a spec");
    let lines: Vec<String> = spec
        .egress
        .into_iter()
        .flatten()
        .map(|rule| serde_json::to_value(rule).expect("JSON").to_string())
        .collect();
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn a_class_without_egress_reaches_nothing_and_is_reached_by_operator_and_harness_alone() {
    let policy = desired_policy(&class(None), "mooring-system");
    let text = serde_json::to_string_pretty(&policy.spec).expect("JSON");
    expect![[r#"
        {
          "ingress": [
            {
              "from": [
                {
                  "namespaceSelector": {
                    "matchLabels": {
                      "kubernetes.io/metadata.name": "mooring-system"
                    }
                  },
                  "podSelector": {
                    "matchExpressions": [
                      {
                        "key": "app.kubernetes.io/name",
                        "operator": "In",
                        "values": [
                          "mooring-operator",
                          "mooring-harness"
                        ]
                      }
                    ]
                  }
                }
              ],
              "ports": [
                {
                  "port": 7443,
                  "protocol": "TCP"
                }
              ]
            }
          ],
          "podSelector": {
            "matchLabels": {
              "app.kubernetes.io/name": "mooring-executor",
              "mooring.dev/class": "default"
            }
          },
          "policyTypes": [
            "Ingress",
            "Egress"
          ]
        }"#]]
    .assert_eq(&text);
}

#[test]
fn a_block_never_holds_the_metadata_addresses() {
    check(
        vec![rule("0.0.0.0/0", &["10.0.0.0/8"]), rule("::/0", &[])],
        false,
        expect![[r#"
        {"to":[{"ipBlock":{"cidr":"0.0.0.0/0","except":["10.0.0.0/8","169.254.0.0/16","100.100.100.200/32","168.63.129.16/32"]}}]}
        {"to":[{"ipBlock":{"cidr":"::/0","except":["fe80::/10","fd00:ec2::254/128"]}}]}"#]],
    );
}

#[test]
fn a_block_without_them_is_as_said() {
    check(
        vec![rule("203.0.113.7/24", &[])],
        false,
        expect![[r#"{"to":[{"ipBlock":{"cidr":"203.0.113.0/24"}}]}"#]],
    );
}

#[test]
fn what_lies_within_them_or_is_no_block_reaches_nothing() {
    check(vec![rule("169.254.169.254/32", &[]), rule("everything", &[])], false, expect![""]);
    check(vec![rule("10.0.0.0/8", &["10.0.0.0/8"]), rule("10.0.0.0/8", &["nothing"])], false, expect![""]);
}

#[test]
fn names_are_resolved_by_the_cluster_alone() {
    check(
        Vec::new(),
        true,
        expect![[
            r#"{"ports":[{"port":53,"protocol":"UDP"},{"port":53,"protocol":"TCP"}],"to":[{"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":"kube-system"}}}]}"#
        ]],
    );
}

#[test]
fn ports_are_kept() {
    let ports = vec![
        PortRange { protocol: Protocol::Tcp, port: 443, end_port: None },
        PortRange { protocol: Protocol::Udp, port: 6000, end_port: Some(6100) },
    ];
    check(
        vec![EgressRule { ports, ..rule("203.0.113.0/24", &[]) }],
        false,
        expect![[
            r#"{"ports":[{"port":443,"protocol":"TCP"},{"endPort":6100,"port":6000,"protocol":"UDP"}],"to":[{"ipBlock":{"cidr":"203.0.113.0/24"}}]}"#
        ]],
    );
}

#[test]
fn a_policy_that_somebody_changed_is_not_current() {
    let desired = desired_policy(&class(None), "mooring-system");
    assert!(is_current(&desired, &desired));
    let mut opened = desired.clone();
    opened.spec.get_or_insert_default().policy_types = Some(vec!["Ingress".to_owned()]);
    assert!(!is_current(&opened, &desired), "other rules");
    let mut leaving = desired.clone();
    leaving.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert!(!is_current(&leaving, &desired), "about to go");
    assert_eq!(desired.metadata.owner_references, None, "the collector would end it before its pods");
    assert!(!is_current(&desired, &desired_policy(&class(None), "elsewhere")), "another operator");
}
