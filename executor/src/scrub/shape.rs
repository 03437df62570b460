//! Values that are secrets whatever the variable is called.

/// The bytes that may follow the beginning of a token.
#[derive(Clone, Copy)]
enum Tail {
    UpperDigits,
    Letters,
    /// Letters, digits, `-`, `_`.
    Url,
    /// As `Url`, and `.`, `+`, `/`, `=`.
    Any,
}

impl Tail {
    const fn holds(self, byte: u8) -> bool {
        match self {
            Self::UpperDigits => byte.is_ascii_uppercase() || byte.is_ascii_digit(),
            Self::Letters => byte.is_ascii_alphanumeric(),
            Self::Url => byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'),
            Self::Any => {
                byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'+' | b'/' | b'=')
            }
        }
    }
}

/// A kind of token: how it begins, what follows and how many bytes of that there must be.
struct Token(&'static str, Tail, usize);

/// Keys of model providers.
const PROVIDER_TOKENS: &[Token] = &[
    Token("sk-ant-", Tail::Url, 8),
    Token("sk-proj-", Tail::Url, 8),
    Token("sk-svcacct-", Tail::Url, 8),
    Token("sk-admin-", Tail::Url, 8),
    Token("sk-or-", Tail::Url, 8),
    Token("sk-", Tail::Letters, 16),
    Token("gsk_", Tail::Letters, 20),
    Token("hf_", Tail::Letters, 16),
    Token("nvapi-", Tail::Url, 16),
    Token("pplx-", Tail::Letters, 16),
    Token("r8_", Tail::Letters, 20),
    Token("xai-", Tail::Letters, 20),
];

/// Every other kind, as its issuer documents it or secret scanners know it. Where the beginning alone is unmistakable the
/// rest may be short; where it is a common word the length says more.
const TOKENS: &[Token] = &[
    // Forges: GitHub ("About authentication to GitHub", token formats), GitLab ("Token prefixes"), Atlassian.
    Token("ghp_", Tail::Letters, 8),
    Token("gho_", Tail::Letters, 8),
    Token("ghu_", Tail::Letters, 8),
    Token("ghs_", Tail::Any, 8),
    Token("ghr_", Tail::Letters, 8),
    Token("github_pat_", Tail::Url, 8),
    Token("glpat-", Tail::Any, 8),
    Token("gloas-", Tail::Any, 8),
    Token("gldt-", Tail::Any, 8),
    Token("glrt-", Tail::Any, 8),
    Token("glcbt-", Tail::Any, 8),
    Token("glptt-", Tail::Any, 8),
    Token("glft-", Tail::Any, 8),
    Token("glimt-", Tail::Any, 8),
    Token("glagent-", Tail::Any, 8),
    Token("glsoat-", Tail::Any, 8),
    Token("ATATT3", Tail::Any, 16),
    Token("ATBB", Tail::Letters, 24),
    // Clouds: AWS ("IAM identifiers", unique ID prefixes of keys), Google, DigitalOcean, Cloudflare, Fly, Netlify.
    Token("AKIA", Tail::UpperDigits, 12),
    Token("ASIA", Tail::UpperDigits, 12),
    Token("ABSK", Tail::Any, 40),
    Token("AIza", Tail::Url, 30),
    Token("ya29.", Tail::Any, 16),
    Token("GOCSPX-", Tail::Url, 16),
    Token("dop_v1_", Tail::Letters, 16),
    Token("doo_v1_", Tail::Letters, 16),
    Token("dor_v1_", Tail::Letters, 16),
    Token("FlyV1 ", Tail::Any, 16),
    Token("fo1_", Tail::Url, 24),
    Token("nfp_", Tail::Letters, 24),
    // Packages.
    Token("npm_", Tail::Letters, 30),
    Token("pypi-Ag", Tail::Any, 8),
    Token("pypi-", Tail::Url, 40),
    Token("rubygems_", Tail::Letters, 30),
    Token("dckr_pat_", Tail::Url, 8),
    Token("dckr_oat_", Tail::Url, 8),
    // Infrastructure.
    Token("hvs.", Tail::Any, 16),
    Token("hvb.", Tail::Any, 16),
    Token("hvr.", Tail::Any, 16),
    Token("dp.pt.", Tail::Letters, 16),
    Token("dp.st.", Tail::Any, 16),
    Token("pul-", Tail::Letters, 30),
    Token("tskey-", Tail::Url, 12),
    Token("AGE-SECRET-KEY-1", Tail::UpperDigits, 8),
    Token("ops_eyJ", Tail::Any, 16),
    // Services.
    Token("xoxa-", Tail::Url, 8),
    Token("xoxb-", Tail::Url, 8),
    Token("xoxc-", Tail::Url, 8),
    Token("xoxd-", Tail::Any, 8),
    Token("xoxe-", Tail::Url, 8),
    Token("xoxe.", Tail::Any, 8),
    Token("xoxp-", Tail::Url, 8),
    Token("xoxr-", Tail::Url, 8),
    Token("xoxs-", Tail::Url, 8),
    Token("xapp-", Tail::Url, 8),
    Token("hooks.slack.com/services/", Tail::Any, 8),
    Token("discord.com/api/webhooks/", Tail::Any, 8),
    Token("discordapp.com/api/webhooks/", Tail::Any, 8),
    Token("sk_live_", Tail::Letters, 8),
    Token("sk_test_", Tail::Letters, 8),
    Token("rk_live_", Tail::Letters, 8),
    Token("rk_test_", Tail::Letters, 8),
    Token("whsec_", Tail::Any, 16),
    Token("SG.", Tail::Any, 40),
    Token("shpat_", Tail::Letters, 16),
    Token("shpca_", Tail::Letters, 16),
    Token("shppa_", Tail::Letters, 16),
    Token("shpss_", Tail::Letters, 16),
    Token("sq0atp-", Tail::Url, 16),
    Token("sq0csp-", Tail::Url, 16),
    Token("sntrys_", Tail::Any, 16),
    Token("sntryu_", Tail::Letters, 16),
    Token("glc_", Tail::Any, 24),
    Token("glsa_", Tail::Url, 24),
    Token("lin_api_", Tail::Letters, 16),
    Token("ntn_", Tail::Letters, 30),
    Token("figd_", Tail::Url, 16),
    Token("PMAK-", Tail::Url, 24),
    Token("lsv2_pt_", Tail::Url, 16),
    Token("lsv2_sk_", Tail::Url, 16),
    Token("pcsk_", Tail::Url, 24),
    Token("sbp_", Tail::Letters, 24),
    Token("tvly-", Tail::Url, 16),
];

/// What a PEM text (RFC 7468 §2) or its like may be without being a secret.
const OPEN_TEXTS: &[&str] = &[
    " CERTIFICATE-----",
    " CERTIFICATE REQUEST-----",
    " NEW CERTIFICATE REQUEST-----",
    " PGP PUBLIC KEY BLOCK-----",
    " PUBLIC KEY-----",
    " RSA PUBLIC KEY-----",
    " TRUSTED CERTIFICATE-----",
    " X509 CRL-----",
];

/// Texts that are secrets wherever they stand. The first is `-----BEGIN ` in base64; a certificate's goes on as
/// [`OPEN_BASE64`].
const SECRET_TEXTS: &[&str] =
    &["LS0tLS1CRUdJTi", "PuTTY-User-Key-File-", "---- BEGIN SSH2 ENCRYPTED PRIVATE KEY"];
const OPEN_BASE64: &str = "LS0tLS1CRUdJTiBDRVJUSUZJQ0FURS";

/// Words that are given a secret inside a value, lower case: `Server=db;Password=…`, `{"auth": "…"}`, `x-api-key: …`.
const ASSIGNED: &[&str] = &[
    "_auth",
    "_authtoken",
    "_password",
    "access_token",
    "accesskey",
    "accountkey",
    "api-key",
    "api_key",
    "apikey",
    "authorization",
    "client_secret",
    "identitytoken",
    "passphrase",
    "passwd",
    "password",
    "private-token",
    "private_key",
    "pwd",
    "secret_key",
    "secretkey",
    "sharedaccesskey",
    "sharedaccesssignature",
    "sslpassword",
    "x-api-key",
    "x-auth-token",
];

/// The same as keys of a JSON text alone: `auth=debug` is a log filter.
const KEYED: &[&str] = &["auth", "secret", "token"];

/// The same in the query of a URL alone, where shorter words mean it too.
const QUERIED: &[&str] = &["key", "secret", "sig", "token", "x-amz-security-token", "x-amz-signature"];

/// What is given to a word of the lists without being a secret: levels of log filters, switches.
const SETTINGS: &[&str] =
    &["trace", "debug", "info", "warn", "error", "off", "on", "true", "false", "yes", "no", "none", "null"];

/// Whether any part of `value` is a secret.
pub(super) fn holds_secret(value: &[u8]) -> bool {
    holds_provider_key(value)
        || TOKENS.iter().any(|token| holds_token(value, token))
        || holds_signed_token(value)
        || holds_chat_token(value)
        || holds_private_text(value)
        || holds_assignment(value)
        || is_header_value(value)
        || value.starts_with(b"() {") // a function exported by a shell older than bash 4.3-patch 27
}

/// Whether any part of `value` is a key of a model provider.
pub(super) fn holds_provider_key(value: &[u8]) -> bool {
    PROVIDER_TOKENS.iter().any(|token| holds_token(value, token))
}

fn holds_token(value: &[u8], Token(beginning, tail, least): &Token) -> bool {
    places(value, beginning.as_bytes()).any(|at| {
        let stands_alone = at == 0 || !value[at - 1].is_ascii_alphanumeric();
        stands_alone && run(&value[at + beginning.len()..], *tail) >= *least
    })
}

/// A JSON Web Token or its encrypted form: parts in base64url with dots, the first a JSON object (RFC 7519 §3).
fn holds_signed_token(value: &[u8]) -> bool {
    places(value, b"eyJ").any(|at| {
        let first = run(&value[at..], Tail::Url);
        let second = value.get(at + first + 1..).map_or(0, |rest| run(rest, Tail::Url));
        first >= 8
            && second >= 4
            && value.get(at + first) == Some(&b'.')
            && value.get(at + first + second + 1) == Some(&b'.')
    })
}

/// Telegram's bots: digits, a colon, 35 letters beginning with `AA` (Bot API, "Authorizing your bot").
fn holds_chat_token(value: &[u8]) -> bool {
    places(value, b":AA").any(|at| {
        let digits = value[..at].iter().rev().take_while(|byte| byte.is_ascii_digit()).count();
        digits >= 8 && run(&value[at + 1..], Tail::Url) >= 32
    })
}

fn holds_private_text(value: &[u8]) -> bool {
    const BEGIN: &[u8] = b"-----BEGIN";
    let is_open =
        |at: usize| OPEN_TEXTS.iter().any(|open| value[at + BEGIN.len()..].starts_with(open.as_bytes()));
    places(value, BEGIN).any(|at| !is_open(at))
        || SECRET_TEXTS.iter().any(|text| {
            places(value, text.as_bytes()).any(|at| !value[at..].starts_with(OPEN_BASE64.as_bytes()))
        })
}

/// A whole value that is sent as a header: `Bearer …`, `Basic …` (RFC 7235 §2.1). One word in lower case is prose.
fn is_header_value(value: &[u8]) -> bool {
    ["bearer ", "basic ", "token "].iter().any(|scheme| {
        let is_scheme =
            value.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme.as_bytes()));
        let given = value.get(scheme.len()..).unwrap_or_default();
        let is_prose = given.iter().all(u8::is_ascii_lowercase);
        is_scheme && given.len() >= 12 && run(given, Tail::Any) == given.len() && !is_prose
    })
}

/// `word=something` or `"word": "something"` for a word of the lists.
fn holds_assignment(value: &[u8]) -> bool {
    let lower = value.to_ascii_lowercase();
    let is_key =
        |at: usize, word: &str| at > 0 && lower[at - 1] == b'"' && lower.get(at + word.len()) == Some(&b'"');
    ASSIGNED.iter().any(|word| places(&lower, word.as_bytes()).any(|at| is_assigned(&lower, at, word.len())))
        || KEYED.iter().any(|word| {
            places(&lower, word.as_bytes()).any(|at| is_key(at, word) && is_assigned(&lower, at, word.len()))
        })
        || QUERIED.iter().any(|word| {
            places(&lower, word.as_bytes())
                .any(|at| at > 0 && b"?&".contains(&lower[at - 1]) && is_assigned(&lower, at, word.len()))
        })
}

fn is_assigned(lower: &[u8], at: usize, length: usize) -> bool {
    let begins = at == 0 || !(lower[at - 1].is_ascii_alphanumeric() || b"_-".contains(&lower[at - 1]));
    let rest = &lower[at + length..];
    let (is_quoted, rest) = rest.strip_prefix(b"\"").map_or((false, rest), |rest| (true, rest));
    let rest = rest.trim_ascii_start();
    let given = match rest.split_first() {
        Some((b'=', given)) => given,
        Some((b':', given)) if is_quoted || is_header_name(&lower[at..at + length]) => {
            given.trim_ascii_start()
        }
        Some(_) | None => return false,
    };
    let given = given.strip_prefix(b"\"").unwrap_or(given);
    let is_setting = SETTINGS.iter().any(|setting| given[..run(given, Tail::Letters)] == *setting.as_bytes());
    begins
        && !is_setting
        && given.first().is_some_and(|byte| !byte.is_ascii_whitespace() && !b"\"';&,$<{[".contains(byte))
}

fn is_header_name(word: &[u8]) -> bool {
    [&b"authorization"[..], b"api-key", b"private-token", b"x-api-key", b"x-auth-token"].contains(&word)
}

fn run(bytes: &[u8], tail: Tail) -> usize {
    bytes.iter().take_while(|byte| tail.holds(**byte)).count()
}

/// Every place where `needle` begins in `haystack`.
fn places<'a>(haystack: &'a [u8], needle: &'a [u8]) -> impl Iterator<Item = usize> + 'a {
    let first = needle.first().copied().unwrap_or_default();
    haystack
        .iter()
        .enumerate()
        .filter(move |(at, byte)| **byte == first && haystack[*at..].starts_with(needle))
        .map(|(at, _)| at)
}
