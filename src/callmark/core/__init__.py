"""Pure: records, digests, statistics, summaries, gates. No files, clock, network or environment."""
