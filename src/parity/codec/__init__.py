"""The wire forms: the only place where values change form.

Each module reads one form into a `Decoded` and writes a `Batch` back into it: `rows` (JSON objects and
Python rows), `arrow` (tables, record batches, IPC), `frames` (pandas, Polars, dicts of arrays), `oip` (Open
Inference Protocol V2 JSON) and `outputs` (what a handler's postprocess returns). What each type accepts in
each form is specified in docs/reference/values.md.
"""
