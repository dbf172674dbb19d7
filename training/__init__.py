"""Makes the model, the adapters and the dataset that ship in `src/toolmark/data/tiny`."""
