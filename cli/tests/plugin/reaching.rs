//! The way to the gateway, and what stands in it.

use crate::fixture::{NAMESPACE, SESSION, World};

const READ: [&str; 5] = ["session", "files", "read", SESSION, "a"];

async fn world() -> World {
    let world = World::open().await;
    world.gateway.state().files.insert("a".to_owned(), b"content".to_vec());
    world
}

#[tokio::test]
async fn any_kubeconfig_leads_to_the_gateway() {
    let world = world().await;
    let ran = world.run(READ).await;
    assert_eq!((ran.code, ran.text().as_str(), ran.stderr.as_str()), (0, "content", ""));
    assert_eq!(world.api().n_exchanges, 1);
}

#[tokio::test]
async fn a_session_that_is_unknown_or_another_s_is_told_with_what_to_do() {
    let ran = world().await.run(["session", "files", "read", "other", "a"]).await;
    ran.check_failed(&["error: unknown session (wrong_environment)\n", "hint: there is no such session"]);
    assert_eq!(ran.text(), "");
}

#[tokio::test]
async fn a_session_that_is_not_ready_says_why() {
    let world = world().await;
    world.gateway.state().not_ready = Some(["ImagePulling", "fetching\n\u{1b}[2Jimage"]);
    for words in [&READ[..], &["session", "exec", SESSION, "--", "true"]] {
        let ran = world.run(words).await;
        ran.check_failed(&[
            "error: the session is not ready: ImagePulling: fetching\\n\\x1B[2Jimage\n",
            "hint: Wait; a large image takes minutes",
        ]);
    }
}

#[tokio::test]
async fn an_expired_token_is_exchanged_once_more_and_no_oftener() {
    let world = world().await;
    world.gateway.state().refused_tokens = vec!["1".to_owned()];
    assert_eq!(world.run(READ).await.text(), "content");
    assert_eq!(world.api().n_exchanges, 2);
    world.gateway.state().refused_tokens = (1..10).map(|n| n.to_string()).collect();
    let ran = world.run(READ).await;
    ran.check_failed(&["error: the token has expired (unauthenticated)"]);
    assert_eq!(world.api().n_exchanges, 4);
}

#[tokio::test]
async fn a_gateway_that_another_authority_certifies_gets_no_token() {
    let world = world().await;
    world.api().gateway["certificateAuthority"] = World::other_authority();
    let ran = world.run(READ).await;
    ran.check_failed(&["error: cannot reach the gateway at https://127.0.0.1"]);
    assert!(world.gateway.state().calls.is_empty());
}

#[tokio::test]
async fn a_gateway_of_another_name_gets_no_token() {
    let world = world().await;
    world.api().gateway["serverName"] = "other.mooring.internal".into();
    world.run(READ).await.check_failed(&["error: cannot reach the gateway"]);
    assert!(world.gateway.state().calls.is_empty());
}

#[tokio::test]
async fn another_address_may_be_given_and_its_certificate_is_checked_all_the_same() {
    let world = world().await;
    world.api().gateway["url"] = "https://127.0.0.1:1".into();
    world
        .run(READ)
        .await
        .check_failed(&["error: cannot reach the gateway", "hint: --gateway or MOORING_GATEWAY"]);
    let url = world.gateway_url.clone();
    let words = [&["--gateway", url.as_str()], &READ[..]].concat();
    assert_eq!(world.run(words).await.text(), "content");
    let mut command = world.command(READ);
    let output = command.env("MOORING_GATEWAY", &url).output().await.expect("the program");
    assert_eq!(output.stdout, b"content");
    let plain = url.replace("https", "http");
    world.run([&["--gateway", plain.as_str()], &READ[..]].concat()).await.check_failed(&["is not https"]);
}

#[tokio::test]
async fn a_cluster_that_gives_no_token_says_why() {
    let world = world().await;
    for (code, words) in [
        (404, &["error: this cluster gives no tokens", "hint: ask the platform team"]),
        (503, &["error: the harness does not answer: no", "hint: the harness is being started"]),
        (403, &["error: cannot get a token for the gateway: no", "hint: ask for the role"]),
        (401, &["error: cannot get a token for the gateway: no", "hint: the API server does not know"]),
    ] {
        world.api().refuses_exchanges = Some((code, "no".to_owned()));
        world.run(READ).await.check_failed(words);
    }
}

#[tokio::test]
async fn a_command_line_that_makes_no_sense_is_no_exit_code_of_a_command() {
    let world = world().await;
    world.run(["session", "exec", SESSION]).await.check_failed(&["error: "]);
    world.run(["sessions"]).await.check_failed(&["error: "]);
    world
        .run(["--context", "nowhere", "session", "list"])
        .await
        .check_failed(&["error: cannot use the kubeconfig"]);
    let ran = world.run(["--help"]).await;
    assert_eq!((ran.code, ran.stderr.as_str()), (0, ""));
}

#[tokio::test]
async fn what_is_no_namespace_s_name_is_refused_before_anybody_is_asked() {
    let world = world().await;
    for name in ["", "a/b", "../team", "Team", "a.b", "-a", "team%2f", "a b", "té", "a\n", &"a".repeat(64)] {
        let flag = format!("--namespace={name}");
        for words in [&READ[..], &["session", "list"], &["session", "exec", SESSION, "--", "true"]] {
            let ran = world.run([&[flag.as_str()], words].concat()).await;
            ran.check_failed(&["error: invalid value", "lower-case letters, digits and '-'"]);
        }
    }
    // The kubeconfig's own is no better.
    let path = world.folder.path().join("kubeconfig");
    let good = std::fs::read_to_string(&path).expect("a kubeconfig");
    let own = format!("\"namespace\":\"{NAMESPACE}\"");
    assert!(good.contains(&own), "{good}");
    std::fs::write(&path, good.replace(&own, "\"namespace\":\"../team\"")).expect("a kubeconfig");
    world.run(READ).await.check_failed(&["error: a namespace cannot be named ../team"]);
    assert_eq!(world.api().n_requests, 0);
    assert!(world.gateway.state().calls.is_empty());
}

#[tokio::test]
async fn completion_needs_no_cluster() {
    for shell in ["bash", "zsh", "fish"] {
        let world = World::open().await;
        let ran = world.run(["completion", shell]).await;
        assert!(ran.code == 0 && ran.text().contains("kubectl-mooring"), "{shell}");
    }
}

#[tokio::test]
async fn a_kubeconfig_that_is_not_there_is_told_once() {
    let world = World::open().await;
    let ran = world.run(["session", "list", "--kubeconfig", "/nowhere/config"]).await;
    ran.check_failed(&["error: cannot use the kubeconfig: failed to read", "hint: kubectl config view"]);
    assert_eq!(ran.stderr.matches("No such file").count(), 1, "{ran:?}");
}
