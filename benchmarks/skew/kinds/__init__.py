"""The kinds of mismatch, a module each; see `benchmarks.skew.kind` for what a module defines."""
