-- The apps upstream of an app, as the id of a text, in JSON; NULL for none.
ALTER TABLE summaries ADD COLUMN upstreams INTEGER;
