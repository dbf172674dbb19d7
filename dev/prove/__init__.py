"""The proof that the scorer is right: planted faults come back exactly, and nothing else moves.

`make prove` runs it whole and writes docs/proof.md; `python -m dev.prove --quick` a small part."""
