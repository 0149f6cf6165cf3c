"""A trace as a load: jobs, sizes and run times of the file, squeezed by load and speed.

Hosts: four of 8 GPUs in two racks, model T4, and one of 2 GPUs, model P100.
"""

from pathlib import Path

import pytest

from loadtest.fourphase.load.podfields import asking
from loadtest.fourphase.load.replayreport import TURN_S, Replay
from loadtest.fourphase.load.schedule import LoadPlan
from loadtest.fourphase.load.spec import SpecError
from loadtest.fourphase.run import replay as replaying
from loadtest.testbed.client.pods import pod
from loadtest.traces.fleet import Fleet, Host
from loadtest.traces.gangtrace.stream import StreamError
from loadtest.traces.openb_jobs import Task, read_tasks
from loadtest.traces.publisheddata import DataMissingError
from loadtest.traces.trace import TraceError

HOSTS = Fleet(
    "five hosts",
    (
        *(Host(f"h{i}", "z", "b", f"r{i // 2}", 8, "T4", "", 32_000, 65_536) for i in range(4)),
        Host("h4", "z", "b", "r2", 2, "P100", "", 8_000, 16_384),
    ),
)
PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,creation_time,"
    "deletion_time,scheduled_time\n"
)


def philly(data: Path, *rows: str) -> Path:
    file = data / "philly" / "philly.csv"
    file.parent.mkdir(parents=True)
    file.write_text(PHILLY + "".join(f"2017-10-01 {row},x\n" for row in rows), encoding="utf-8")
    return data


def openb(data: Path, *rows: str) -> Path:
    file = data / "openb" / "csv" / "openb_pod_list_default.csv"
    file.parent.mkdir(parents=True)
    file.write_text(OPENB + "".join(f"{row}\n" for row in rows), encoding="utf-8")
    return data


def planned(data: Path, trace: str, **asked: float) -> LoadPlan:
    replay = Replay(trace, **asked)  # type: ignore[arg-type]
    return replaying.plan(replay, HOSTS, seed=0, data=data)


def jobs(plan: LoadPlan) -> list[tuple[int, int, float]]:
    found = [gang for gang in plan.gangs if gang.class_ == replaying.JOBS]
    return [(gang.size, gang.ask.gpus, round(gang.at, 3)) for gang in found]


def test_gang_sizes_and_run_times_are_the_traces_and_times_are_divided_by_speed(
    tmp_path: Path,
) -> None:
    data = philly(tmp_path, "00:00:00,100,16,0", "00:01:40,50,1,0", "00:03:20,70,12,0")
    plan = planned(data, "philly", speed=10.0, load=0.5)
    work = 100 * 16 + 50 + 70 * 12
    span = work / (0.5 * 34)
    closer = 300 / span
    assert jobs(plan) == [
        (2, 8, 0.0),
        (1, 1, round(10 / closer, 3)),
        (3, 4, round(20 / closer, 3)),
    ]
    played = plan.replayed
    assert played is not None
    assert played.arriving_s == pytest.approx(span / 10)
    assert (played.jobs, played.gangs, played.too_large) == (3, 2, 0)
    runs = [gang.runs for gang in plan.gangs if gang.class_ == replaying.JOBS]
    assert runs == pytest.approx([10.0, 5.0, 7.0])


def test_without_a_speed_the_jobs_arrive_in_two_minutes(tmp_path: Path) -> None:
    data = philly(tmp_path, "00:00:00,100,8,0", "00:01:40,50,8,0")
    plan = planned(data, "philly")
    assert plan.replayed is not None
    assert plan.replayed.arriving_s == pytest.approx(TURN_S)
    assert plan.spec.patience > TURN_S


def test_what_still_runs_of_earlier_turns_is_there_first_and_counted_apart(tmp_path: Path) -> None:
    # 80,000 s on 8 of 34 GPUs: at a load of 1 a turn is shorter than the job.
    data = philly(tmp_path, "00:00:00,80000,8,0", "00:00:10,10,1,0")
    plan = planned(data, "philly", load=1.0, speed=100.0)
    earlier = [gang for gang in plan.gangs if gang.class_ == replaying.EARLIER]
    assert plan.replayed is not None
    assert len(earlier) == plan.replayed.earlier > 0
    assert all(gang.at == 0.0 for gang in earlier)
    longest = max(gang.runs or 0.0 for gang in plan.gangs)
    assert longest <= plan.replayed.arriving_s


def test_jobs_that_the_empty_fleet_cannot_hold_are_left_out_and_counted(tmp_path: Path) -> None:
    data = philly(tmp_path, "00:00:00,100,40,0", "00:00:10,100,32,0", "00:00:20,100,1,0")
    plan = planned(data, "philly")
    assert plan.replayed is not None
    assert (plan.replayed.jobs, plan.replayed.too_large) == (2, 1)


def test_openb_tasks_keep_cpu_memory_and_models_and_parts_of_gpus_become_whole(
    tmp_path: Path,
) -> None:
    data = openb(
        tmp_path,
        "a,4000,8192,1,460,,LS,Running,0,100,0",
        "b,6000,9000,2,1000,P100|V100M32,LS,Running,10,100,20",
        "c,12000,2048,0,0,,LS,Running,20,100,20",
        "d,1000,1024,1,1000,,LS,Pending,30,100,",
        "e,1000,1024,8,1000,A10,LS,Running,40,100,40",
    )
    plan = planned(data, "openb", speed=1.0)
    asks = [gang.ask for gang in plan.gangs if gang.class_ == replaying.JOBS]
    assert [(a.gpus, a.millicpu, a.memory_mib, a.models) for a in asks] == [
        (1, 4000, 8192, ()),
        (2, 6000, 9000, ("P100", "V100M32")),
        (0, 12000, 2048, ()),
    ]
    assert plan.replayed is not None
    # d never ran; e wants a model that no host has.
    assert (plan.replayed.rounded_up, plan.replayed.too_large) == (1, 1)
    made = asking(pod("p", gpus=2), asks[1])
    affinity = made["spec"]["affinity"]["nodeAffinity"]
    (term,) = affinity["requiredDuringSchedulingIgnoredDuringExecution"]["nodeSelectorTerms"]
    assert term["matchExpressions"][0]["values"] == ["P100", "V100M32"]
    requests = made["spec"]["containers"][0]["resources"]["requests"]
    assert requests == {"cpu": "6000m", "memory": "9000Mi", "nvidia.com/gpu": "2"}


def test_a_window_of_tasks_is_drawn_by_seed_in_order_of_creation(tmp_path: Path) -> None:
    rows = [f"t{i},1000,1,1,1000,,LS,Running,{(i * 7) % 50},{i + 100},{i}" for i in range(50)]
    file = openb(tmp_path, *rows) / "openb" / "csv" / "openb_pod_list_default.csv"
    windows = {seed: read_tasks(file, 10, seed=seed).jobs for seed in range(4)}
    assert windows[1] == read_tasks(file, 10, seed=1).jobs
    assert len(set(windows.values())) > 1
    for window in windows.values():
        arrivals = [task.arrival for task in window]
        assert arrivals == [arrivals[0] + i for i in range(10)]
    assert len(read_tasks(file, 0).jobs) == 50
    assert isinstance(windows[1][0], Task)


@pytest.mark.parametrize(
    ("asked", "error", "words"),
    [
        ({"speed": 0.0}, SpecError, "--speed 0.0: seconds of the trace"),
        ({"jobs": -1}, SpecError, "--jobs -1: give the number of jobs"),
        ({"load": 0.0}, StreamError, "--load 0.0: give the share"),
    ],
)
def test_a_wrong_option_is_named(
    tmp_path: Path, asked: dict[str, float], error: type[Exception], words: str
) -> None:
    data = philly(tmp_path, "00:00:00,100,1,0", "00:00:09,100,1,0")
    with pytest.raises(error, match=words):
        planned(data, "philly", **asked)


def test_a_trace_none_of_which_fits_is_refused(tmp_path: Path) -> None:
    data = philly(tmp_path, "00:00:00,100,512,0")
    with pytest.raises(SpecError, match="none of its 1 jobs with GPUs fits"):
        planned(data, "philly")


def test_a_wrong_task_file_is_refused_with_its_line(tmp_path: Path) -> None:
    data = openb(tmp_path, "a,4000,8192,many,460,,LS,Running,0,100,0")
    with pytest.raises(TraceError, match="line 2: want cpu_milli"):
        planned(data, "openb")


@pytest.mark.parametrize("trace", ["philly", "openb"])
def test_a_trace_that_is_absent_says_where_it_was_looked_for(tmp_path: Path, trace: str) -> None:
    with pytest.raises(DataMissingError, match=rf"--trace {trace}: {tmp_path}/.* is not there"):
        planned(tmp_path, trace)
