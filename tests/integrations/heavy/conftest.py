"""What needs a library just to be imported is not looked at where there is none; `make test-torch` has it."""

from __future__ import annotations

from importlib.util import find_spec

collect_ignore = [] if find_spec("torch") is not None else ["test_federated_torch.py"]
