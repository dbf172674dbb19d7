"""Pure: tool specs and their schemas, the one normaliser of calls, and model text → call ledger."""
