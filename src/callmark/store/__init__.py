"""Files: JSON lines in and out of records, atomic writes, the journal of a run."""
