"""Small conversations, written by hand."""

WEATHER = {
    "name": "weather",
    "description": "Weather of a city.",
    "parameters": {
        "type": "object",
        "properties": {"city": {"type": "string"}, "days": {"type": "integer", "default": 1}},
        "required": ["city"],
    },
}


def call(name: str, arguments: str, call_id: str = "c1") -> dict:
    function = {"name": name, "arguments": arguments}
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [{"id": call_id, "type": "function", "function": function}],
    }


def result(content: str, call_id: str = "c1") -> dict:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(text: str) -> dict:
    return {"role": "user", "content": text}


def assistant(text: str) -> dict:
    return {"role": "assistant", "content": text}


ASKED_TWICE = [
    {"role": "system", "content": "You know the weather."},
    user("How warm is Ulm?"),
    call("weather", '{"city": "Ulm"}', "a"),
    result('{"temp_c": 19}', "a"),
    assistant("It is 19 degrees in Ulm."),
    user("And now?"),
    call("weather", '{"city": "Ulm", "days": 1}', "b"),
    result('{"temp_c": 21}', "b"),
    assistant("Now it is 21."),
    user("###STOP###"),
]
