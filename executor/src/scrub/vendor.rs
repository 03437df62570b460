//! Credentials whose names do not say so. A rule in `name.rs` is better than a line here.

/// Whole names, upper case: files, sockets, folders and texts that hold or reach credentials.
const NAMES: &[&str] = &[
    "ACTIONS_CACHE_URL",
    "ACTIONS_RESULTS_URL",
    "ANTHROPIC_CUSTOM_HEADERS",
    "APPLICATIONINSIGHTS_CONNECTION_STRING",
    "AWS_CONFIG_FILE",
    "AWS_SHARED_CREDENTIALS_FILE",
    "AZURE_CLIENT_CERTIFICATE_PATH",
    "AZURE_CONFIG_DIR",
    "BW_SESSION",
    "CLOUDSDK_CONFIG",
    "CURL_HOME",
    "DOCKER_CONFIG",
    "GH_CONFIG_DIR",
    "GNUPGHOME",
    "GOAUTH",
    "GPG_AGENT_INFO",
    "IDENTITY_HEADER",
    "KRB5CCNAME",
    "KUBECONFIG",
    "NETRC",
    "NPM_CONFIG_GLOBALCONFIG",
    "NPM_CONFIG_USERCONFIG",
    "PGSERVICEFILE",
    "RESTIC_REPOSITORY",
    "SLACK_WEBHOOK_URL",
    "SSH_AUTH_SOCK",
    "VSS_NUGET_EXTERNAL_FEED_ENDPOINTS",
    "WGETRC",
];

/// Beginnings, upper case. Behind some stands a host name, which may end in any word.
const BEGINNINGS: &[&str] = &[
    "ACTIONS_ID_TOKEN_",
    "ACTIONS_RUNTIME_",
    "AWS_CONTAINER_AUTHORIZATION_",
    "AWS_CONTAINER_CREDENTIALS_",
    "CLOUDSDK_AUTH_",
    "OP_SESSION_",
    "POETRY_HTTP_BASIC_",
    "POETRY_PYPI_TOKEN_",
    "TF_TOKEN_",
];

/// Bundler keeps a host's credential under the host's name, dots written as `__` (bundle-config(1), "CREDENTIALS FOR GEM
/// SOURCES"), and its own settings with `__` in these groups.
const BUNDLER_SETTINGS: &[&str] = &["BUNDLE_BUILD__", "BUNDLE_LOCAL__", "BUNDLE_MIRROR__"];

/// Who serves models. One of these words in a credential's name makes it a provider's.
const MODEL_PROVIDERS: &[&str] = &[
    "ANTHROPIC",
    "BEDROCK",
    "CEREBRAS",
    "CLAUDE",
    "COHERE",
    "DASHSCOPE",
    "DEEPINFRA",
    "DEEPSEEK",
    "FIREWORKS",
    "GEMINI",
    "GROQ",
    "HF",
    "HUGGING",
    "HUGGINGFACE",
    "HUGGINGFACEHUB",
    "MISTRAL",
    "MOONSHOT",
    "OPENAI",
    "OPENROUTER",
    "PERPLEXITY",
    "REPLICATE",
    "TOGETHER",
    "VERTEX",
    "VOYAGE",
    "XAI",
    "ZAI",
    "ZHIPU",
];

/// Credentials that open a model among other things.
const ALSO_MODELS: &[&str] = &["GOOGLE_API_KEY"];

/// Whether this name, in upper case, is on one of the lists.
pub(super) fn is_credential(upper: &str) -> bool {
    NAMES.contains(&upper)
        || BEGINNINGS.iter().any(|beginning| upper.starts_with(beginning))
        || is_telemetry_header(upper)
        || is_bundler_host(upper)
        || upper.contains("JAAS_CONFIG")
        || upper.ends_with("WEBHOOK_URL")
}

/// Whether a credential with these words is a model provider's.
pub(super) fn is_model_provider(words: &[String]) -> bool {
    words.iter().any(|word| MODEL_PROVIDERS.contains(&word.as_str()))
}

/// Whether this name, in upper case, is a provider's although no word says so.
pub(super) fn is_provider_credential(upper: &str) -> bool {
    ALSO_MODELS.contains(&upper)
}

/// `OTEL_EXPORTER_OTLP_HEADERS` and its forms by signal carry the collector's key (OpenTelemetry protocol exporter,
/// "Specifying headers via environment variables").
fn is_telemetry_header(upper: &str) -> bool {
    upper.starts_with("OTEL_") && upper.ends_with("_HEADERS")
}

fn is_bundler_host(upper: &str) -> bool {
    upper.strip_prefix("BUNDLE_").is_some_and(|rest| rest.contains("__"))
        && !BUNDLER_SETTINGS.iter().any(|group| upper.starts_with(group))
}
