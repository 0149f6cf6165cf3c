"""``python -m loadtest.gate PROBE``: one probe; prints ``{RATIO: [above, below]}``."""

import json
import sys

from loadtest.gate.probes import PROBES


def main(name: str) -> None:
    """Measure and print."""
    found = PROBES[name].measure()
    print(json.dumps({ratio: [each.above, each.below] for ratio, each in found.items()}))


if __name__ == "__main__":
    main(sys.argv[1])
