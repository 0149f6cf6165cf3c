"""Property tests do a fixed amount of work, so a busy machine needs more minutes for them."""

import pytest

PATIENCE_S = 900  # against 120 elsewhere; the slowest takes six minutes beside other tests


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Give each more time, unless it or the command line asks for an amount of its own."""
    if config.getoption("timeout") is not None:
        return
    for item in items:
        if "property" in item.path.parts and item.get_closest_marker("timeout") is None:
            item.add_marker(pytest.mark.timeout(PATIENCE_S))
