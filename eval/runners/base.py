from callmark.records.seams import Conversation, Failure, Reply, Runner

__all__ = ["Conversation", "Failure", "Reply", "Runner"]
