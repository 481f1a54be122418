"""dibs for those who use Optuna, with the extra ``optuna``; nothing else of dibs needs it.

The names are those of ``dibs.integrations``; this module only says where they are.
"""

from __future__ import annotations

from dibs.errors import UsageError

try:
    import optuna as _theirs
except ImportError as error:
    raise UsageError("dibs.optuna needs Optuna, which is not installed: pip install 'dibs[optuna]'") from error

from dibs.integrations._optuna_export import export
from dibs.integrations._optuna_import import Imported, import_study
from dibs.integrations._optuna_importances import importances
from dibs.integrations._optuna_pruner import OptunaPruner
from dibs.integrations._optuna_sampler import OptunaSampler
from dibs.integrations._optuna_storage import Storage

__all__ = ["Imported", "OptunaPruner", "OptunaSampler", "Storage", "export", "import_study", "importances"]
del _theirs
