"""What became of the spoilt files, as a table."""

from collections import Counter

READ = "read"
SPOILT = "spoilt files"


def table_of(ends: dict[str, Counter[str]]) -> list[str]:
    """Lines of text: per kind how many were read, and how many were refused with which error."""
    kinds = sorted({kind for row in ends.values() for kind in row} - {READ})
    head = f"{'':<22}{'files':>7}{READ:>7}" + "".join(f"{kind:>21}" for kind in kinds)
    rows = {**ends, "all": sum(ends.values(), Counter())}
    return [head] + [
        f"{name:<22}{row.total():>7}{row[READ]:>7}" + "".join(f"{row[kind]:>21}" for kind in kinds)
        for name, row in rows.items()
    ]
