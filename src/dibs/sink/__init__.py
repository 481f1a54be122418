"""The sink: the best trial out of a pool that throws its workers' results away. Knows no study and no store.

Workers spool the best they have seen into a private folder, each under names of its own; the main process reads the
best of all when the optimiser has returned. Nothing here claims, locks between processes, or speaks to anybody.
"""

from ._best import SinkRecord
from ._sink import Sink

__all__ = ["Sink", "SinkRecord"]
