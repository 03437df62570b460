//! What the name of a variable says about it.

use super::{hook, vendor};

/// What kind of variable a name stands for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Mooring's own.
    Product,
    /// A credential for a model provider.
    Provider,
    /// Any other credential, or the way to one (a file, a socket, a helper program).
    Credential,
    /// Makes a loader, shell, interpreter or tool run something else.
    Hook,
    /// Nothing in the name speaks against it.
    Plain,
}

impl Verdict {
    /// Judges a name that [`parse`] accepted.
    pub(super) fn of(name: &str) -> Self {
        let upper = name.to_ascii_uppercase();
        if upper.starts_with("MOORING_") {
            return Self::Product;
        }
        let readings = [words(name, Split::AtMarks), words(name, Split::AtMarksAndCase)];
        if vendor::is_credential(&upper) || readings.iter().any(|words| is_credential(words)) {
            let is_provider = readings.iter().any(|words| vendor::is_model_provider(words));
            return if is_provider || vendor::is_provider_credential(&upper) {
                Self::Provider
            } else {
                Self::Credential
            };
        }
        if hook::is_hook(name, &upper) {
            return Self::Hook;
        }
        Self::Plain
    }
}

/// The name as text, when it can be one: printable ASCII, not empty, no `=`.
///
/// More than a shell's identifiers is accepted: programs read names such as `discovery.type` that no shell can set.
pub(super) fn parse(name: &[u8]) -> Option<&str> {
    let is_sound = !name.is_empty() && name.iter().all(|byte| byte.is_ascii_graphic() && *byte != b'=');
    if is_sound { str::from_utf8(name).ok() } else { None }
}

/// Whether the value is the address of a proxy, which may stand without a scheme (curl(1), "ENVIRONMENT").
pub(super) fn is_proxy(name: &str) -> bool {
    let upper = name.to_ascii_uppercase();
    upper.ends_with("_PROXY") && !upper.ends_with("NO_PROXY")
}

/// Where a name falls apart into words.
#[derive(Clone, Copy)]
enum Split {
    /// At everything but letters, digits included: `TOKEN2`, `npm_config_//host/:_auth`.
    AtMarks,
    /// Also at a change of case: `signingKey`, `GitHubToken`.
    AtMarksAndCase,
}

fn words(name: &str, split: Split) -> Vec<String> {
    let letters: Vec<char> = name.chars().collect();
    let mut words = vec![String::new()];
    for (at, &letter) in letters.iter().enumerate() {
        if !letter.is_ascii_alphabetic() {
            words.push(String::new());
            continue;
        }
        let next_is_lower = letters.get(at + 1).is_some_and(char::is_ascii_lowercase);
        let last_is_lower = at > 0 && letters[at - 1].is_ascii_lowercase();
        let begins = letter.is_ascii_uppercase() && (last_is_lower || next_is_lower);
        if begins && matches!(split, Split::AtMarksAndCase) {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut() {
            word.push(letter.to_ascii_uppercase());
        }
    }
    words.retain(|word| !word.is_empty());
    while words.len() > 1 && words.last().is_some_and(|word| word == "V") {
        words.pop(); // of `_V2`
    }
    words
}

/// Words that make a name a credential wherever they stand, unless the name ends in one of [`ABOUT`].
const STRONG: &[&str] = &["APIKEYS", "CREDS", "DBPASS", "PASSWORDS", "SECRETS"];

/// As [`STRONG`], but for any word that ends so: `PGPASSWORD`, `SYSTEM_ACCESSTOKEN`, `TAILSCALE_AUTHKEY`. `KEY` and `PASS`
/// cannot be here for `MONKEY` and `COMPASS`.
const STRONG_ENDINGS: &[&str] = &[
    "ACCESSKEY",
    "APIKEY",
    "ASKPASS",
    "AUTHKEY",
    "CREDENTIAL",
    "CREDENTIALS",
    "CREDENTIALSFILE",
    "ENCRYPTIONKEY",
    "KEYFILE",
    "MASTERKEY",
    "PASSFILE",
    "PASSPHRASE",
    "PASSWD",
    "PASSWORD",
    "PASSWORDFILE",
    "PRIVATEKEY",
    "SECRET",
    "SECRETKEY",
    "SECRETSFILE",
    "SIGNINGKEY",
    "TOKEN",
    "TOKENFILE",
];

/// Pairs that are credentials wherever they stand, unless the name ends in one of [`ABOUT`]: the second word alone says
/// too little.
const STRONG_PAIRS: &[(&[&str], &[&str])] = &[
    (
        &[
            "ACCESS",
            "ACCOUNT",
            "ADMIN",
            "AGE",
            "API",
            "APP",
            "APPLICATION",
            "AUTH",
            "CLIENT",
            "DECRYPTION",
            "DEPLOY",
            "ENCRYPTION",
            "GPG",
            "HMAC",
            "LICENSE",
            "MASTER",
            "PGP",
            "PRIVATE",
            "ROLE",
            "RSA",
            "SECRET",
            "SERVER",
            "SERVICE",
            "SHARED",
            "SIGNING",
            "SSH",
            "SSL",
            "STORAGE",
            "SUBSCRIPTION",
            "TLS",
        ],
        &["KEY", "KEYS"],
    ),
    (&["ACCESS", "API", "AUTH", "BEARER", "BOT", "REFRESH", "SECRET", "SESSION"], &["TOKENS"]),
    (&["CONNECTION"], &["STRING", "STRINGS"]),
];

/// Words that make a name a credential at its end, or with nothing but [`CARRIERS`] behind them.
const WEAK: &[&str] = &["AUTH", "COOKIE", "DSN", "JWT", "KEY", "PASS", "PAT", "PW", "PWD"];

/// What a credential comes in, or which of several it is.
const CARRIERS: &[&str] = &[
    "B",
    "BASE",
    "CMD",
    "COMMAND",
    "CONFIG",
    "CONTENT",
    "CONTENTS",
    "CURRENT",
    "DATA",
    "DEFAULT",
    "DEV",
    "FILE",
    "HEADER",
    "HEADERS",
    "HELPER",
    "ID",
    "IDENT",
    "JSON",
    "LIVE",
    "LOCAL",
    "NEW",
    "OLD",
    "PATH",
    "PEM",
    "PREVIOUS",
    "PRIMARY",
    "PROD",
    "PRODUCTION",
    "RAW",
    "SANDBOX",
    "SECONDARY",
    "STAGING",
    "STRING",
    "TEST",
    "TEXT",
    "VALUE",
];

/// A name that ends so tells something about a credential and is none: `PASSWORD_MIN_LENGTH`, `TOKEN_LIMIT`.
const ABOUT: &[&str] = &[
    "ADDR",
    "ADDRESS",
    "AGE",
    "ALG",
    "ALGO",
    "ALGORITHM",
    "AUDIENCE",
    "BUDGET",
    "CASE",
    "CHARSET",
    "COST",
    "COUNT",
    "DISABLED",
    "DURATION",
    "ENABLED",
    "ENCODING",
    "ENDPOINT",
    "EXPIRATION",
    "EXPIRES",
    "EXPIRY",
    "FORMAT",
    "HASHER",
    "HOST",
    "IMPL",
    "ISSUER",
    "ITERATIONS",
    "LAYOUT",
    "LEN",
    "LENGTH",
    "LIFETIME",
    "LIMIT",
    "MAX",
    "METHOD",
    "MIN",
    "MODE",
    "NAME",
    "PATTERN",
    "POLICY",
    "PORT",
    "PREFIX",
    "PROTO",
    "PROVIDER",
    "REGEX",
    "REGION",
    "REQUIRED",
    "ROTATION",
    "ROUNDS",
    "SCOPE",
    "SCOPES",
    "SIZE",
    "STRATEGY",
    "SUFFIX",
    "TCP",
    "TIMEOUT",
    "TTL",
    "TYPE",
    "UDP",
    "URL",
    "VERSION",
];

/// Keys that open nothing.
const OPEN_KEYS: &[&str] = &[
    "CACHE",
    "COMPOSE",
    "FOREIGN",
    "HOT",
    "IDEMPOTENCY",
    "PARTITION",
    "PRIMARY",
    "PUBLIC",
    "PUBLISHABLE",
    "ROUTING",
    "SORT",
    "UNIQUE",
];

/// `MAX_TOKEN` and its kin are about text, not about access.
const COUNTED_TOKENS: &[&str] =
    &["BOS", "CLS", "EOS", "MASK", "MAX", "MIN", "NUM", "PAD", "SEP", "STOP", "UNK"];

/// A `…_PWD` that is a folder.
const FOLDERS: &[&str] = &[
    "BASE", "BUILD", "CALLER", "INIT", "LAST", "OLD", "ORIG", "ORIGINAL", "PREV", "PROJECT", "REAL", "SAVED",
];

/// Services whose address carries the password: `DATABASE_URL`, `SQLALCHEMY_DATABASE_URI`.
const ADDRESSED_WITH_PASSWORD: &[&str] = &[
    "AMQP",
    "CLICKHOUSE",
    "CLOUDAMQP",
    "DATABASE",
    "DB",
    "JDBC",
    "MARIADB",
    "MONGO",
    "MONGODB",
    "MSSQL",
    "MYSQL",
    "PG",
    "POSTGRES",
    "POSTGRESQL",
    "RABBITMQ",
    "REDIS",
    "SMTP",
];

fn is_credential(words: &[String]) -> bool {
    let Some(last) = words.last().map(String::as_str) else {
        return false;
    };
    let is_address = matches!(last, "URL" | "URI");
    if is_address && words.iter().any(|word| ADDRESSED_WITH_PASSWORD.contains(&word.as_str())) {
        return true;
    }
    if !ABOUT.contains(&last) && (0..words.len()).any(|at| is_strong(words, at)) {
        return true;
    }
    (0..words.len()).any(|at| is_weak(words, at))
}

fn before(words: &[String], at: usize) -> &str {
    at.checked_sub(1).map_or("", |at| words[at].as_str())
}

fn is_strong(words: &[String], at: usize) -> bool {
    let (word, qualifier) = (words[at].as_str(), before(words, at));
    if word == "TOKEN" && COUNTED_TOKENS.contains(&qualifier) {
        return false;
    }
    STRONG.contains(&word)
        || STRONG_ENDINGS.iter().any(|ending| word.ends_with(ending))
        || STRONG_PAIRS.iter().any(|(firsts, seconds)| firsts.contains(&qualifier) && seconds.contains(&word))
}

fn is_weak(words: &[String], at: usize) -> bool {
    let (word, qualifier) = (words[at].as_str(), before(words, at));
    let opens_nothing = match word {
        "KEY" => OPEN_KEYS.contains(&qualifier),
        "PWD" | "PW" => at == 0 || FOLDERS.contains(&qualifier),
        _ => false,
    };
    WEAK.contains(&word)
        && !opens_nothing
        && words[at + 1..].iter().all(|word| CARRIERS.contains(&word.as_str()))
}
