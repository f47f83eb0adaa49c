"""One column of a batch: the values of one field, as numpy and as Arrow, each built when first asked for."""

from parity.column.column import Column
from parity.column.forms import python_values
from parity.column.spread import spread

__all__ = ["Column", "python_values", "spread"]
