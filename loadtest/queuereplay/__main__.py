"""``python -m loadtest.queuereplay --trace philly --load 0.9``: replay, print JSON.

Lines about progress go to standard error; an error's text does, too, with exit code 2.
"""

import argparse
import gc
import json
import logging
import sys
from pathlib import Path

from loadtest.queuereplay.comparison import JOBS, SEEDS, Settings, run
from loadtest.queuereplay.muster import TakeBack
from loadtest.queuereplay.replay import ReplayError
from loadtest.traces.gangtrace.stream import StreamError
from loadtest.traces.trace import TraceError


def main() -> int:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(prog="muster bench queues", description=__doc__)
    parser.add_argument("--trace", choices=("philly", "model"), default="philly")
    parser.add_argument("--path", type=Path, default=Path())
    parser.add_argument("--load", type=float, default=1.0)
    parser.add_argument("--seeds", type=int, default=SEEDS)
    parser.add_argument("--jobs", type=int, default=JOBS)
    parser.add_argument("--take-back", type=TakeBack, choices=TakeBack, default=TakeBack.NOTHING)
    given = parser.parse_args()
    logging.disable(logging.CRITICAL)  # the planner reports each plan
    gc.freeze()
    settings = Settings(
        given.trace, given.load, given.seeds, given.jobs, given.path, given.take_back
    )
    try:
        found = run(settings, lambda line: print(line, file=sys.stderr, flush=True))
    except (ReplayError, StreamError, TraceError, ValueError) as error:
        print(error, file=sys.stderr)
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
