"""Text as a hostile model, tool or dataset may write it. Whatever shows text to a person or hands it
to another program is tried with all of these."""

from __future__ import annotations

STEERING = (
    "\x00\x07\x08\x0b\x0c\r\x1b\x7f\x85\x9b\x9d\u061c\u200b\u200e\u200f\u2028\u2029"
    "\u202a\u202e\u2066\u2069\ufeff\U000e0041"
)  # characters that steer a terminal, reorder what is read, or cannot be seen

HOSTILE: dict[str, str] = {
    "script": "<script>alert(1)</script>",
    "end of script": "</script><script>alert(1)</script>",
    "event handler": '"><img src=x onerror=alert(1)>',
    "svg": "<svg/onload=alert(1)>",
    "data url": "[x](data:text/html;base64,PHNjcmlwdD4=)",
    "javascript link": "[click](javascript:alert(1))",
    "end of CDATA": "]]><failure/>]]>",
    "entity": '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]>&e;',
    "comment": "--><b>out</b><!--",
    "end of details": "</details></summary><h1>PASSED</h1>",
    "table": "a | b |\n|---|\n| c | d |",
    "backticks": "``` `code` ````\n# heading",
    "mention": "@everyone and @octocat/team, see owner/repo#1, #12, GH-3",
    "commit": "fixed in 0123456789abcdef0123456789abcdef01234567",
    "bare links": "https://evil.example www.evil.example mailto:a@evil.example",
    "image": "![x](https://evil.example/pixel.png)",
    "formula": '=HYPERLINK("http://evil.example","x")',
    "command": "@SUM(1+1)*cmd|' /C calc'!A0",
    "minus": "-2+3+cmd|' /C calc'!A0",
    "tab formula": "\t=1+1",
    "wide formula": "＝1+1",
    "quotes": '"a","b"\n\'c\';`d`',
    "escape": "\x1b[2J\x1b[31mred\x1b[0m",
    "title": "\x1b]0;owned\x07",
    "terminal link": "\x1b]8;;http://evil.example\x07click\x1b]8;;\x07",
    "C1": "\x9b2J\x9d0;x\x9c",
    "carriage return": "verdict: fail\rverdict: pass",
    "backspace": "fail\x08\x08\x08\x08pass",
    "right to left": "abc\u202egnp.exe",
    "isolates": "\u2066\u2067x\u2069\u2069",
    "invisible": "a\u200bb\ufeffc\u2060d\u00ade",
    "tags": "\U000e0041\U000e0042",
    "line separators": "a\u2028b\u2029c\x85d",
    "NUL": "a\x00b",
    "all controls": "".join(map(chr, range(0x20))),
    "lone surrogate": "a\ud800b\udfff",
    "noncharacters": "a\ufffeb\uffffc\U0001ffff",
    "combining": "e" + "\u0301" * 500,
    "rich markup": "[bold red]x[/] [link=http://evil.example]y[/link] :boom:",
    "template": "{{ 7*7 }} ${7*7} %s {0}",
    "empty": "",
    "blanks": " \t\n ",
    "long": "x" * 1_000_000,
}
