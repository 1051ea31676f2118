-- Times are microseconds since 1970-01-01 UTC. A column whose comment says "text" holds the id of a row of texts.

-- Every text, once. The hash is that of the writer; texts with equal hashes may differ.
CREATE TABLE texts (
    id   INTEGER PRIMARY KEY,
    hash INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX texts_by_hash ON texts (hash);

-- The identities of pairs, also of those that are gone but have a history.
CREATE TABLE pairs (
    id        INTEGER PRIMARY KEY,
    cluster   INTEGER NOT NULL, -- text
    home      INTEGER NOT NULL, -- text
    delivery  INTEGER NOT NULL,
    namespace INTEGER NOT NULL, -- text
    name      INTEGER NOT NULL, -- text
    UNIQUE (cluster, home, namespace, name, delivery)
);

-- The last known halves of pairs. Without declared_received there is no declared half; likewise observed_received.
CREATE TABLE summaries (
    pair              INTEGER PRIMARY KEY,
    declared_received INTEGER,
    key               INTEGER, -- text
    target            INTEGER, -- text; NULL for the cluster of the pair
    sync              INTEGER,
    desired           INTEGER, -- text
    attempted         INTEGER, -- text
    applied           INTEGER, -- text
    last_success      INTEGER,
    suspended         INTEGER,
    source            INTEGER, -- text, JSON
    labels            INTEGER, -- text, JSON; NULL for none
    message           INTEGER, -- text
    observed_received INTEGER,
    health            INTEGER,
    current           INTEGER,
    in_progress       INTEGER,
    failed            INTEGER,
    terminating       INTEGER,
    not_found         INTEGER,
    unknown           INTEGER,
    unconfirmed       INTEGER
);

-- What is to be said of pairs that are not well, as JSON.
CREATE TABLE details (
    pair   INTEGER PRIMARY KEY,
    detail TEXT NOT NULL
);

-- The days (since 1970-01-01 UTC) with history.
CREATE TABLE days (day INTEGER PRIMARY KEY);

-- A pair without health did not exist before, or does not exist after.
CREATE TABLE transitions (
    day              INTEGER NOT NULL,
    pair             INTEGER NOT NULL,
    at               INTEGER NOT NULL,
    before_health    INTEGER,
    before_effective INTEGER,
    before_sync      INTEGER,
    before_problem   INTEGER, -- text
    health           INTEGER,
    effective        INTEGER,
    sync             INTEGER,
    problem          INTEGER, -- text
    PRIMARY KEY (day, pair, at)
) WITHOUT ROWID;

CREATE TABLE syncs (
    day      INTEGER NOT NULL,
    pair     INTEGER NOT NULL,
    began    INTEGER NOT NULL,
    revision INTEGER NOT NULL, -- text
    ended    INTEGER,
    result   INTEGER NOT NULL,
    message  INTEGER NOT NULL, -- text
    PRIMARY KEY (day, pair, began, revision)
) WITHOUT ROWID;

-- The state of each pair at the end of the last day that was dropped.
CREATE TABLE bases (
    pair      INTEGER PRIMARY KEY,
    at        INTEGER NOT NULL,
    health    INTEGER,
    effective INTEGER,
    sync      INTEGER,
    problem   INTEGER -- text
);

CREATE TABLE clusters (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    aliases TEXT NOT NULL, -- JSON
    labels  TEXT NOT NULL, -- JSON
    heard   INTEGER
) WITHOUT ROWID;

CREATE TABLE epochs (
    cluster TEXT NOT NULL,
    source  TEXT NOT NULL,
    epoch   INTEGER NOT NULL,
    PRIMARY KEY (cluster, source)
) WITHOUT ROWID;

CREATE TABLE tokens (
    id      TEXT PRIMARY KEY,
    name    TEXT NOT NULL,
    hash    BLOB NOT NULL UNIQUE,
    rights  TEXT NOT NULL, -- JSON
    created INTEGER NOT NULL,
    expires INTEGER
) WITHOUT ROWID;

-- history_since: the moment before which history was dropped. recorded_since, recorded_until: the moments from and to
-- which history has all transitions.
CREATE TABLE facts (
    name  TEXT PRIMARY KEY,
    value INTEGER NOT NULL
) WITHOUT ROWID;

-- Written and emptied to learn whether there is space.
CREATE TABLE probes (content BLOB NOT NULL);
