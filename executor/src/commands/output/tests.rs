use proptest::prelude::*;

use super::*;

/// Everything a reader at `offset` gets to see, gaps as their bounds.
fn read_all(output: &Output, mut offset: u64, max: usize) -> Vec<(u64, Piece)> {
    let mut seen = Vec::new();
    loop {
        let piece = output.read(offset, max);
        let next = match &piece {
            Piece::Bytes(bytes) => offset + bytes.len() as u64,
            Piece::Gap { to } => *to,
            Piece::Nothing => return seen,
        };
        seen.push((offset, piece));
        offset = next;
    }
}

proptest! {
    #[test]
    fn a_reader_gets_exactly_what_was_written_or_is_told_the_gap(
        writes in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..40), 0..40),
        limit in 2_usize..64,
        offset in 0_u64..400,
        max in 1_usize..20,
    ) {
        let mut output = Output::new(limit);
        let mut all = Vec::new();
        for write in &writes {
            output.append(write);
            all.extend_from_slice(write);
        }
        prop_assert_eq!(output.total(), all.len() as u64);
        prop_assert!(output.kept() <= limit);
        prop_assert_eq!(output.dropped() + output.kept() as u64, output.total());
        let mut at = offset;
        let mut gaps = 0;
        for (from, piece) in read_all(&output, offset, max) {
            prop_assert_eq!(from, at);
            match piece {
                Piece::Bytes(bytes) => {
                    prop_assert!(!bytes.is_empty() && bytes.len() <= max);
                    let start = usize::try_from(from).expect("small");
                    prop_assert_eq!(&bytes, &all[start..start + bytes.len()]);
                    at = from + bytes.len() as u64;
                }
                Piece::Gap { to } => {
                    prop_assert!(to > from);
                    gaps += 1;
                    at = to;
                }
                Piece::Nothing => unreachable!("the end of read_all"),
            }
        }
        prop_assert_eq!(at, offset.max(all.len() as u64));
        prop_assert!(gaps <= 1);
        prop_assert!(output.dropped() > 0 || gaps == 0);
    }
}

#[test]
fn memory_stays_within_the_limit_under_a_flood() {
    let mut output = Output::new(1 << 20);
    let block = vec![b'y'; 65_536];
    for _ in 0..1000 {
        output.append(&block);
    }
    assert_eq!(output.kept(), 1 << 20);
    assert_eq!(output.dropped(), 1000 * 65_536 - (1 << 20));
    assert!(output.head.capacity() + output.tail.capacity() <= 1 << 20);
}

#[test]
fn the_first_and_the_last_bytes_are_the_ones_kept() {
    let mut output = Output::new(8);
    output.append(b"abcdefghijklmnop");
    assert_eq!(
        read_all(&output, 0, 100),
        [
            (0, Piece::Bytes(b"abcd".to_vec())),
            (4, Piece::Gap { to: 12 }),
            (12, Piece::Bytes(b"mnop".to_vec()))
        ]
    );
}
