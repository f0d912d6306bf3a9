"""What implementers of handlers and adapters test with; needs pytest and hypothesis."""

import pytest

pytest.register_assert_rewrite(
    "lumos.testing.handler_contract",
    "lumos.testing.platform_contract",
    "lumos.testing.platform_entity_contract",
    "lumos.testing.platform_lineage_contract",
    "lumos.testing.platform_search_contract",
)
