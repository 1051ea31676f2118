-- Agents, by the SHA-256 hash of their public keys. Times are microseconds since 1970-01-01 UTC.
CREATE TABLE agents (
    key        BLOB PRIMARY KEY,
    public_key BLOB NOT NULL,
    cluster    TEXT NOT NULL,
    name       TEXT NOT NULL,
    version    TEXT NOT NULL,
    enrolled   INTEGER NOT NULL,
    seen       INTEGER NOT NULL,
    expires    INTEGER NOT NULL,
    proxied    INTEGER NOT NULL,
    revoked    INTEGER
);

-- One-time tokens for enrolling agents. Without cluster the agent chooses its name.
CREATE TABLE enrolments (
    hash    BLOB PRIMARY KEY,
    cluster TEXT,
    created INTEGER NOT NULL,
    expires INTEGER NOT NULL,
    used    INTEGER
);

-- The one authority that issues the certificates of agents, and the keys by which agents recognise the hub, as JSON.
CREATE TABLE authority (
    id          INTEGER PRIMARY KEY CHECK (id = 1),
    key         TEXT NOT NULL,
    certificate TEXT NOT NULL
);
CREATE TABLE hub_pins (
    place INTEGER PRIMARY KEY,
    pin   TEXT NOT NULL
);
