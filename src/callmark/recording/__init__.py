"""Calling live tools once, so that nobody has to call them again."""
