"""What the API server sends in protobuf: how it is asked for, and how it is recognised."""

from typing import Final

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\0"
"""The first bytes of every answer in protobuf (apimachinery, runtime/serializer/protobuf)."""
