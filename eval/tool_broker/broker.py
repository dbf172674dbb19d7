from toolmark import ToolBroker

__all__ = ["ToolBroker"]
