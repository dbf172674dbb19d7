"""Logs without secrets and personal data, as recorded fixtures are."""

from __future__ import annotations

import msgspec

from callmark.datasets.importing.desk import Imported, Object
from callmark.live.secrets import SecretFilter
from callmark.live.surrogates import Surrogates
from callmark.records.jsontext import Json, want_list, want_object


class LogCleaner:
    """One conversation at a time: what stands for a value depends on nothing but the value and the
    key, so it is the same in all of them. `removed`: secrets that are gone; `replaced`: personal
    values that others stand for."""

    def __init__(self, *, pii: bool, key: str = "") -> None:
        self._pii = pii
        self._key = key
        self.removed = 0
        self.replaced = 0

    def clean(self, entry: Imported) -> Imported:
        parts: list[Json] = [entry.item, entry.answer, [one for _, one in entry.fixtures]]
        secrets = SecretFilter()
        for part in parts:
            secrets.learn(part)
        parts = [secrets.json(part) for part in parts]
        self.removed += secrets.removed
        if self._pii:
            surrogates = Surrogates(key=self._key)
            for part in parts:
                surrogates.learn(part)
            parts = [surrogates.json(part) for part in parts]
            self.replaced += surrogates.replaced
        item, answer, fixtures = parts
        return msgspec.structs.replace(
            entry,
            item=_with_its_id(want_object(item), entry),
            answer=None
            if answer is None
            else {**want_object(answer), "sample_id": entry.sample_id},
            fixtures=tuple(
                (call, {**want_object(one), "sample_id": entry.sample_id})
                for (call, _), one in zip(entry.fixtures, want_list(fixtures), strict=True)
            ),
        )


def clean_detail(detail: str) -> str:
    """What the report of an import quotes."""
    return SecretFilter().text(detail)


def _with_its_id(item: Object, entry: Imported) -> Object:
    """An id that looks like personal data joins the files all the same; tools keep their names."""
    own = want_object(entry.item.get("metadata"))
    kept: Object = {name: own[name] for name in ("sample_id", "tools", "cluster") if name in own}
    return {**item, "metadata": {**want_object(item.get("metadata")), **kept}}
