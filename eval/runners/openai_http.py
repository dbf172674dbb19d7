from callmark.runners.http.chat import open_chat as open_openai
from callmark.runners.http.runner import ServedRunner as OpenAIRunner

__all__ = ["OpenAIRunner", "open_openai"]
