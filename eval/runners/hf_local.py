from callmark.runners.hf_local import LocalRunner, open_local

__all__ = ["LocalRunner", "open_local"]
