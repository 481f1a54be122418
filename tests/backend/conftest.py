"""The conformance suite's own assertions are shown in full."""

import pytest

pytest.register_assert_rewrite(
    "dibs.testing._backend_suite", "dibs.testing._backend_races", "dibs.testing._backend_machine"
)
