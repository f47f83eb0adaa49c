"""What `python -m benchmarks five_runners` is made of.

rows      many rows for each example handler, made of its committed sample
jobs      a runner's whole job over a dataset, in a process of its own
digests   64 bits that tell a row's answer, and which rows' differ
"""
