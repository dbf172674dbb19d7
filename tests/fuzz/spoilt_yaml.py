"""Ways to spoil a file of settings: one value, or what stands between the values."""

import random

import yaml
from tests.fuzz.odd_values import ODD_JSON, ODD_KEYS, ODD_YAML
from tests.fuzz.spoilt_json import kin, places_in


def spoil_yaml(rng: random.Random, data: bytes) -> bytes:
    """The settings with one value that is odd JSON (which is YAML too) or odd YAML."""
    try:
        value = yaml.safe_load(data)
        places = list(places_in(value))
    except (yaml.YAMLError, ValueError, RecursionError, TypeError):
        return data
    if not places:
        return rng.choice((*ODD_YAML, *ODD_JSON)).encode("utf-8", "surrogatepass")
    holder, key = rng.choice(places)
    match rng.randrange(5):
        case 0:
            holder[key] = kin(rng, holder[key])
        case 1 if isinstance(holder, dict):
            holder[rng.choice((*ODD_KEYS, f"{key}s", 7, None, True, 1.5))] = holder.pop(key)
        case _:
            holder[key] = "put-it-here"
    text = yaml.safe_dump(value, allow_unicode=True, sort_keys=False, default_flow_style=False)
    return text.replace("put-it-here", rng.choice((*ODD_YAML, *ODD_JSON))).encode(
        "utf-8", "surrogatepass"
    )


def spoil_layout(rng: random.Random, data: bytes) -> bytes:
    """Documents, anchors, tabs and other things that stand between the values."""
    piece = rng.choice(
        (
            b"---\n",
            b"...\n",
            b"\t",
            b"- x\n",
            b"? [a]\n: b\n",
            b"<<: *x\n",
            b"a: &a {b: *a}\n",
            b"# \xff\n",
        )
    )
    lines = data.splitlines(keepends=True)
    lines.insert(rng.randint(0, len(lines)), piece)
    return b"".join(lines)


YAML = (*(spoil_yaml,) * 10, spoil_layout, spoil_layout)
