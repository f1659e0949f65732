import pytest

pytest.register_assert_rewrite("queuecore.testing.contract")
