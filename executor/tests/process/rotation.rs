//! New certificates while the executor runs.

use mooring_proto::v1::{AttachRequest, StartRequest, attach_response};

use crate::fixture::{Authority, Ground, Pod, await_condition, text};

#[tokio::test]
async fn a_rotated_authority_counts_for_the_next_connection_and_open_streams_go_on() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let request = StartRequest {
        background: true,
        ..text("until [ -e go ]; do sleep 0.01; done; echo late; touch gone")
    };
    let command_id = pod.start_command(request).await.expect("Start").command_id;
    let attach = AttachRequest { context: pod.look(), command_id, ..AttachRequest::default() };
    let mut events = pod.commands().attach(attach).await.expect("Attach").into_inner();

    let next = Authority::new();
    ground.project(&next.server(), &next.pem());
    let old = pod.connect(&ground, &ground.authority.harness()).await;
    assert!(old.is_err(), "the old authority is not trusted, and its clients do not trust the new one");
    let tls = next.tls(&next.harness());
    let fresh = pod.endpoint().tls_config(tls).expect("a configuration").connect().await;
    fresh.expect("the new authority's harness");
    pod.await_log("the certificate or its authority was replaced").await;

    std::fs::write(pod.path("go"), "").expect("a file");
    let mut output = Vec::new();
    while let Some(event) = events.message().await.expect("the stream goes on") {
        if let Some(attach_response::Event::Output(frame)) = event.event {
            output.extend_from_slice(&frame.content);
        }
    }
    assert_eq!(output, b"late\n");
}

#[tokio::test]
async fn half_written_or_mixed_files_change_nothing_until_they_are_whole() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    let authority = ground.authority.pem();
    let (old, new) = (ground.authority.server(), ground.authority.server());
    let (half, _) = new.certificate.split_at(new.certificate.len() / 2);
    let broken: [[&str; 3]; 6] = [
        [half, &new.key, &authority],
        [&new.certificate, "", &authority],
        [&new.certificate, &old.key, &authority],
        ["", "", ""],
        [&new.certificate, &new.key, ""],
        [&new.certificate, &new.key, half],
    ];
    for files in broken {
        ground.project_files(files.map(str::as_bytes));
        pod.connect(&ground, &ground.authority.harness()).await.expect("the last good pair");
    }
    pod.await_log("newer certificate files cannot be used").await;
    assert!(!pod.log().contains("was replaced"));
    ground.project(&new, &authority);
    pod.connect(&ground, &ground.authority.harness()).await.expect("the new pair");
    assert!(pod.log().contains("was replaced"));
    for secret in [&old.key, &new.key] {
        let line = secret.lines().nth(1).expect("a line of the key");
        assert!(!pod.log().contains(line));
    }
}

#[tokio::test]
async fn files_that_vanish_change_nothing() {
    let ground = Ground::new();
    let pod = Pod::start(&ground).await;
    std::fs::remove_file(ground.tls.join("..data")).expect("was there");
    await_condition("the link is gone", || !ground.tls.join("..data").exists()).await;
    pod.connect(&ground, &ground.authority.harness()).await.expect("the last good pair");
}
