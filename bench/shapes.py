"""How the cost of scoring grows with the size of its input: four times as much of every shape that
was ever superlinear. A ratio of CPU time in one run, the best of several rounds."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterator
from typing import NamedTuple

import callmark
from bench.scoring import forget

TIMES = 4
BOUND = 4.5
ROUNDS = 5
Input = tuple[str, object, str]  # answer, result, prompt


class Shape(NamedTuple):
    """`size`: of the smaller of the two inputs, so that it takes part of a second at most."""

    name: str
    size: int
    make: Callable[[int], Input]


def _sentences(n: int) -> Input:
    words = "red green blue small large fast slow new old warm".split()
    text = " ".join(f"{words[i % 10]} {words[i * 7 % 10]} {words[i * 3 % 10]}." for i in range(n))
    return text, {"tags": [f"{words[i % 10]} {words[i * 3 % 10]}" for i in range(n)]}, ""


def _the(n: int) -> Input:
    return "the " * n, {"text": "the " * n}, ""


def _times(n: int) -> Input:
    stated = ". ".join(f"Train {i} leaves at {i % 24:02d}:{i % 60:02d}" for i in range(n))
    return stated, {"times": [f"{i * 7 % 24:02d}:{i * 11 % 60:02d}" for i in range(n)]}, ""


def _dates(n: int) -> Input:
    days = [f"20{i % 90 + 10}-{i % 12 + 1:02d}-{i % 28 + 1:02d}" for i in range(n)]
    said = [f"20{i % 90 + 10}-{i % 12 + 1:02d}-{(i + 9) % 28 + 1:02d}" for i in range(n)]
    return ". ".join(days), {"n": 1}, " ".join(said)


def _endings(n: int) -> Input:
    text = ". ".join(f"the card ending in {i * 37 % 10000:04d}" for i in range(n))
    return text, {"cards": [f"card_{i * 7919:09d}" for i in range(n)]}, ""


def _quotations(n: int) -> Input:
    text = ". ".join(f'He said "word{i} and more of it"' for i in range(n))
    return text, {"lines": [f"This is line {i * 3} with words of its own" for i in range(n)]}, ""


def _lists(n: int) -> Input:
    text = ". ".join(f"In total {i * 13 + 7} came" for i in range(n))
    return text, {"groups": [[{"a": i, "b": i * 2}, {"a": 1, "b": i}] for i in range(n)]}, ""


def _table(n: int) -> Input:
    rows = [{"id": f"ORD{i:06d}", "price": i * 3 + 1, "count": i % 9} for i in range(n)]
    text = "\n".join(f"| {row['id']} | ${row['price']} | {row['count']} items |" for row in rows)
    return text, {"orders": rows}, ""


def _items(n: int) -> Input:
    rows = [{"id": f"ORD{i:06d}", "price": i * 3 + 1, "open": bool(i % 2)} for i in range(n)]
    text = "\n".join(
        f"- Order {row['id']}\n  - Price: ${row['price']}\n  - It is not open" for row in rows
    )
    return text, {"orders": rows}, ""


def _same_name(n: int) -> Input:
    rows = [{"name": "Alice Smith", "total": i} for i in range(n)]
    return ". ".join(f"Alice Smith has a total of {i * 5}" for i in range(n)), rows, ""


def _one_record(n: int) -> Input:
    record = {"id": "BOX1"} | {f"field_{i}": i * 17 for i in range(n)}
    return ". ".join(f"BOX1 has {i * 13 + 5} of field {i}" for i in range(n)), record, ""


def _nested(n: int) -> Input:
    parts = [{"id": f"P{i}", "sub": {"size": f"{i}GB", "open": True}} for i in range(n)]
    text = ". ".join(f"BOX1 with P{i} has {i + 1}GB and is open" for i in range(n))
    return text, {"id": "BOX1", "parts": parts}, ""


def _sums(n: int) -> Input:
    rows = [{"id": f"A{i}", "price": i * 7 % 1000 + 0.25} for i in range(n)]
    text = "\n".join(f"- Total difference for A{i}: ${i * 3 % 700 + 0.11}" for i in range(n))
    return text, {"rows": rows}, ""


def _equations(n: int) -> Input:
    return " + ".join(["2"] * n) + f" = {2 * n}", {"n": n * 2}, ""


def _booleans(n: int) -> Input:
    text = ". ".join(f"Feature number{i} is not available" for i in range(n))
    return text, {f"feature_number{i}": bool(i % 2) for i in range(n)}, ""


def _deeds(n: int) -> Input:
    return ". ".join(f"I have cancelled order {i}" for i in range(n)), {"status": "ok"}, ""


def _json_answer(n: int) -> Input:
    rows = ",\n".join(f'  {{"id": "A{i}", "price": {i * 3}}}' for i in range(n))
    return f"[\n{rows}\n]", [{"id": f"A{i}", "price": i * 3} for i in range(n)], ""


def _big_result(n: int) -> Input:
    rows = [
        {"id": f"R{i}", "text": f"Row {i} costs ${i}.50 on 2024-05-{i % 28 + 1:02d}"}
        for i in range(n)
    ]
    return "R7 costs $7.50.", {"rows": rows}, ""


def _names(n: int) -> Input:
    rows = [{"name": f"Quay House {i:05d}", "price": i * 3} for i in range(n)]
    return "We have " + ", ".join(f"Quay House {i:05d} ({i * 3})" for i in range(n)), rows, ""


def _beginnings(n: int) -> Input:
    titles = [f"The big harbour of number{i} town" for i in range(n)]
    return ". ".join(f"The big harbour of number{i * 2} town" for i in range(n)), titles, ""


def _one_sentence(n: int) -> Input:
    rows = [{"id": f"A{i}", "price": i * 7 % 1000 + 0.25} for i in range(n)]
    return "It is " + ", ".join(f"${i * 3 % 700 + 0.11} for A{i}" for i in range(n)), rows, ""


def _alike_quotations(n: int) -> Input:
    text = ". ".join(f'He said "row of table number{i * 2}"' for i in range(n))
    return text, {"lines": [f"This is the row of table number{i}" for i in range(n)]}, ""


def _states(n: int) -> Input:
    rows = [{"id": f"T{i}", "status": "open" if i % 2 else "closed"} for i in range(n)]
    return ". ".join(f"Ticket T{i} is closed" for i in range(n)), rows, ""


def _many_calls(n: int) -> Input:
    rows = {str(i): {"name": f"City{i}", "temperature": i % 50} for i in range(n)}
    return ". ".join(f"In City{i} it is {i % 40} degrees" for i in range(n)), rows, ""


def _blanks(n: int) -> Input:
    return "The price is 17" + " \t\u00a0\u3000" * n + "18.", {"price": 17}, ""


def _stars(n: int) -> Input:
    return "*" * n + "17" + " 18" * 10, {"price": 18}, ""


def _glued_prices(n: int) -> Input:
    return "The price is 17 " + "$1" * n + " of it, 18.", {"price": 17}, ""


def _glued_shares(n: int) -> Input:
    return "The price is 17 " + "1%" * n + " of it, 18.", {"price": 17}, ""


def _columns(n: int) -> Input:
    hours = [f"2024-05-{i % 28 + 1:02d}T{i % 24:02d}:00" for i in range(n)]
    served = {"hourly": {"time": hours, "temperature": [i * 3 + 0.5 for i in range(n)]}}
    return ". ".join(f"On day {i} it was {i * 3}.5 degrees" for i in range(n)), served, ""


def _denied_numbers(n: int) -> Input:
    text = "\n".join(f"None of this is true: {i * 17 + 100}." for i in range(n))
    return text, {"u": [i * 17 + 100 for i in range(n)]}, ""


def _phones(n: int) -> Input:
    served = {"v": [f"+49 30 {i * 2:07d}" for i in range(n)]}
    return " ".join(f"+49 30 {i:07d}" for i in range(n)), served, ""


def _hundreds(n: int) -> Input:
    return "one hundred " * n, {"v": 100}, ""


def _addresses(n: int) -> Input:
    text = " ".join(f"https://quay{i}.org/a a{i}@quay.org" for i in range(n))
    return text, {"u": [f"https://quay{i * 2}.org/a a{i * 2}@quay.org" for i in range(n)]}, ""


def _instants(n: int) -> Input:
    text = ". ".join(f"It was on May {i % 28 + 1}, 2024 at {i % 24:02d}:00" for i in range(n))
    return text, [{"ts": 1714500000 + i * 3600} for i in range(n)], ""


def _wide_row(n: int) -> Input:
    text = "| Name |" + " Size |" * n + "\n|" + "---|" * (n + 1) + "\n| A |"
    return (
        text + "".join(f" {i * 7 + 3} |" for i in range(n)),
        {"sizes": [i * 9 for i in range(n)]},
        "",
    )


def _refused(n: int) -> Input:
    served = {"order": {"status": "open", "refund": "none"}}
    return "It is " + " ".join(f"cancelled or refunded {i}" for i in range(n)), served, ""


SHAPES = (
    Shape("many sentences over few words, many short leaves", 600, _sentences),
    Shape("one word, over and over", 4000, _the),
    Shape("times against times", 500, _times),
    Shape("dates against dates in the prompt", 500, _dates),
    Shape("endings against identifiers", 500, _endings),
    Shape("quotations against texts", 400, _quotations),
    Shape("unsupported numbers against small lists", 400, _lists),
    Shape("a table of records", 400, _table),
    Shape("a list of records with yes and no", 250, _items),
    Shape("records of one name", 400, _same_name),
    Shape("one record of many fields", 400, _one_record),
    Shape("one record of many parts", 300, _nested),
    Shape("differences and totals", 300, _sums),
    Shape("one long equation", 1000, _equations),
    Shape("many yes and no", 400, _booleans),
    Shape("many deeds", 500, _deeds),
    Shape("an answer in JSON", 500, _json_answer),
    Shape("a short answer to a large result", 3000, _big_result),
    Shape("one sentence of many names", 250, _names),
    Shape("texts that begin alike", 400, _beginnings),
    Shape("one sentence of many prices", 250, _one_sentence),
    Shape("quotations that are alike", 300, _alike_quotations),
    Shape("many states", 400, _states),
    Shape("records by their names", 400, _many_calls),
    Shape("a run of blanks", 4000, _blanks),
    Shape("a run of stars before a value", 3000, _stars),
    Shape("prices without blanks", 1000, _glued_prices),
    Shape("shares without blanks", 500, _glued_shares),
    Shape("columns that are lists", 300, _columns),
    Shape("numbers that are taken back", 300, _denied_numbers),
    Shape("phone numbers", 500, _phones),
    Shape("number words in one chain", 4000, _hundreds),
    Shape("addresses against addresses", 400, _addresses),
    Shape("instants of one month", 600, _instants),
    Shape("one row of many cells", 600, _wide_row),
    Shape("one clause of many states", 400, _refused),
)


def score(given: Input) -> None:
    answer, result, prompt = given
    item = {"id": "shape", "prompt": prompt or "Tell me.", "metadata": {}}
    calls = [{"name": "look_up", "arguments": {}, "result": result}]
    callmark.score_item(item, answer, calls, span_extractor="claims")


def growth(shape: Shape, rounds: int = ROUNDS) -> float:
    """The CPU time of `TIMES` times the size, in units of that of the size. What the process holds
    besides is left out of the collector's sight: when it looks through all of that is a step that
    falls on one size or the other, whatever is scored."""
    small, large = shape.make(shape.size), shape.make(shape.size * TIMES)
    best = [1e9, 1e9]
    for _ in range(rounds):
        for at, given in enumerate((small, large)):
            forget()  # or the smaller one would be remembered, the larger one not
            gc.collect()
            gc.freeze()
            start = time.process_time()
            score(given)
            best[at] = min(best[at], time.process_time() - start)
            gc.unfreeze()
    return best[1] / best[0]


def rows() -> Iterator[tuple[str, str, str]]:
    for shape in SHAPES:
        yield f"{TIMES} × {shape.name}", f"{growth(shape):.2f}", f"<= {BOUND}"


if __name__ == "__main__":
    for name, ratio, bound in rows():
        sys.stdout.write(f"{ratio:>7} {bound}  {name}\n")
        sys.stdout.flush()
