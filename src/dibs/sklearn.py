"""dibs for those who use scikit-learn, with the extra ``sklearn``; nothing else of dibs needs it.

The names are those of ``dibs.integrations``; this module only says where they are.
"""

from __future__ import annotations

from dibs.errors import UsageError

try:
    import sklearn as _theirs
except ImportError as error:
    raise UsageError("dibs.sklearn needs scikit-learn, which is not installed: pip install 'dibs[sklearn]'") from error

from dibs.integrations._sklearn_search import DibsSearchCV

__all__ = ["DibsSearchCV"]
del _theirs
