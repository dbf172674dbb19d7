"""Words and sentences that generated samples are made of: plain tables, no code."""
