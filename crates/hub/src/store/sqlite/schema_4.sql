-- The fingerprints that the sources told with the halves, as signed numbers; NULL if one is not known.
ALTER TABLE summaries ADD COLUMN declared_fingerprint INTEGER;
ALTER TABLE summaries ADD COLUMN observed_fingerprint INTEGER;

-- The apps upstream of an app, as the id of a text, in JSON; NULL for none.
ALTER TABLE summaries ADD COLUMN upstreams INTEGER;

-- The number up to which history has the entries of the spool of each cluster's agent, and the last gap in them.
CREATE TABLE spools (
    cluster   TEXT PRIMARY KEY,
    spool     INTEGER NOT NULL,
    last      INTEGER NOT NULL,
    gap_from  INTEGER,
    gap_until INTEGER
) WITHOUT ROWID;
