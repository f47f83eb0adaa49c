"""Speed, memory and robustness, measured as ratios within one run: `python -m benchmarks [NAME...]`.

A module here with a function `run() -> dict` is a benchmark. The dict has `bars`, a list of dicts with
`what`, `value`, `bar` and `at` ("least" or "most"), and whatever else was measured. The numbers are kept in
benchmarks/out/NAME.json. One with `ASKED_ONLY` runs only when it is named, and its `run` takes options.
"""
