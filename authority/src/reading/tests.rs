use expect_test::{Expect, expect};

use super::{Unread, read};
use crate::context::Workspace;

#[track_caller]
fn check(script: &str, expected: &Expect) {
    let workspace = Workspace {
        root: "/ws".to_owned(),
        home: Some("/home/dev".to_owned()),
        tmp: None,
        trusted: false,
        git: None,
    };
    let reading = read(script, &workspace).unwrap();
    let mut lines: Vec<String> = reading
        .parts
        .iter()
        .map(|part| {
            let assigned: Vec<String> =
                part.assignments.iter().map(|(name, value)| format!("{name}={} ", value.text)).collect();
            let assigned = assigned.concat();
            let fed = if part.fed_by.is_empty() { String::new() } else { format!(" <{:?}", part.fed_by) };
            let folder = part.folder.as_deref().unwrap_or("?");
            let wraps = if part.wraps { "…" } else { "" };
            format!("{folder}: {assigned}{}{wraps}{fed}", part.shown())
        })
        .collect();
    lines.extend(reading.unread.iter().map(|unread| format!("! {unread:?}")));
    expected.assert_eq(&lines.join("\n"));
}

#[test]
fn folders_follow_cd_and_end_with_their_subshell() {
    check(
        "cd src && ls; (cd /tmp; pwd); cd -; ls",
        &expect![[r"
        /ws: cd src
        /ws/src: ls
        /ws/src: cd /tmp
        /tmp: pwd
        /ws/src: cd -
        ?: ls"]],
    );
}

#[test]
fn a_pipe_feeds_everything_after_it() {
    check(
        "cat x | sed s/a/b/ | sh",
        &expect![[r"
        /ws: cat x
        /ws: sed s/a/b/ <[0]
        /ws: sh <[0, 1]"]],
    );
}

#[test]
fn wrappers_are_taken_off_with_their_true_arity() {
    check(
        "sudo -u x -E nice -n 5 timeout -k 1 9 env A=1 git push",
        &expect![[r"
        /ws: sudo -u x -E nice -n 5 timeout -k 1 9 env A=1 git push…
        /ws: nice -n 5 timeout -k 1 9 env A=1 git push…
        /ws: timeout -k 1 9 env A=1 git push…
        /ws: env A=1 git push…
        /ws: A=1 git push"]],
    );
    check(
        "sudo -ux git push; nice -5 git push; timeout --sig KILL 5 git push",
        &expect![[r"
        /ws: sudo -ux git push…
        /ws: git push
        /ws: nice -5 git push…
        /ws: git push
        /ws: timeout --sig KILL 5 git push…
        /ws: git push"]],
    );
    check(
        "find . -name a -exec git rm {} + -o -exec ls {} \\;",
        &expect![[r"
        /ws: find . -name a -exec git rm {} + -o -exec ls {} ;…
        /ws: git rm ./…/a
        /ws: ls ./…/a"]],
    );
    check(
        "timeout --what 5 git push",
        &expect![[r"
        /ws: timeout --what 5 git push
        ! Wrapper"]],
    );
}

#[test]
fn nested_text_is_read() {
    check(
        "bash -euo pipefail -c 'echo a; echo $(b)'",
        &expect![[r"
        /ws: bash -euo pipefail -c echo a; echo $(b)…
        /ws: echo a
        /ws: b
        /ws: echo …"]],
    );
    check("ssh-agent sh <<'EOF'\nls\nEOF", &expect!["/ws: ssh-agent sh"]);
    check(
        "python3 -c \"import os; os.system('ls -l')\"",
        &expect![[r"
        /ws: python3 -c import os; os.system('ls -l')
        /ws: ls -l"]],
    );
}

#[test]
fn words_come_out_as_the_shell_would_pass_them() {
    check(
        "r\"m\" a\\ b 'c d' $'\\x41\\n' {x,y}z ~/q $HOME/r \"$U\" a*b ${V:-w}",
        &expect![[r"
        /ws: rm a b c d A
         xz yz /home/dev/q /home/dev/r … a*b w"]],
    );
    check(
        "A='1 2'; echo $A \"$A\"",
        &expect![[r"
        /ws: A=1 2 
        /ws: echo 1 2 1 2"]],
    );
}

#[test]
fn what_is_not_modelled_is_said() {
    check(
        "echo ${x@P}",
        &expect![[r#"
        /ws: echo
        ! Construct("a transformed variable")"#]],
    );
    check(
        "$X y",
        &expect![[r"
        /ws: … y
        ! Program"]],
    );
    check("ls )", &expect!["! Grammar"]);
}

#[test]
fn more_than_fifty_parts_or_ten_thousand_characters_are_not_read() {
    let unread = |script: &str| read(script, &Workspace::default()).unwrap().unread;
    assert_eq!(unread(&"a;".repeat(50)), []);
    assert_eq!(unread(&"a;".repeat(51)), [Unread::TooManyParts]);
    assert_eq!(unread(&"a".repeat(10_000)), []);
    assert_eq!(unread(&"a".repeat(10_001)), [Unread::TooLong]);
    // Characters are counted, not bytes.
    assert_eq!(unread(&"é".repeat(10_000)), []);
}

#[test]
fn a_here_document_in_a_substitution_ends_where_it_says() {
    check(
        "git commit -m \"$(cat <<'EOF'\nit's ) here\nEOF\n)\" && git push",
        &expect![[r"
        /ws: cat
        /ws: git commit -m …
        /ws: git push"]],
    );
}
