"""One small file per family of scenarios. Each has a table `RECIPES`."""
