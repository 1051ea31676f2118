-- The operations that users asked for, each as a JSON document.
CREATE TABLE operations (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    began  INTEGER NOT NULL,
    ended  INTEGER,
    record TEXT NOT NULL
);
CREATE INDEX operations_by_time ON operations (began);

-- The apps of an operation; item is the place in the record.
CREATE TABLE operation_apps (
    home      TEXT NOT NULL,
    delivery  INTEGER NOT NULL,
    namespace TEXT NOT NULL,
    name      TEXT NOT NULL,
    operation INTEGER NOT NULL,
    item      INTEGER NOT NULL,
    PRIMARY KEY (home, delivery, namespace, name, operation, item)
) WITHOUT ROWID;
CREATE INDEX operation_apps_by_operation ON operation_apps (operation);
