"""Batch scoring against peers: one model and one dataset for all, each peer in an environment of its own.

data           the datasets
handlers       the two handlers, and the plain torch modules that all peers score with
peers          one script for each peer, as its users would write it
meter          runs a command; seconds, CPU seconds and memory of its whole process tree
rounds         interleaved rounds of all peers, and whether their answers are ours
table          the result as Markdown
"""
