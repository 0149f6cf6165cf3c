"""NUMA nodes that the machine does not have, as sysfs would show them."""

from pathlib import Path


def write(folder: Path, nodes: int) -> None:
    """Write what stands in for /sys/devices/system/node on a machine of that many NUMA nodes.

    The CPUs are dealt out in turn; the links lead to the machine's own CPUs.
    """
    cpus = sorted(int(path.name[3:]) for path in Path("/sys/devices/system/cpu").glob("cpu[0-9]*"))
    folder.mkdir()
    for name in ("online", "possible", "has_memory", "has_cpu", "has_normal_memory"):
        (folder / name).write_text(f"0-{nodes - 1}\n" if nodes > 1 else "0\n")
    for number in range(nodes):
        _write_node(folder / f"node{number}", number, nodes, cpus[number::nodes])


def _write_node(folder: Path, number: int, nodes: int, cpus: list[int]) -> None:
    (folder / "hugepages" / "hugepages-2048kB").mkdir(parents=True)
    (folder / "hugepages" / "hugepages-2048kB" / "nr_hugepages").write_text("0\n")
    (folder / "cpulist").write_text(",".join(map(str, cpus)) + "\n")
    # 10 to itself and 20 to others: the ACPI SLIT's values for local and one hop.
    distances = " ".join("10" if other == number else "20" for other in range(nodes))
    (folder / "distance").write_text(f"{distances}\n")
    (folder / "meminfo").write_text(f"Node {number} MemTotal: {4 * 1024**2} kB\n")
    for cpu in cpus:
        (folder / f"cpu{cpu}").symlink_to(f"../../cpu/cpu{cpu}")
