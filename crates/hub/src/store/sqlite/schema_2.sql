-- The operations that users asked for, each as a JSON document without its items.
CREATE TABLE operations (
    id     INTEGER PRIMARY KEY,
    name   TEXT NOT NULL UNIQUE,
    began  INTEGER NOT NULL,
    ended  INTEGER,
    record TEXT NOT NULL
);
CREATE INDEX operations_by_time ON operations (began);

-- The items of an operation, each as a JSON document, with the app that it is about; the home is null for another object.
CREATE TABLE operation_items (
    operation INTEGER NOT NULL,
    place     INTEGER NOT NULL,
    home      TEXT,
    delivery  INTEGER,
    namespace TEXT,
    name      TEXT,
    item      TEXT NOT NULL,
    PRIMARY KEY (operation, place)
) WITHOUT ROWID;
CREATE INDEX operation_items_by_app ON operation_items (home, name, namespace, delivery) WHERE home IS NOT NULL;
