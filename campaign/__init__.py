"""A campaign against toolmark's own claims: `make campaign`."""
