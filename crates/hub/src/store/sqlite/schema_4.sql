-- The fingerprints that the sources told with the halves, as signed numbers; NULL if one is not known.
ALTER TABLE summaries ADD COLUMN declared_fingerprint INTEGER;
ALTER TABLE summaries ADD COLUMN observed_fingerprint INTEGER;
