"""Generate ``muster/protogen/`` from the .proto files beside this one: `make proto`.

::

    proto/NAME.proto ──protoc──► muster/protogen/NAME_pb2.py, NAME_pb2.pyi, NAME_pb2_grpc.py
                     └─ descriptors ──► muster/protogen/NAME_pb2_grpc.pyi    (protoc writes none)

The stubs of NAME_pb2_grpc are those of ``grpc.aio``: nothing here talks gRPC from threads.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import Final

from google.protobuf.descriptor_pb2 import (
    FileDescriptorProto,
    FileDescriptorSet,
    MethodDescriptorProto,
    ServiceDescriptorProto,
)
from grpc_tools import protoc

_HERE: Final = Path(__file__).parent
_PACKAGE: Final = "muster.protogen"
_FOLDER: Final = _PACKAGE.replace(".", "/")
_HEADER: Final = '''"""Types of the module of this name, which protoc leaves without any."""

from collections.abc import AsyncIterator, Awaitable

from grpc import aio

from {package} import {module}
'''
_STUB: Final = """
class {service}Stub:
    def __init__(self, channel: aio.Channel) -> None: ...
"""
_SERVICER: Final = """
class {service}Servicer:
"""
_ADD: Final = """
def add_{service}Servicer_to_server(servicer: {service}Servicer, server: aio.Server) -> None: ...
"""


def main() -> int:
    """Write the package into ``--to``; return protoc's exit code."""
    parser = argparse.ArgumentParser(description="Generate Python from proto/.")
    parser.add_argument("--to", type=Path, default=_HERE.parent, help="folder of the package")
    return generate(parser.parse_args().to)


def generate(to: Path) -> int:
    """Write ``to``/muster/protogen anew; return protoc's exit code."""
    package = to / _FOLDER
    package.mkdir(parents=True, exist_ok=True)
    for old in package.glob("*.py*"):
        old.unlink()
    with tempfile.TemporaryDirectory() as scratch:
        described = Path(scratch) / "described"
        code = _protoc(to, described)
        if code:
            return code
        files = FileDescriptorSet.FromString(described.read_bytes()).file
    for file in files:
        module = f"{Path(file.name).stem}_pb2"
        if file.service:
            (package / f"{module}_grpc.pyi").write_text(_stubs(file, module))
        else:
            (package / f"{module}_grpc.py").unlink(missing_ok=True)  # nothing but an import
    (package / "__init__.py").write_text(
        '"""Generated from proto/ by `make proto`; not to be edited."""\n'
    )
    (package / "py.typed").touch()
    return 0


def _protoc(to: Path, described: Path) -> int:
    """Run protoc over all sources; return its exit code."""
    sources = sorted(path.name for path in _HERE.glob("*.proto"))
    return int(
        protoc.main(
            [
                "protoc",
                f"--proto_path={_FOLDER}={_HERE}",
                f"--proto_path={resources.files('grpc_tools') / '_proto'}",
                f"--python_out={to}",
                f"--pyi_out={to}",
                f"--grpc_python_out={to}",
                f"--descriptor_set_out={described}",
                *(f"{_FOLDER}/{name}" for name in sources),
            ]
        )
    )


def _stubs(file: FileDescriptorProto, module: str) -> str:
    """Return the .pyi of a file's services."""
    parts = [_HEADER.format(package=_PACKAGE, module=module)]
    for service in file.service:
        parts += (_STUB.format(service=service.name), *_calls(service, module))
        parts += (_SERVICER.format(service=service.name), *_handlers(service, module))
        parts.append(_ADD.format(service=service.name))
    return "".join(parts)


def _calls(service: ServiceDescriptorProto, module: str) -> Iterator[str]:
    for method in service.method:
        asked, answered = _types(method, module)
        kind = "UnaryStream" if method.server_streaming else "UnaryUnary"
        yield f"    {method.name}: aio.{kind}MultiCallable[{asked}, {answered}]\n"


def _handlers(service: ServiceDescriptorProto, module: str) -> Iterator[str]:
    for method in service.method:
        asked, answered = _types(method, module)
        kind = "AsyncIterator" if method.server_streaming else "Awaitable"
        context = f"aio.ServicerContext[{asked}, {answered}]"
        yield (
            f"    def {method.name}(\n"
            f"        self, request: {asked}, context: {context}, /\n"
            f"    ) -> {kind}[{answered}]: ...\n"
        )


def _types(method: MethodDescriptorProto, module: str) -> tuple[str, str]:
    """Return the Python types of request and response; all our messages are of the same file."""
    if method.client_streaming:
        raise NotImplementedError(f"{method.name}: streams of requests have no types here yet")
    asked = method.input_type.rpartition(".")[2]
    answered = method.output_type.rpartition(".")[2]
    return f"{module}.{asked}", f"{module}.{answered}"


if __name__ == "__main__":
    sys.exit(main())
