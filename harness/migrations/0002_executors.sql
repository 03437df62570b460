-- Rises by one with each executor that an environment is given, so that an older one is refused.
CREATE TABLE environment_epochs (
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    revision TEXT NOT NULL,
    epoch BIGINT NOT NULL,
    PRIMARY KEY (kind, id, revision)
);

-- With which executor process a session worked last: another one has an empty read ledger, and the model is told.
CREATE TABLE session_boots (
    session_id TEXT NOT NULL PRIMARY KEY REFERENCES sessions (id) ON DELETE CASCADE,
    boot_id TEXT NOT NULL
);
