"""The causes, by theme. Each is claimed only where its evidence explains the difference.

images       channels, axes, orientation and shifts of pictures
resizing     pictures resized, laid on a background, brought to 8 bits
pictures     the pictures among the inputs; no cause
functions    functions that one side leaves out
rounding     digits and ways of rounding
widths       floats of other widths, integers that wrap
scales       scales, divisors, powers, limits
formats      numbers and dates spelled or packed in another way
texts        normal forms, lengths, encodings
times        zones
dtypes       integers through floats, nulls that promote, arrays that are broadcast
missing      null, NaN, zero and nothing
order        of rows, columns, labels and nulls
failures     lost rows, stages that raise
neighbours   what the rows beside a row hold
places       how many rows there are, and where a row stands
statistics   over the batch
randomness   generators, and modes that draw from them
state        what is kept from one batch to the next
buffers      memory used again, and passing on through the handler
environment  weights, code, versions, and what a process brings along
contracts    what a handler declares
"""
