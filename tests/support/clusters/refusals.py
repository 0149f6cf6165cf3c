"""Calls that must be refused."""

from collections.abc import Awaitable
from typing import Any

import pytest

from loadtest.testbed.client.api import STRATEGIC_PATCH, Api, ApiFailed


async def refused(call: Awaitable[Any]) -> ApiFailed:
    with pytest.raises(ApiFailed) as caught:
        await call
    return caught.value


async def strategic(api: Api, path: str, patch: dict[str, Any]) -> dict[str, Any]:
    return await api.patch(path, patch, kind=STRATEGIC_PATCH)
