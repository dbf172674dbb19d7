"""One run in many processes: shards played elsewhere, journalled and summed up here."""
