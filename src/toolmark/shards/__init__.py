"""One run in many processes: merging what its shards wrote, and proving that nothing changed."""
