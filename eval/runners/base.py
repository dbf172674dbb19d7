from callmark.core.protocols import Conversation, Failure, Reply, Runner

__all__ = ["Conversation", "Failure", "Reply", "Runner"]
