//! Which symbolic links stay inside a tree.

/// Whether a link that lies `depth` folders below the root and points to `target` stays inside.
///
/// It may climb at its beginning, at most to the root, and nowhere else: after a name, `..` leads to the parent of whatever that
/// name is, which may be a link. The rule of Import, so that a tree whose links all pass has no chain of them that leaves it.
pub(crate) fn stays_inside(depth: usize, target: &[u8]) -> bool {
    if target.is_empty() || target.starts_with(b"/") || target.contains(&0) {
        return false;
    }
    let mut n_climbed = 0;
    let mut has_descended = false;
    for part in target.split(|byte| *byte == b'/') {
        match part {
            b"" | b"." => {}
            b".." if has_descended => return false,
            b".." => n_climbed += 1,
            _ => has_descended = true,
        }
    }
    n_climbed <= depth
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_stays_inside_when_it_climbs_only_at_its_beginning_and_not_too_far() {
        for (depth, target, expected) in [
            (0, "a", true),
            (0, "./a/b", true),
            (1, "../a", true),
            (0, "../a", false),
            (1, "../../a", false),
            (2, "a/../b", false),
            (5, "/etc/passwd", false),
            (0, "", false),
            (0, "a\0b", false),
            (0, "..", false),
            (1, "..", true),
        ] {
            assert_eq!(stays_inside(depth, target.as_bytes()), expected, "{depth} {target}");
        }
    }
}
