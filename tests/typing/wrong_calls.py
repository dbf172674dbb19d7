"""Calls that are wrong: each line that is marked so is an error for mypy and for pyright, no other is."""

import callmark

callmark.run(modle="x")  # wrong
callmark.run(temperature="hot")  # wrong
callmark.run(dtype="int8")  # wrong
callmark.run("callmark.yaml")  # wrong
callmark.run(runner="replay").verdikt  # wrong
callmark.run(runner="replay")["verdict"]  # wrong
callmark.run(runner="replay", dry_run=True).verdict  # wrong
callmark.compare("a.jsonl")  # wrong
callmark.compare("a.jsonl", "b.jsonl", margin="5 %")  # wrong
callmark.compare("a.jsonl", "b.jsonl")["decision"]  # wrong
callmark.merge(7)  # wrong
callmark.merge(["a.jsonl"], ot="b.jsonl")  # wrong
callmark.verify_dataset("data.jsonl", max_turns=1)  # wrong
callmark.validate_sharding(shards=4)  # wrong
callmark.score_item({}, "text", [], span_extractor="words")  # wrong
callmark.extract_spans("text", "words")  # wrong
callmark.parse_tool_calls("text", tools=7)  # wrong
callmark.shard_of("a", "3")  # wrong
callmark.ToolBroker()  # wrong
callmark.summarise_results([])  # wrong
