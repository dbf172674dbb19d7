from callmark import ToolBroker

__all__ = ["ToolBroker"]
