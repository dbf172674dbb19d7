from callmark import score_item

__all__ = ["score_item"]
