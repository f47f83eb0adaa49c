"""`python -m parity` is `parity`."""

from parity.cli import app

if __name__ == "__main__":
    app(prog_name="parity")
