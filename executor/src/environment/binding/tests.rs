use super::*;

#[test]
fn the_highest_common_protocol_is_spoken() {
    let common = |min, max| common_protocol(Some(&v1::ProtocolRange { min, max }));
    assert!(matches!(common(1, 1), Ok(1)));
    assert!(matches!(common(1, 65_535), Ok(1)));
    assert!(matches!(common(2, 3), Err(BindError::Protocol)));
    for (min, max) in [(0, 1), (2, 1), (1, 65_536), (0, 0)] {
        assert!(matches!(common(min, max), Err(BindError::Malformed(_))), "{min}..={max}");
    }
    assert!(matches!(common_protocol(None), Err(BindError::Malformed(_))));
}

#[test]
fn zero_is_the_default_of_every_limit() {
    let limits = Limits::parse(&v1::Limits::default()).expect("defaults");
    assert_eq!(limits.max_timeout.as_secs(), 3600);
    assert_eq!((limits.processes, limits.live_commands, limits.background_commands), (512, 64, 8));
    assert_eq!(limits.output_bytes, 8 << 20);
}

#[test]
fn limits_out_of_bounds_are_refused() {
    let default = v1::Limits::default();
    for limits in [
        v1::Limits { max_timeout_millis: -1, ..default },
        v1::Limits { max_timeout_millis: i64::MAX, ..default },
        v1::Limits { processes: 65_537, ..default },
        v1::Limits { live_commands: 65, ..default },
        v1::Limits { background_commands: 9, ..default },
        v1::Limits { output_bytes: 65_535, ..default },
        v1::Limits { output_bytes: (64 << 20) + 1, ..default },
    ] {
        assert!(matches!(Limits::parse(&limits), Err(BindError::Malformed(_))), "{limits:?}");
    }
}
