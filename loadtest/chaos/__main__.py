"""``python -m loadtest.chaos --steps N --seed S``: run, print JSON, fail if anything was wrong.

``--episode 5/13`` replays one episode of seed 5; with ``--trace`` every step is printed.
"""

import argparse
import json
import logging
import os
import sys
import time

from muster.observability.imports import uncollected

with uncollected():
    from loadtest.chaos.run import Outcome, episode, episodes, report
    from loadtest.chaos.settings import EPISODE_STEPS, Settings


def main() -> int:
    """Parse the command line and run."""
    _fix_hashes()
    parser = argparse.ArgumentParser(prog="muster bench chaos", description=__doc__)
    parser.add_argument("--steps", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--episode", default="", help="replay one episode, named SEED/NUMBER")
    parser.add_argument("--without", default="", help="faults to leave out, with commas between")
    parser.add_argument("--queues", action="store_true", help="teams share the cluster by queues")
    parser.add_argument("--trace", action="store_true", help="tell every step, to standard error")
    arguments = parser.parse_args()
    logging.disable(logging.CRITICAL)  # every fault is logged by Muster, thousands of them
    began = time.perf_counter()
    outcomes = [_run(settings) for settings in _chosen(arguments)]
    result = report(arguments.seed, outcomes, queues=arguments.queues)
    steps = sum(outcome.steps for outcome in outcomes)
    result["steps_per_s"] = round(steps / (time.perf_counter() - began))
    sys.stdout.write(json.dumps(result) + "\n")
    return 1 if result["problems"] else 0


def _fix_hashes() -> None:
    """Begin again with fixed hashes: sets of strings are walked in their order."""
    if os.environ.get("PYTHONHASHSEED") != "0":
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, "-m", "loadtest.chaos", *sys.argv[1:]])  # noqa: S606


def _chosen(arguments: argparse.Namespace) -> list[Settings]:
    without = frozenset(filter(None, arguments.without.split(",")))
    if arguments.episode:
        steps = min(arguments.steps, EPISODE_STEPS)
        return [Settings(arguments.episode, steps, without, arguments.trace, arguments.queues)]
    return [
        Settings(one.seed, one.steps, without, arguments.trace, arguments.queues)
        for one in episodes(arguments.seed, arguments.steps)
    ]


def _run(settings: Settings) -> Outcome:
    outcome = episode(settings, lambda text: print(text, file=sys.stderr))
    for problem in outcome.problems:  # at once: the rest of a million steps takes minutes
        print(f"{settings.seed}: {problem}", file=sys.stderr)
    return outcome


if __name__ == "__main__":
    sys.exit(main())
