"""The page that explains every metric is right: its own small run is run, and each row that it has
is compared with the report."""

import re
from pathlib import Path

import pytest
import yaml

import callmark
from callmark.resources import data_path

PAGE = (Path(__file__).parents[2] / "docs" / "metrics.md").read_text("utf-8")
FILE = re.compile(r"^```json (\S+)\n(.*?)^```$", re.M | re.S)
ROW = re.compile(r"^\| `(\w+)` \|(.*)\|$", re.M)
SHARE = re.compile(r"(?:.*: )?([\d.]+) / (\d+) = ([\d.]+)")


class Row:
    """The last two cells of a row: what the metric is here, and what its gate asks."""

    def __init__(self, cells: str) -> None:
        self.here, self.gate = (cell.strip() for cell in cells.split("|")[-2:])


# What stands before the run says what each metric is called.
ROWS = {name: Row(cells) for name, cells in ROW.findall(PAGE.partition("## The run")[2])}


@pytest.fixture(scope="module")
def metrics(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    for name, text in FILE.findall(PAGE):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    places = {"in": "dataset.jsonl", "model": "answers.jsonl", "fixtures": "fixtures"}
    config = {name: str(folder / place) for name, place in places.items()}
    return callmark.run({"runner": "replay", **config}).to_dict()["metrics"]


def test_the_page_has_every_metric_of_a_report_and_no_other(metrics):
    assert set(ROWS) == set(metrics)


def test_each_example_is_what_the_report_says(metrics):
    for name, row in ROWS.items():
        metric = metrics[name]
        if metric["value"] is None:
            assert row.here == "no such sample", name
        elif found := SHARE.fullmatch(row.here):
            numerator, denominator, value = found.groups()
            assert float(numerator) == pytest.approx(metric["numerator"], abs=5e-4), name
            assert int(denominator) == metric["denominator"], name
            assert value == f"{metric['value']:.3f}", name
        else:
            shown = re.split(r"[:=] ", row.here)[-1]
            assert float(shown) == pytest.approx(metric["value"], abs=5e-4), name


def test_each_gate_is_the_shipped_one():
    shipped = yaml.safe_load(data_path("config", "eval.default.yaml").read_text("utf-8"))["gates"]
    for name, row in ROWS.items():
        gate = shipped.get(name)
        assert row.gate == (f"{gate['op']} {gate['bound']:g}" if gate else ""), name
