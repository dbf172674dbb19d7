"""Addresses of public resolvers, and the identifiers that they are built from."""

from __future__ import annotations

import re
from functools import lru_cache

_CVE = r"(?P<id>CVE-[0-9]{4}-[0-9]{4,})"
_REPOSITORY = r"(?P<id>[A-Za-z0-9][\w.\-]*/[\w.\-]+)"
_ARXIV = r"(?P<id>[0-9]{4}\.[0-9]{4,5}|[a-z\-]+/[0-9]{7})"
# host (without `www.`) -> all that may follow it, but for a slash at the end
RESOLVERS: dict[str, str] = {
    host: rest
    for hosts, rest in (
        ("doi.org dx.doi.org", r"(?P<id>10\.[0-9]{4,9}/[^\s?#]+)"),
        ("hdl.handle.net", r"(?P<id>[0-9][0-9.]*/[^\s?#]+)"),
        ("arxiv.org", rf"(?:abs|pdf|html)/{_ARXIV}(?:v[0-9]+)?(?:\.pdf)?"),
        ("orcid.org", r"(?P<id>(?:[0-9]{4}-){3}[0-9]{3}[0-9X])"),
        ("pubmed.ncbi.nlm.nih.gov", r"(?P<id>[0-9]{5,9})"),
        ("pmc.ncbi.nlm.nih.gov", r"articles/(?P<id>PMC[0-9]+)"),
        ("ncbi.nlm.nih.gov", r"pmc/articles/(?P<id>PMC[0-9]+)"),
        ("nvd.nist.gov", rf"vuln/detail/{_CVE}"),
        ("cve.org", rf"CVERecord\?id={_CVE}"),
        ("rfc-editor.org", r"(?:rfc|info)/(?P<id>rfc[0-9]+)(?:\.html|\.txt)?"),
        ("datatracker.ietf.org", r"doc/(?:html/)?(?P<id>rfc[0-9]+)"),
        ("github.com gitlab.com", _REPOSITORY),
        ("huggingface.co", rf"(?:datasets/|spaces/)?{_REPOSITORY}"),
        ("wikidata.org", r"(?:wiki|entity)/(?P<id>Q[0-9]{2,})"),
        ("imdb.com", r"(?:title|name)/(?P<id>(?:tt|nm)[0-9]{7,9})"),
        ("youtube.com", r"watch\?v=(?P<id>[\w\-]{11})"),
        ("youtu.be", r"(?P<id>[\w\-]{11})"),
        ("stackoverflow.com", r"(?:questions|q)/(?P<id>[0-9]{4,})"),
    )
    for host in hosts.split()
}
_ADDRESS = re.compile(r"https?://(?:www\.)?(?P<host>[A-Za-z0-9.\-]+)(?=/)", re.IGNORECASE)
_CHUNKS = re.compile(r"[0-9]+|[^0-9]+")


def resolved_id(url: str) -> str | None:
    """The identifier that the address of a public resolver is built from, folded."""
    address = _ADDRESS.match(url)
    host = address["host"].lower() if address else ""
    if address is None or host not in RESOLVERS:
        return None
    path = url[address.end() :].replace("%2F", "/").replace("%2f", "/")
    found = _path_of(host).fullmatch(path)
    return found["id"].rstrip("/").casefold() if found else None


@lru_cache(maxsize=len(RESOLVERS))
def _path_of(host: str) -> re.Pattern[str]:
    return re.compile(f"/{RESOLVERS[host]}/?", re.IGNORECASE)


def stands_in(identifier: str, text: str) -> bool:
    """Whether a folded text holds the folded identifier, whole: `RFC 9110` is rfc9110, and
    10.1000/182 does not stand in 10.1000/1820 or 10.1000/182.b."""
    pieces = _pieces(identifier)
    if not all(piece in text for piece in pieces):
        return False
    whole = r"[ \-]?".join(map(re.escape, pieces))
    # `v2` is the version of a paper.
    found = re.search(rf"(?<![\w\-])(?<![0-9]\.){whole}(?:v[0-9]+)?(?!\w|[.\-/]\w)", text)
    return found is not None


def _pieces(identifier: str) -> list[str]:
    """Letters and the digits after them apart, as in `RFC 9110`; anything else in one."""
    if identifier.isalnum() and len(pieces := _CHUNKS.findall(identifier)) == 2:
        return pieces
    return [identifier]
