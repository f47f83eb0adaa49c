"""A module beside the handler, which reload must read again."""

FACTOR = 1.5
