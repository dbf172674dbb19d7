from callmark import summarize_results

__all__ = ["summarize_results"]
