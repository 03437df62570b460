-- The whole schema of the store, in the common subset of SQLite and PostgreSQL.
-- Times are milliseconds since 1970-01-01T00:00Z. Ids are 32 hexadecimal digits. Closed sets are the words of the code.

CREATE TABLE sessions (
    id TEXT NOT NULL PRIMARY KEY,
    profile TEXT NOT NULL,
    mode TEXT NOT NULL,
    trusted BOOLEAN NOT NULL,
    suspended BOOLEAN NOT NULL,
    model TEXT,
    limit_turns BIGINT NOT NULL,
    limit_tool_calls BIGINT NOT NULL,
    limit_tokens BIGINT NOT NULL,
    limit_failures BIGINT NOT NULL,
    limit_wall_millis BIGINT NOT NULL,
    usage_input_tokens BIGINT NOT NULL,
    usage_output_tokens BIGINT NOT NULL,
    usage_requests BIGINT NOT NULL,
    -- JSON array of words, sorted.
    taints TEXT NOT NULL,
    -- All three or none: a snapshot without a reference resolves to "unknown".
    environment_kind TEXT,
    environment_id TEXT,
    environment_revision TEXT,
    creator TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    -- Counters of the rows below. They only rise, so a number is never used twice.
    last_event BIGINT NOT NULL,
    last_message BIGINT NOT NULL,
    last_item BIGINT NOT NULL,
    -- One writer at a time: every write of a run is conditional on the epoch. Rises by one with each acquisition.
    lease_epoch BIGINT NOT NULL,
    lease_holder TEXT,
    lease_expires_at BIGINT NOT NULL,
    CHECK ((environment_kind IS NULL) = (environment_id IS NULL)),
    CHECK ((environment_kind IS NULL) = (environment_revision IS NULL))
);

CREATE TABLE local_bindings (
    root TEXT NOT NULL PRIMARY KEY,
    revision TEXT NOT NULL,
    -- statfs f_fsid and st_ino as decimal text: both are unsigned 64 bits.
    filesystem TEXT NOT NULL,
    inode TEXT NOT NULL,
    created_at BIGINT NOT NULL
);

CREATE TABLE runs (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    message BIGINT NOT NULL,
    state TEXT NOT NULL,
    outcome TEXT,
    error_code TEXT,
    error_message TEXT,
    interrupt_requested BOOLEAN NOT NULL,
    turns BIGINT NOT NULL,
    tool_calls BIGINT NOT NULL,
    tokens BIGINT NOT NULL,
    failures BIGINT NOT NULL,
    created_at BIGINT NOT NULL,
    started_at BIGINT,
    finished_at BIGINT
);
CREATE UNIQUE INDEX runs_by_message ON runs (session_id, message);
CREATE INDEX runs_by_state ON runs (state);

CREATE TABLE messages (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    origin TEXT NOT NULL,
    text TEXT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    steers BOOLEAN NOT NULL,
    delivered BOOLEAN NOT NULL,
    created_at BIGINT NOT NULL,
    PRIMARY KEY (session_id, number)
);

CREATE TABLE items (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    number BIGINT NOT NULL,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, number)
);

CREATE TABLE events (
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    id BIGINT NOT NULL,
    at BIGINT NOT NULL,
    kind TEXT NOT NULL,
    body TEXT NOT NULL,
    PRIMARY KEY (session_id, id)
);

CREATE TABLE operations (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    boot_id TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    finished_at BIGINT
);
CREATE INDEX operations_by_run ON operations (run_id, state);

CREATE TABLE approvals (
    id TEXT NOT NULL PRIMARY KEY,
    session_id TEXT NOT NULL REFERENCES sessions (id) ON DELETE CASCADE,
    run_id TEXT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    call_id TEXT NOT NULL,
    tool TEXT NOT NULL,
    arguments TEXT NOT NULL,
    digest TEXT NOT NULL,
    question TEXT NOT NULL,
    state TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    expires_at BIGINT NOT NULL,
    decided_at BIGINT,
    decided_by TEXT
);
CREATE INDEX approvals_by_state ON approvals (state, session_id);
CREATE INDEX approvals_by_run ON approvals (run_id);
