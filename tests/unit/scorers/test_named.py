"""What a model names in its own calls, such as a file that it makes, is no altered identifier."""

from tests.unit.grounding.asking import call, score

FIRST, SECOND = "First file1.", "Now I write file2."


def labels(second: dict, text: str = SECOND) -> list[tuple[str, str]]:
    answer = f"{FIRST}\n{text}"
    ends = len(FIRST.encode()), len(answer.encode())
    turns = [{"start": 0, "end": ends[0]}, {"start": ends[0] + 1, "end": ends[1]}]
    one = call({"output": "wrote file1"}, "bash", {"keys": "ls"}, turn=1)
    scores = score(answer, one, {**second, "turn": 2}, turns=turns)
    return [(each["label"], each["rule"]) for each in scores["statements"]]


def test_what_a_call_of_the_same_turn_names_is_not_altered():
    written = call({"output": "wrote file2"}, "bash", {"keys": "echo x > notes/file2.txt"})
    assert ("unchecked", "named") in labels(written)


def test_a_name_that_no_call_has_or_only_one_that_failed_is_altered():
    for arguments, result in (
        ({"keys": "echo x > notes/file3.txt"}, {"output": "wrote file3"}),
        ({"keys": "echo x > notes/file2.txt"}, {"error": "no room"}),
    ):
        assert ("altered", "identifier") in labels(call(result, "bash", arguments))
