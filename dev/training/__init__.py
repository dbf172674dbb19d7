"""Makes the model, the adapters and the dataset that ship in `src/callmark/data/tiny`."""
