"""`python -m parity` is `parity`."""

from parity.cli import main

if __name__ == "__main__":
    main()
