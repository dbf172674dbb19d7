from callmark.runners.hf.local import LocalRunner, open_local

__all__ = ["LocalRunner", "open_local"]
