"""Inventories made of what NVML tells, when GPUs are lost and links are told by one end only."""

from dataclasses import dataclass

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from deviceplugin.backends.nvml.inventory import links_of, pci_address, with_known
from deviceplugin.backends.nvml.wire import GpuFacts, LinkFacts

MOST_GPUS = 6


def pci(index: int) -> str:
    return f"00000000:{index:02X}:00.0"


def gpu(index: int, links: tuple[LinkFacts, ...] = ()) -> GpuFacts:
    return GpuFacts(index=index, uuid=f"GPU-{index}", pci=pci(index), links=links)


@st.composite
def machines(draw: st.DrawFn) -> tuple[GpuFacts, ...]:
    """GPUs with links to each other, to switches, down, or to who knows what."""
    count = draw(st.integers(0, MOST_GPUS))
    ends = st.one_of(
        st.tuples(st.just(0), st.integers(0, MOST_GPUS).map(pci)),
        st.tuples(st.just(2), st.just("00000000:A0:00.0")),
        st.tuples(st.just(255), st.sampled_from(["", pci(0), "00000000:FF:00.0"])),
    )
    made = st.builds(
        lambda end, active, link: LinkFacts(link, active, *end), ends, st.booleans(), st.just(0)
    )
    return tuple(gpu(i, tuple(draw(st.lists(made, max_size=4)))) for i in range(count))


@given(machines())
def test_a_link_counts_only_if_both_ends_tell_it(gpus: tuple[GpuFacts, ...]) -> None:
    links = links_of(gpus)
    by_uuid = {g.uuid: g for g in gpus}
    for (one, other), count in links.between.items():
        assert one < other
        assert count > 0
        for a, b in ((one, other), (other, one)):
            told = [k for k in by_uuid[a].links if k.active and k.pci == by_uuid[b].pci]
            assert count <= len(told)
    assert set(links.to_switches) <= set(by_uuid)
    assert links_of(tuple(reversed(gpus))) == links


@dataclass(frozen=True)
class Loss:
    known: tuple[int, ...]
    lost: frozenset[int]


losses = st.builds(
    Loss,
    st.lists(st.integers(0, MOST_GPUS - 1), unique=True).map(tuple),
    st.frozensets(st.integers(0, MOST_GPUS - 1)),
)


@given(losses)
def test_a_lost_gpu_keeps_its_name_and_no_name_is_given_twice(loss: Loss) -> None:
    now = [GpuFacts(index=i, lost="gone") if i in loss.lost else gpu(i) for i in range(MOST_GPUS)]
    named, nameless = with_known(now, {f"GPU-{i}": gpu(i) for i in loss.known})
    assert len({g.uuid for g in named}) == len(named)
    assert len(named) + len(nameless) == MOST_GPUS
    assert {g.uuid for g in named if g.lost} == {f"GPU-{i}" for i in loss.lost & set(loss.known)}
    assert {g.index for g in nameless} == loss.lost - set(loss.known)
    assert all(g in now for g in named if not g.lost)


@given(st.integers(0, 0xFFFF), st.integers(0, 255), st.integers(0, 31))
def test_addresses_are_written_as_the_kernel_writes_them(
    domain: int, bus: int, device: int
) -> None:
    told = f"{domain:08X}:{bus:02X}:{device:02X}.0"
    assert pci_address(told) == f"{domain:04x}:{bus:02x}:{device:02x}.0"


@given(machines())
def test_facts_survive_being_kept(gpus: tuple[GpuFacts, ...]) -> None:
    kept = msgspec.json.encode(gpus)
    assert msgspec.json.decode(kept, type=tuple[GpuFacts, ...]) == gpus
