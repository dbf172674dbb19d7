from callmark.runners.openai_http import OpenAIRunner, open_openai

__all__ = ["OpenAIRunner", "open_openai"]
