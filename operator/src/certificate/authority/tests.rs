use super::*;

const POD: Role<'static> = Role::Executor { pod: "ses-6346ad98cd2b5ea42d0e-1", namespace: "team-a" };

fn at(days: i64) -> Timestamp {
    let start: Timestamp = "2026-11-30T12:00:00Z".parse().expect("a time");
    start + jiff::SignedDuration::from_hours(days * 24)
}

fn authority() -> Authority {
    Authority::read(&Authority::generate(at(0)).expect("an authority")).expect("its own")
}

/// What a peer checks: chain, use, time and name.
fn accepts(
    anchor: &Authority,
    shown: &Credential,
    name: &str,
    usage: KeyUsage,
    now: Timestamp,
) -> Result<(), String> {
    let certificate = CertificateDer::from_pem_slice(shown.certificate.as_bytes()).expect("PEM");
    let certificate = EndEntityCert::try_from(&certificate).expect("a certificate");
    let seconds = u64::try_from(now.as_second()).expect("after 1970");
    certificate
        .verify_for_usage(
            rustls::crypto::ring::default_provider().signature_verification_algorithms.all,
            std::slice::from_ref(&anchor.anchor),
            &[],
            UnixTime::since_unix_epoch(Duration::from_secs(seconds)),
            usage,
            None,
            None,
        )
        .map_err(|error| format!("{error:?}"))?;
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    certificate.verify_is_valid_for_subject_name(&name).map_err(|error| format!("{error:?}"))
}

#[test]
fn an_executor_is_the_server_of_its_own_pod_alone() {
    let authority = authority();
    let issued = authority.issue(POD, at(0)).expect("issued");
    let own = "ses-6346ad98cd2b5ea42d0e-1.team-a.executor.mooring.internal";
    assert_eq!(accepts(&authority, &issued, own, KeyUsage::server_auth(), at(0)), Ok(()));
    for other in [
        "ses-6346ad98cd2b5ea42d0e-2.team-a.executor.mooring.internal",
        "ses-6346ad98cd2b5ea42d0e-1.team-b.executor.mooring.internal",
        names::HARNESS,
        names::OPERATOR,
    ] {
        assert!(accepts(&authority, &issued, other, KeyUsage::server_auth(), at(0)).is_err(), "{other}");
    }
    assert!(accepts(&authority, &issued, own, KeyUsage::client_auth(), at(0)).is_err(), "no client");
}

#[test]
fn a_client_is_its_role_and_no_server() {
    let authority = authority();
    for (role, name, other) in
        [(Role::Harness, names::HARNESS, names::OPERATOR), (Role::Operator, names::OPERATOR, names::HARNESS)]
    {
        let issued = authority.issue(role, at(0)).expect("issued");
        assert_eq!(accepts(&authority, &issued, name, KeyUsage::client_auth(), at(0)), Ok(()));
        assert!(accepts(&authority, &issued, other, KeyUsage::client_auth(), at(0)).is_err(), "{other}");
        assert!(accepts(&authority, &issued, name, KeyUsage::server_auth(), at(0)).is_err(), "{name}");
    }
}

#[test]
fn the_longest_names_fit() {
    let (pod, namespace) = ("p".repeat(63), "n".repeat(63));
    let role = Role::Executor { pod: &pod, namespace: &namespace };
    let authority = authority();
    let issued = authority.issue(role, at(0)).expect("issued");
    assert_eq!(accepts(&authority, &issued, &role.name(), KeyUsage::server_auth(), at(0)), Ok(()));
}

#[test]
fn a_certificate_begins_a_day_early_and_ends_after_thirty() {
    let authority = authority();
    let issued = authority.issue(Role::Harness, at(0)).expect("issued");
    let at = |days| accepts(&authority, &issued, names::HARNESS, KeyUsage::client_auth(), at(days)).is_ok();
    assert_eq!([-2, -1, 0, 29, 31].map(at), [false, true, true, true, false]);
}

#[test]
fn nothing_outside_the_product_s_own_domain_is_accepted_from_it() {
    let authority = authority();
    let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
    let mut params = CertificateParams::new(vec!["kubernetes.default.svc".to_owned()]).expect("a name");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    let certificate = params.signed_by(&key, &authority.issuer).expect("signed").pem();
    let stolen = Credential { certificate, key: key.serialize_pem().into() };
    let refused = accepts(&authority, &stolen, "kubernetes.default.svc", KeyUsage::server_auth(), at(0));
    assert_eq!(refused, Err("NameConstraintViolation".to_owned()));
}

#[test]
fn a_kept_authority_goes_on_issuing() {
    let made = Authority::generate(at(0)).expect("an authority");
    let (before, after) =
        (Authority::read(&made).expect("its own"), Authority::read(&made).expect("its own"));
    let issued = before.issue(POD, at(0)).expect("issued");
    assert_eq!(accepts(&after, &issued, &POD.name(), KeyUsage::server_auth(), at(1)), Ok(()));
    assert!(after.is_fresh(POD, &issued, at(1)));
}

#[test]
fn a_kept_authority_with_another_key_or_none_is_refused() {
    let (one, two) = (Authority::generate(at(0)).expect("one"), Authority::generate(at(0)).expect("two"));
    let mixed = Credential { certificate: one.certificate.clone(), key: two.key };
    assert!(matches!(Authority::read(&mixed), Err(AuthorityError::OtherKey)));
    let empty = Credential { certificate: one.certificate, key: SecretString::from("") };
    assert!(matches!(Authority::read(&empty), Err(AuthorityError::Read(_))));
}

#[test]
fn a_kept_credential_is_renewed_in_its_last_third_and_when_anything_is_not_its_own() {
    let authority = authority();
    let issued = authority.issue(POD, at(0)).expect("issued");
    assert_eq!(
        [0, 19, 21, 31].map(|day| authority.is_fresh(POD, &issued, at(day))),
        [true, true, false, false]
    );
    assert!(!authority.is_fresh(Role::Harness, &issued, at(0)), "another role");
    assert!(
        !authority.is_fresh(Role::Executor { pod: "p", namespace: "team-a" }, &issued, at(0)),
        "another pod"
    );
    let other = Authority::read(&Authority::generate(at(0)).expect("another")).expect("its own");
    assert!(!other.is_fresh(POD, &issued, at(0)), "another authority");
    let twin = authority.issue(POD, at(0)).expect("issued");
    let mixed = Credential { certificate: issued.certificate, key: twin.key };
    assert!(!authority.is_fresh(POD, &mixed, at(0)), "another key");
}

#[test]
fn no_key_is_shown() {
    let made = Authority::generate(at(0)).expect("an authority");
    let shown = format!("{made:?} {:?}", Authority::read(&made));
    assert!(!shown.contains("PRIVATE KEY"), "{shown}");
}
