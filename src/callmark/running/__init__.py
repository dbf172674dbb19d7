"""One dataset through one runner, and scoring again what was recorded: streamed, resumable."""
