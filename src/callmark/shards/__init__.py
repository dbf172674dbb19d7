"""One run in many processes: engines that play its shards, merging what shards wrote, and proof
that nothing changed."""
