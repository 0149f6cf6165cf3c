"""Collections: often while they find cycles, seldom while they find none, and never of the model.

In a process of its own: what is frozen here would stay frozen for every test after this one.
"""

import subprocess
import sys
import textwrap


def run(code: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


COUNTED = """
import gc
from muster.observability.memory import Collector

runs = []
gc.callbacks.append(lambda phase, info: phase == "stop" and runs.append(info["collected"]))

class Cycle:
    def __init__(self):
        self.me = self

collector = Collector()
collector.settle()
runs.clear()
"""


def test_collections_that_find_nothing_become_rare() -> None:
    code = COUNTED + textwrap.dedent("""
        ticks = []
        for tick in range(1, 64):
            before = len(runs)
            collector.tick()
            if len(runs) > before:
                ticks.append(tick)
        print(ticks)
    """)
    assert run(code) == "[1, 3, 7, 15, 31, 47, 63]"


def test_while_cycles_are_found_every_tick_looks_for_them() -> None:
    code = COUNTED + textwrap.dedent("""
        for _ in range(7):
            collector.tick()
        for _ in range(40):
            Cycle()
            collector.tick()
        print(len(runs), sum(found > 0 for found in runs))
    """)
    collections, fruitful = map(int, run(code).split())
    assert collections == 3 + fruitful
    assert fruitful >= 40 - 8


def test_what_is_frozen_is_freed_with_its_last_user_and_not_walked_through() -> None:
    code = COUNTED + textwrap.dedent("""
        import weakref

        class Thing: ...

        model = [Thing() for _ in range(1000)]
        gone = weakref.ref(model[7])
        collector.tick()
        young = len(gc.get_objects())  # all but what is frozen
        del model
        print(young < 500, gone() is None)
    """)
    assert run(code) == "True True"


HOLES = """
from muster.observability.memory import Collector

def resident_mib():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4 // 1024

def read_a_list():
    answers = [bytearray(b"x" * (1 << 20)) for _ in range(60)]

collector = Collector()
before = resident_mib()
read_a_list()
"""


def test_what_a_list_was_read_into_is_kept_until_it_has_ended() -> None:
    code = HOLES + textwrap.dedent("""
        free = resident_mib() - before
        collector.settle()
        print(free > 50, resident_mib() - before < 20)
    """)
    assert run(code) == "True True"


def test_what_a_list_was_read_into_again_is_given_back_at_the_next_tick() -> None:
    code = HOLES + textwrap.dedent("""
        collector.tick()
        free = resident_mib() - before
        collector.listed()
        collector.tick()
        print(free > 50, resident_mib() - before < 20)
    """)
    assert run(code) == "True True"
