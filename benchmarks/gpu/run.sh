#!/usr/bin/env bash
# Everything that needs a CUDA device, in under ten minutes: tests, comparisons with the host, speed. Without a
# device it says so and exits with 5. PYTHON names another interpreter than the clone's .venv.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
python="${PYTHON:-.venv/bin/python}"
if ! command -v "$python" > /dev/null; then
  echo "no Python at $python: run 'make setup', or name one with PYTHON=" >&2
  exit 2
fi
exec "$python" -m benchmarks.gpu "$@"
