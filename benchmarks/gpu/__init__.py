"""What needs a GPU: `run.sh` runs it all, prints one table and writes benchmarks/out/gpu.json."""
