//! Takes user and password out of the URLs in a value.

/// What became of a value.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Stripped {
    /// No URL in it has a user or password.
    Clean,
    /// The same value without them. Never longer.
    Rewritten(Vec<u8>),
    /// Nothing of use is left without them, or they cannot be told apart from the rest.
    Unusable,
}

/// Schemes whose address is useful without user and password: proxies, package indexes, repositories. Of any other scheme,
/// such as a database's, a value with a user in it goes whole: what is left would connect as somebody else.
const STILL_USEFUL: &[&str] = &[
    "file",
    "ftp",
    "ftps",
    "git",
    "git+http",
    "git+https",
    "http",
    "https",
    "registry+http",
    "registry+https",
    "socks",
    "socks4",
    "socks4a",
    "socks5",
    "socks5h",
    "sparse+http",
    "sparse+https",
    "ws",
    "wss",
];

/// Schemes where the part before `@`, without a colon, is no secret: a login name, or the container of an object store.
const PLAIN_USER: &[&str] = &["abfs", "abfss", "rsync", "sftp", "wasb", "wasbs"];

const MARK: &[u8] = b"://";

/// Strips every URL in `value`, wherever it stands. `is_proxy`: the value is an address, with or without a scheme.
///
/// The result stays as it is when it is stripped again.
pub(super) fn strip(value: &[u8], is_proxy: bool) -> Stripped {
    let mut rest = value.to_vec();
    // Each round takes at least one byte away, so this ends.
    while let Some(found) = next_userinfo(&rest, is_proxy) {
        match found {
            Found::Removable { from, to } => {
                rest.drain(from..to);
            }
            Found::Entangled => return Stripped::Unusable,
        }
    }
    if rest.len() == value.len() { Stripped::Clean } else { Stripped::Rewritten(rest) }
}

enum Found {
    /// `value[from..to]` is the userinfo with its `@`.
    Removable { from: usize, to: usize },
    /// It is there and the value is of no use, or cannot be read, without it.
    Entangled,
}

fn next_userinfo(value: &[u8], is_proxy: bool) -> Option<Found> {
    let mut search = 0;
    if let Some(found) = value.starts_with(b"//").then(|| authority(value, "", 2)).flatten() {
        return Some(found);
    }
    while let Some(mark) = find(&value[search..], MARK).map(|at| search + at) {
        search = mark + MARK.len();
        if let Some(found) = authority(value, &scheme(&value[..mark]), search) {
            return Some(found);
        }
    }
    if is_jdbc_with_user(value) {
        return Some(Found::Entangled);
    }
    is_proxy.then(|| bare_proxy(value)).flatten()
}

/// Looks at one authority (RFC 3986 §3.2), which begins at `start`.
fn authority(value: &[u8], scheme: &str, start: usize) -> Option<Found> {
    let run = value[start..].split(|byte| byte.is_ascii_whitespace() || b"\"'<>`".contains(byte)).next()?;
    let end = run.iter().position(|byte| b"/?#".contains(byte)).unwrap_or(run.len());
    let Some(at) = run[..end].iter().rposition(|&byte| byte == b'@') else {
        return is_split_password(&run[..end], &run[end..]).then_some(Found::Entangled);
    };
    if at == 0 {
        return None;
    }
    let is_login = !run[..at].contains(&b':') && (scheme.ends_with("ssh") || PLAIN_USER.contains(&scheme));
    if is_login {
        return None;
    }
    if scheme.is_empty() || scheme.ends_with("ssh") || STILL_USEFUL.contains(&scheme) {
        return Some(Found::Removable { from: start, to: start + at + 1 });
    }
    Some(Found::Entangled)
}

/// A password with an unescaped `/`, `?` or `#` ends the authority early: what looks like a port is no number, and an `@`
/// comes later.
fn is_split_password(authority: &[u8], rest: &[u8]) -> bool {
    let Some(colon) = authority.iter().rposition(|&byte| byte == b':') else {
        return false;
    };
    let port = &authority[colon + 1..];
    let is_address = authority.starts_with(b"[");
    let is_port = port.iter().all(u8::is_ascii_digit) || port.starts_with(b"$") || port.starts_with(b"{");
    // A list such as `https://one,https://two@v1` ends its first authority in another scheme.
    let is_next_scheme = port.is_empty() && rest.starts_with(b"//");
    !is_address && !is_port && !is_next_scheme && rest.contains(&b'@')
}

/// Oracle's form has no `://`: `jdbc:oracle:thin:user/password@//host`.
fn is_jdbc_with_user(value: &[u8]) -> bool {
    value.starts_with(b"jdbc:")
        && find(value, MARK).is_none()
        && value.iter().position(|&byte| byte == b'@').is_some_and(|at| value[..at].contains(&b'/'))
}

/// `user:password@host:port`.
fn bare_proxy(value: &[u8]) -> Option<Found> {
    let at = value.iter().rposition(|&byte| byte == b'@')?;
    if value[..at].contains(&b'/') {
        return Some(Found::Entangled);
    }
    Some(Found::Removable { from: 0, to: at + 1 })
}

/// The scheme that ends where `before` ends, in lower case.
fn scheme(before: &[u8]) -> String {
    let begin = before
        .iter()
        .rposition(|byte| !(byte.is_ascii_alphanumeric() || b"+-.".contains(byte)))
        .map_or(0, |at| at + 1);
    before[begin..].iter().map(|byte| char::from(byte.to_ascii_lowercase())).collect()
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}
