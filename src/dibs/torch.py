"""dibs for those who use PyTorch, with the extra ``torch``; nothing else of federation needs it.

The names are those of ``dibs.integrations``; this module only says where they are.
"""

from __future__ import annotations

from dibs.errors import UsageError

try:
    import torch as _theirs
except ImportError as error:
    raise UsageError("dibs.torch needs PyTorch, which is not installed: pip install 'dibs[torch]'") from error

from dibs.integrations._torch import arrays, fedavg, gather, latest, state_dict

__all__ = ["arrays", "fedavg", "gather", "latest", "state_dict"]
del _theirs
