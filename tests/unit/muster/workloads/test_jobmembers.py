"""How many members a gang still needs when Jobs make them: whether the finished ones are there."""

import msgspec

from muster.cluster.ids import GangKey
from muster.cluster.specs.gangspec import GangSpec, RoleSpec
from muster.workloads.dialects.batchjob import Job
from muster.workloads.jobmembers import JobMembers, MemberJobs, members


def job(uid: str, *, labels: dict[str, str], pods: int = 4, done: int = 0) -> Job:
    spec = {"parallelism": pods, "completions": pods, "completionMode": "Indexed"}
    spec["template"] = {"metadata": {"labels": labels}}
    meta = {"name": uid, "namespace": "team", "uid": uid}
    return msgspec.convert(
        {"metadata": meta, "spec": spec, "status": {"succeeded": done}}, Job, strict=False
    )


def of_set(uid: str, *, role: str = "workers", pods: int = 4, done: int = 0) -> Job:
    labels = {"jobset.sigs.k8s.io/jobset-name": "s", "jobset.sigs.k8s.io/restart-attempt": "0"}
    labels["jobset.sigs.k8s.io/replicatedjob-name"] = role
    return job(uid, labels=labels, pods=pods, done=done)


def stated(minimum: int, *roles: tuple[str, int], dialect: str = "jobset") -> GangSpec:
    made = tuple(RoleSpec(*role) for role in roles)
    key = GangKey(f"{dialect}/team/s")
    return GangSpec(key, "team", "s", dialect, minimum, size=minimum, roles=made)


def remaining(spec: GangSpec, *jobs: Job) -> GangSpec:
    known = MemberJobs()
    for each in jobs:
        known.seen(each.metadata.uid, members(each))
    return known.remaining(spec)


def test_a_job_of_a_jobset_says_which_gang_and_role_its_pods_are_of() -> None:
    assert members(of_set("a", done=3)) == JobMembers("jobset/team/s", "workers", 4, 1)


def test_a_job_by_itself_says_nothing_of_another_gang() -> None:
    assert members(job("a", labels={})) is None


def test_members_that_succeeded_are_needed_no_more_in_their_role() -> None:
    spec = stated(9, ("driver", 1), ("workers", 8))
    driver, one, other = of_set("d", role="driver", pods=1), of_set("w0", done=3), of_set("w1")
    found = remaining(spec, driver, one, other)
    assert (found.min_count, found.min_is_remaining) == (6, True)
    assert found.roles == (RoleSpec("driver", 1), RoleSpec("workers", 5))


def test_jobs_that_are_not_there_yet_have_all_their_members_to_come() -> None:
    assert remaining(stated(8, ("workers", 8)), of_set("w0", done=4)).min_count == 4


def test_a_minimum_below_the_size_is_kept_while_so_many_are_left() -> None:
    spec = stated(3, ("workers", 3))
    assert remaining(spec, of_set("w0", done=1)).min_count == 3
    assert remaining(spec, of_set("w0", done=2)).min_count == 2


def test_jobs_of_one_gang_by_label_count_together() -> None:
    labels = {"muster.dev/gang": "s", "muster.dev/gang-size": "8"}
    spec = stated(8, dialect="muster")
    assert remaining(spec, job("a", labels=labels, done=4)).min_count == 8  # others make members
    both = job("a", labels=labels, done=4), job("b", labels=labels, done=1)
    assert remaining(spec, *both).min_count == 3


def test_a_finished_gang_asks_for_one_member_in_case_its_status_is_late() -> None:
    assert remaining(stated(4), of_set("w0", done=4)).min_count == 1


def test_what_a_gang_asked_for_comes_back_with_its_last_job() -> None:
    known, spec = MemberJobs(), stated(4)
    assert known.seen("w0", members(of_set("w0", done=1))) == (spec.key,)
    assert known.seen("w0", members(of_set("w0", done=1))) == ()
    assert known.remaining(spec).min_count == 3
    assert known.seen("w0", None) == (spec.key,)
    assert known.remaining(known.stated(spec.key, None) or spec) == spec
