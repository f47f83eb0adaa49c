"""The causes, by theme. Each is claimed only where its evidence explains the difference.

images       channels, axes, orientation, resizing, alpha
pictures     the pictures among the inputs
functions    functions that one side leaves out
rounding     digits and ways of rounding
widths       floats of other widths, integers that wrap
scales       scales, divisors, powers, limits
formats      numbers and dates spelled or packed in another way
texts        normal forms, lengths, encodings
times        zones
dtypes       integers through floats, nulls, missing values, broadcasting
order        of rows, columns and nulls; lost rows
batch        what depends on the rows beside a row
randomness   generators, and modes that draw from them
state        what is kept from one batch to the next
environment  weights, code, versions, and what a process brings along
contracts    what a handler declares
"""
