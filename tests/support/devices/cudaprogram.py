"""A program on an NVIDIA GPU, through libcuda alone: it computes, takes memory, or makes an error.

    python cudaprogram.py compute      prints {"gpus": …, "name": …, "uuid": …, "right": true}
    python cudaprogram.py hold MIB     prints "held", then computes until its standard input ends
    python cudaprogram.py fault        writes where nothing is; prints the driver's answer, 700

The kernel is PTX, which the driver compiles: neither nvcc nor a library of CUDA is needed, so the
program runs in a container that has nothing but the driver. It imports nothing of ours.
"""

import ctypes
import json
import os
import select
import sys
import uuid
from typing import Final

_THREADS: Final = 256
_BLOCKS: Final = 16
_ROUNDS: Final = 100
_BUSY_ROUNDS: Final = 2_000_000  # about 20 ms
_MULTIPLIER: Final = 1664525
_INCREMENT: Final = 1013904223
_NOWHERE: Final = 0x10  # in the first page, which is never mapped
_MIB: Final = 1024**2

# Each thread steps a linear congruential generator, whose seed is the thread's number, `rounds`
# times, and stores what it has then.
_PTX: Final = b"""
.version 6.4
.target sm_75
.address_size 64
.visible .entry steps(.param .u64 out, .param .u32 rounds)
{
    .reg .u64 %rd<5>;
    .reg .u32 %r<8>;
    .reg .pred %more;
    ld.param.u64 %rd1, [out];
    ld.param.u32 %r5, [rounds];
    mov.u32 %r1, %ctaid.x;
    mov.u32 %r2, %ntid.x;
    mov.u32 %r3, %tid.x;
    mad.lo.u32 %r4, %r1, %r2, %r3;
    mul.wide.u32 %rd2, %r4, 4;
    cvta.to.global.u64 %rd3, %rd1;
    add.u64 %rd4, %rd3, %rd2;
    mov.u32 %r6, 0;
again:
    mul.lo.u32 %r4, %r4, 1664525;
    add.u32 %r4, %r4, 1013904223;
    add.u32 %r6, %r6, 1;
    setp.lt.u32 %more, %r6, %r5;
    @%more bra again;
    st.global.u32 [%rd4], %r4;
    ret;
}
"""


class CudaError(Exception):
    """A call of the driver failed. ``code``: CUresult."""

    def __init__(self, call: str, code: int) -> None:
        super().__init__(f"{call}: CUresult {code}")
        self.code = code


class Gpu:
    """The first GPU that the driver shows, with a context and the kernel."""

    def __init__(self) -> None:
        os.environ["CUDA_DEVICE_ORDER"] = "PCI_BUS_ID"  # as NVML numbers them
        self._cuda = ctypes.CDLL("libcuda.so.1")
        self._ask("cuInit", 0)
        count = ctypes.c_int()
        self._ask("cuDeviceGetCount", ctypes.byref(count))
        self.count = count.value
        device = ctypes.c_int()
        self._ask("cuDeviceGet", ctypes.byref(device), 0)
        self._device = device
        context, module = ctypes.c_void_p(), ctypes.c_void_p()
        self._ask("cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
        self._ask("cuCtxSetCurrent", context)
        self._ask("cuModuleLoadData", ctypes.byref(module), _PTX)
        self._kernel = ctypes.c_void_p()
        self._ask("cuModuleGetFunction", ctypes.byref(self._kernel), module, b"steps")

    def name(self) -> str:
        """Return the product's name."""
        room = ctypes.create_string_buffer(256)
        self._ask("cuDeviceGetName", room, len(room), self._device)
        return room.value.decode()

    def uuid(self) -> str:
        """Return the UUID as NVML writes it."""
        room = (ctypes.c_uint8 * 16)()
        self._ask("cuDeviceGetUuid", ctypes.byref(room), self._device)
        return f"GPU-{uuid.UUID(bytes=bytes(room))}"

    def memory(self, size: int) -> int:
        """Allocate so many bytes, write to all of them, and return their address."""
        address = ctypes.c_uint64()
        self._ask("cuMemAlloc_v2", ctypes.byref(address), ctypes.c_size_t(size))
        self._ask("cuMemsetD8_v2", address, ctypes.c_ubyte(1), ctypes.c_size_t(size))
        return address.value

    def run(
        self, address: int, rounds: int, blocks: int = _BLOCKS, threads: int = _THREADS
    ) -> None:
        """Run the kernel, and wait for its end. Raises ``CudaError``."""
        out, count = ctypes.c_uint64(address), ctypes.c_uint32(rounds)
        given = (ctypes.c_void_p * 2)(
            *(ctypes.cast(ctypes.byref(each), ctypes.c_void_p) for each in (out, count))
        )
        grid, block = (blocks, 1, 1), (threads, 1, 1)
        self._ask("cuLaunchKernel", self._kernel, *grid, *block, 0, None, given, None)
        self._ask("cuCtxSynchronize")

    def read(self, address: int, count: int) -> list[int]:
        """Return so many 32-bit numbers."""
        room = (ctypes.c_uint32 * count)()
        self._ask("cuMemcpyDtoH_v2", room, ctypes.c_uint64(address), ctypes.c_size_t(4 * count))
        return list(room)

    def _ask(self, call: str, *arguments: object) -> None:
        code = getattr(self._cuda, call)(*arguments)
        if code:
            raise CudaError(call, code)


def compute() -> None:
    """Print what the GPU is, and whether it computes right."""
    gpu = Gpu()
    count = _BLOCKS * _THREADS
    address = gpu.memory(4 * count)
    gpu.run(address, _ROUNDS)
    right = gpu.read(address, count) == [_stepped(seed) for seed in range(count)]
    _say(json.dumps({"gpus": gpu.count, "name": gpu.name(), "uuid": gpu.uuid(), "right": right}))


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _stepped(number: int) -> int:
    for _ in range(_ROUNDS):
        number = (number * _MULTIPLIER + _INCREMENT) & 0xFFFFFFFF
    return number


def hold(mebibytes: int) -> None:
    """Have so much memory and be busy until standard input ends."""
    gpu = Gpu()
    address = gpu.memory(mebibytes * _MIB)
    _say("held")
    while not select.select([sys.stdin], [], [], 0)[0]:
        gpu.run(address, _BUSY_ROUNDS, blocks=1024)


def fault() -> None:
    """Write where no memory is, from one thread, and print what the driver says."""
    gpu = Gpu()
    try:
        gpu.run(_NOWHERE, 1, blocks=1, threads=1)
    except CudaError as error:
        _say(str(error.code))


def main(words: list[str]) -> int:
    """Run one of the three; return the exit code."""
    try:
        match words:
            case ["compute"]:
                compute()
            case ["hold", mebibytes]:
                hold(int(mebibytes))
            case ["fault"]:
                fault()
            case _:
                sys.exit(__doc__)
    except (CudaError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
