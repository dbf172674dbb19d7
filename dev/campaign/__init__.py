"""A campaign against callmark's own claims: `make campaign`."""
