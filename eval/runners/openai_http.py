from callmark.runners.http.runner import OpenAIRunner, open_openai

__all__ = ["OpenAIRunner", "open_openai"]
