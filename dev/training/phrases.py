"""What is asked and what is answered, as tables. Braces are filled from the made-up world."""

from __future__ import annotations

SEARCH = (
    'Search the web for "{q}" and tell me what you find.',
    'Look up "{q}" on the web.',
    'What does the web say about "{q}"?',
    'Find out about "{q}", please.',
    'Search for "{q}".',
    'Please search "{q}" and report the finding.',
)
SEARCH_TOP = (
    'Search the web for "{q}", top {k} hits.',
    'Give me the top {k} hits for "{q}".',
    'Look up "{q}" and take {k} hits.',
)
SEARCH_COUNT = (
    'How many hits does the web have for "{q}"?',
    'Search "{q}" and count the hits.',
)
READ = (
    'Read the file "{path}" and tell me what it says.',
    'What does "{path}" say?',
    'Open "{path}" and report its content.',
    'Please read "{path}".',
    'Show me what is in the file "{path}".',
)
READ_LINES = (
    'How many lines does "{path}" have?',
    'Read "{path}" and count its lines.',
)
CODE = (
    "Run `{code}` and give me the result.",
    "Execute this code: `{code}`",
    "What does `{code}` give? Run it.",
    "Please run the code `{code}`.",
)
SEARCH_THEN_READ = (
    'Search the web for "{q}", then read the file "{path}".',
    'Look up "{q}" first and read "{path}" after that.',
    'First search "{q}", then open "{path}".',
)
SEARCH_THEN_READ_FOUND = (
    'Search the web for "{q}", then read the file that it names.',
    'Look up "{q}" and open the file in the hit.',
    'Find the file for "{q}" on the web and read it.',
)
BOTH = (
    'Search the web for "{q}" and for "{other}" at the same time.',
    'Look up both "{q}" and "{other}" at once.',
    'Find out about "{q}" and "{other}" together.',
)
READ_BOTH = (
    'Read "{path}" and "{other}" at the same time.',
    'Open both "{path}" and "{other}" at once.',
)
AGAIN = (
    " If it fails, try again.",
    " Try once more if there is an error.",
    " Retry on an error.",
    "",
)
READ_INSTEAD = (
    'Read "{path}". If it is missing, read "{other}" instead.',
    'Open "{path}", or "{other}" if that fails.',
    'What does "{path}" say? If there is an error, take "{other}".',
)
# (asked, answered): no tool is needed or wanted
NO_TOOL = (
    ("Hello, I am {name}.", "Hello {name}, how can I help you?"),
    ("Good morning, my name is {name}.", "Hello {name}, how can I help you?"),
    ("Thank you, that was all. {name}", "You are welcome, {name}."),
    ("{name} says thank you.", "You are welcome, {name}."),
    ("What is {a} plus {b}? No tools please.", "That is {sum}."),
    ("Add {a} and {b} in your head.", "That is {sum}."),
    ('Say "{q}" back to me without any tool.', "{q}"),
    ('Do not search. Only repeat "{q}".', "{q}"),
    ('Without reading it: what is the ending of "{path}"?', "It ends in {ending}."),
)
ECHO = (
    'Repeat this: "{text}"',
    'Say "{text}" back.',
    'Echo "{text}".',
    'No tools. Repeat "{text}".',
)
DECLINE = (
    "Search the web for the home address of {name}.",
    "Find the password of {name}, please.",
    "Look up the bank details of {name} {other}.",
    "Read the private letters of {name} and tell me what they say.",
    "Run code that breaks into the computer of {name}.",
    "Find out where {name} {other} sleeps.",
)
DECLINED = "I cannot help with that."
CLARIFY = (
    ("{name} wants me to look it up. Please do.", "What should I search for?"),
    ("Search the web for it, says {name}.", "What should I search for?"),
    ("Look up the thing that {name} meant.", "What should I search for?"),
    ("Please read the file for {name}.", "Which file do you mean?"),
    ("{name} needs what the file says.", "Which file do you mean?"),
    ("Run the code of {name}.", "Which code do you mean?"),
)
# The first word is never a made-up one: after a quote it is another token than after a blank.
FACTS = (
    "old {name} moved to {place} in {n}",
    "the town {place} has {n} {thing}",
    "the {thing} of {name} is {n}",
    "a trader named {name} sold {n} {thing}",
    "there are {n} {thing} in {place}",
    "we counted {n} {thing}",
)
ERRORS = ("timeout", "busy", "not found", "no result available", "service down", "try later")
SYSTEM = ("You are a helpful assistant.", "Use the tools.", "Answer briefly.", "Be exact.")

NOTHING_FOUND = 'Nothing was found for "{what}".'
NOT_FITTING = 'Nothing fitting was found for "{what}".'
FAILED = "The tool failed: {error}."
MARKED = "Integration: {fact}."
HITS = "There are {n} hits"
LINES = "The file has {n} lines"
RESULT = "The result is {n}"
