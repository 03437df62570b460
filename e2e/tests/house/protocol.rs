//! Rules about the protocol's text.

use super::{check_none, has_extension, texts};

const NUMBERS: &[&str] = &[
    "double", "fixed32", "fixed64", "float", "int32", "int64", "sfixed32", "sfixed64", "sint32", "sint64",
    "uint32", "uint64",
];

/// Whether this line declares a field that is a number: `  repeated uint64 offsets = 3;`.
fn is_number(line: &str) -> bool {
    let mut words = line.split_whitespace().filter(|word| !matches!(*word, "optional" | "repeated"));
    let is_kind = words.next().is_some_and(|kind| NUMBERS.contains(&kind));
    is_kind && words.nth(1) == Some("=")
}

/// A number says its unit and bounds above it. Numbers in consecutive lines may share the remark.
#[test]
fn every_number_of_the_protocol_has_a_unit_and_bounds() {
    let mut offences = Vec::new();
    for (file, text) in texts(|file| has_extension(file, &["proto"])) {
        let mut is_told = false;
        for (at, line) in text.lines().map(str::trim).enumerate() {
            if is_number(line) && !is_told {
                offences.push(format!("{}:{}: {line}", file.display(), at + 1));
            }
            is_told = line.starts_with("//") || (is_told && is_number(line));
        }
    }
    check_none("a number without a remark above it", &offences);
}

/// So that a value nobody set is never a meaning (protobuf.dev, "Style guide", enums).
#[test]
fn every_enum_of_the_protocol_begins_unspecified() {
    let mut offences = Vec::new();
    for (file, text) in texts(|file| has_extension(file, &["proto"])) {
        let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.starts_with("//")).collect();
        for pair in lines.windows(2) {
            if pair[0].starts_with("enum ") && !pair[1].ends_with("_UNSPECIFIED = 0;") {
                offences.push(format!("{}: {} begins with {}", file.display(), pair[0], pair[1]));
            }
        }
    }
    check_none("an enum whose zero means something", &offences);
}
