//! Names and labels of what the operator makes. They follow from UIDs by hash, never by cutting, so a Session of any name
//! has them, and the same name again has others.

use std::fmt::Write as _;

use mooring_operator_api::Uid;
use sha2::{Digest, Sha256};

/// The most bytes of a label's value (Kubernetes, "Labels and Selectors").
const MAX_LABEL_BYTES: usize = 63;
/// Digits of a UID's hash in a name: 80 bits.
const NAME_DIGITS: usize = 20;
/// Digits of a hash that stands for a whole name in a label: 160 bits, since people choose names.
const LABEL_DIGITS: usize = 40;

/// Name of a Session's volume claim.
pub fn claim(session: &Uid) -> String {
    format!("ses-{}", digest(session.as_str(), NAME_DIGITS))
}

/// Name of the pod of one epoch of a Session, and of the Secret with its certificate. At most 44 bytes: one DNS label.
pub fn pod(session: &Uid, epoch: i64) -> String {
    format!("{}-{epoch}", claim(session))
}

/// What the name of a pod says: the name of its Session's claim, and its epoch. `None` for any other name.
pub(crate) fn of_pod(name: &str) -> Option<(&str, i64)> {
    let (claim, epoch) = name.rsplit_once('-')?;
    let epoch = epoch.parse().ok().filter(|epoch| *epoch > 0)?;
    claim.strip_prefix("ses-").filter(|digits| digits.len() == NAME_DIGITS).map(|_| (claim, epoch))
}

/// Name of a class's network policy.
pub fn policy(class: &Uid) -> String {
    format!("exc-{}", digest(class.as_str(), NAME_DIGITS))
}

/// An object's name as a label's value: itself, or a hash where it is longer than 63 bytes.
///
/// The hash has an underscore, which no object's name has: nobody can choose a name that is the hash of another one, and
/// so come under its network policy.
pub fn label(name: &str) -> String {
    if name.len() <= MAX_LABEL_BYTES {
        name.to_owned()
    } else {
        format!("sha256_{}", digest(name, LABEL_DIGITS))
    }
}

fn digest(text: &str, digits: usize) -> String {
    let mut hex = hex(&Sha256::digest(text));
    hex.truncate(digits);
    hex
}

/// Bytes as lower-case hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String does not fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "0f3a1c1e-52f5-4d0e-9d3f-6f3a4f0b2c11";

    #[test]
    fn names_are_one_dns_label_up_to_the_highest_epoch() {
        let (claim, pod) = (claim(&UID.into()), pod(&UID.into(), i64::MAX));
        assert_eq!(claim, "ses-1f6685236f58fb8260b3");
        assert_eq!(pod, format!("{claim}-9223372036854775807"));
        assert!(pod.len() <= 63 && pod.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'-'));
    }

    #[test]
    fn a_pod_s_name_tells_its_epoch() {
        for number in [1, 2, i64::MAX] {
            let (claim, pod) = (claim(&UID.into()), pod(&UID.into(), number));
            assert_eq!(of_pod(&pod), Some((claim.as_str(), number)));
        }
        let other = ["", "-0", "--1", "-y", "-01x"].map(|end| format!("ses-1f6685236f58fb8260b3{end}"));
        for name in other.iter().map(String::as_str).chain(["ses-x-1", "other-1"]) {
            assert_eq!(of_pod(name), None, "{name}");
        }
    }

    #[test]
    fn another_uid_has_other_names() {
        assert_ne!(claim(&UID.into()), claim(&"0f3a1c1e-52f5-4d0e-9d3f-6f3a4f0b2c12".into()));
        assert_ne!(pod(&UID.into(), 1), pod(&UID.into(), 2));
        assert_ne!(pod(&UID.into(), 11), pod(&UID.into(), 1));
    }

    #[test]
    fn a_label_is_the_name_up_to_63_bytes_and_a_hash_beyond() {
        let [fits, over, longest] = [63, 64, 253].map(|length| "a".repeat(length));
        assert_eq!(label(&fits), fits);
        assert_eq!(label(&over), "sha256_ffe054fe7ae0cb6dc65c3af9b61d5209f439851d");
        for name in [&over, &longest] {
            assert!(label(name).len() <= 63, "{name}");
        }
        assert_ne!(label(&over), label(&longest));
    }

    #[test]
    fn long_names_with_an_equal_beginning_or_end_keep_apart() {
        let stem = "x".repeat(100);
        assert_ne!(label(&format!("{stem}a")), label(&format!("{stem}b")));
        assert_ne!(label(&format!("a{stem}")), label(&format!("b{stem}")));
    }
}
