"""The first process of a node's namespaces. A program: nothing but the standard library.

    init.py join SPEC     joins the node's control groups, then becomes unshare(1), whose child is
    init.py begin SPEC    number 1: makes the node's view of the file system, says "ready" on
                          standard output, and collects orphans until it is killed

When number 1 is killed, the kernel kills every process of the node, and its mounts and network
devices go with the namespaces. unshare --kill-child does that when unshare itself dies, and that
dies with the process that started it (loadtest.testbed.controlplane.programs.die_with_parent): so a
node does not outlive a test run that is killed.

What the node sees (everything else is the machine's own):

    /sys/fs/cgroup            its own groups as if they were the machine's
    /run                      empty
    /var, /etc                the machine's, but what is written goes to memory
    /var/lib/kubelet          SPEC.kubelet, so that tests see the sockets from outside
    /etc/hosts                SPEC.hosts: the machine is "control-plane"
    /proc/sys/…               files in place of the settings of the whole machine that a kubelet
                              changes: the machine's stay as they are
    /sys/devices/system/node  SPEC.numa, if there is one
"""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

# pkg/kubelet/cm/container_manager_linux.go, setupKernelTunables; none of them is namespaced.
TUNABLES = (
    "vm/overcommit_memory",
    "vm/panic_on_oom",
    "kernel/panic",
    "kernel/panic_on_oops",
    "kernel/keys/root_maxkeys",
    "kernel/keys/root_maxbytes",
)
NAMESPACES = ("--mount", "--pid", "--net", "--ipc", "--cgroup")


def main() -> None:
    stage, path = sys.argv[1:3]
    spec = json.loads(Path(path).read_text())
    if stage == "join":
        join(spec)
        own = (sys.executable, "-S", "-E", __file__, "begin", path)
        words = ("unshare", *NAMESPACES, "--fork", "--kill-child", "--mount-proc", *own)
        os.execvp(words[0], words)  # noqa: S606 - without a shell is what is wanted
    begin(spec)
    sys.stdout.write("ready\n")
    sys.stdout.flush()
    collect()


def join(spec: dict) -> None:
    for group in spec["groups"]:
        Path(group, "cgroup.procs").write_text(str(os.getpid()))


def begin(spec: dict) -> None:
    mount("--make-rprivate", "/")
    private = spec["private"]
    mount("-t", "tmpfs", "-o", "mode=755", "node", private)
    view_groups(spec["hierarchies"])
    mount("-t", "tmpfs", "-o", "mode=755", "node", "/run")
    upper, work = make(private, "var"), make(private, "var.work")
    layers = f"lowerdir=/var,upperdir={upper},workdir={work}"
    mount("-t", "overlay", "-o", layers, "node", "/var")
    upper, work = make(private, "etc"), make(private, "etc.work")
    mount("-t", "overlay", "-o", f"lowerdir=/etc,upperdir={upper},workdir={work}", "node", "/etc")
    mount("--bind", spec["kubelet"], make("/var/lib/kubelet"))
    mount("--bind", spec["hosts"], "/etc/hosts")
    shield_tunables(make(private, "sys"))
    if spec["numa"]:
        mount("--bind", spec["numa"], "/sys/devices/system/node")
    mount("--make-rshared", "/")  # the kubelet's mounts reach the containers


def view_groups(hierarchies: list[list[str]]) -> None:
    subprocess.run(("umount", "-R", "-l", "/sys/fs/cgroup"), check=True)
    mount("-t", "tmpfs", "-o", "mode=755", "node", "/sys/fs/cgroup")
    for folder, options in hierarchies:
        mount("-t", "cgroup", "-o", options, "cgroup", make("/sys/fs/cgroup", folder))
        for alias in set(folder.split(",")) - {folder}:
            Path("/sys/fs/cgroup", alias).symlink_to(folder)


def shield_tunables(folder: str) -> None:
    for name in TUNABLES:
        setting = Path("/proc/sys", name)
        shield = Path(folder, name.replace("/", "."))
        shield.write_text(setting.read_text())
        mount("--bind", str(shield), str(setting))


def make(*parts: str) -> str:
    path = Path(*parts)
    path.mkdir(parents=True, exist_ok=True)
    return str(path)


def mount(*words: str) -> None:
    subprocess.run(("mount", *words), check=True)


def collect() -> None:
    """Collect every child that ends, for ever: orphans become children of number 1."""
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGCHLD})
    while True:
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            pass
        signal.sigwait({signal.SIGCHLD})


if __name__ == "__main__":
    main()
