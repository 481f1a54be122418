"""Callbacks that report to a trial after each round or epoch, and end the training when the trial says so.

One class or function per library, each a few lines, each importing its library when it is used: ``trial.report`` is all
they call, so the curve, the pruner and a stop by signal work as in a loop of one's own.
"""

from __future__ import annotations

from typing import Any

from dibs.errors import UsageError
from dibs.study import Trial

__all__ = ["for_keras", "for_lightgbm", "for_lightning", "for_xgboost"]


def for_xgboost(trial: Trial, metric: str | None = None) -> Any:
    """A callback for ``xgboost.train(..., callbacks=[for_xgboost(trial)])``: reports the last evaluation set's metric.

    ``metric``: its name; None = the last one. Stopping ends the training after that round. Raises UsageError for a
    metric that is not evaluated.
    """
    from xgboost.callback import TrainingCallback

    class Report(TrainingCallback):  # type: ignore[misc,unused-ignore]
        def after_iteration(self, model: Any, epoch: int, evals_log: dict[str, dict[str, list[Any]]]) -> bool:
            found = list(evals_log.values())[-1] if evals_log else {}
            name = metric or next(reversed(found), "")
            told = _last(found, name, "evals=[(matrix, name)]")
            return trial.report(float(told[0] if isinstance(told, tuple) else told), epoch)

    return Report()


def for_lightgbm(trial: Trial, metric: str | None = None) -> Any:
    """A callback for ``lightgbm.train(..., callbacks=[for_lightgbm(trial)])``: reports the last validation set's metric.

    Stopping is LightGBM's early stopping, so the model is the one up to that round. Raises UsageError as above.
    """
    from lightgbm.callback import EarlyStopException

    def report(env: Any) -> None:
        found = {name: [value] for _, name, value, *_ in env.evaluation_result_list or ()}
        value = _last(found, metric or next(reversed(found), ""), "valid_sets=[...]")
        if trial.report(float(value), env.iteration):
            raise EarlyStopException(env.iteration, env.evaluation_result_list)

    report.order = 30  # type: ignore[attr-defined]  # after the evaluation was recorded
    return report


def for_keras(trial: Trial, metric: str = "val_loss") -> Any:
    """A callback for ``model.fit(..., callbacks=[for_keras(trial)])``: reports the metric after each epoch.

    Raises UsageError for a metric that the fit does not have.
    """
    from keras.callbacks import Callback

    class Report(Callback):  # type: ignore[misc,unused-ignore]
        def on_epoch_end(self, epoch: int, logs: dict[str, Any] | None = None) -> None:
            value = _last({name: [told] for name, told in (logs or {}).items()}, metric, "validation_data=...")
            if trial.report(float(value), epoch):
                self.model.stop_training = True

    return Report()


def for_lightning(trial: Trial, metric: str = "val_loss") -> Any:
    """A callback for ``Trainer(callbacks=[for_lightning(trial)])``: reports the logged metric after each validation.

    The sanity check before the training is not reported. Raises UsageError for a metric that was not logged.
    """
    from lightning.pytorch.callbacks import Callback

    class Report(Callback):  # type: ignore[misc,unused-ignore]
        def on_validation_end(self, trainer: Any, pl_module: Any) -> None:
            if trainer.sanity_checking:
                return
            value = _last({name: [told] for name, told in trainer.callback_metrics.items()}, metric, "self.log(...)")
            if trial.report(float(value), trainer.current_epoch):
                trainer.should_stop = True

    return Report()


def _last(found: dict[str, list[Any]], name: str, how: str) -> Any:
    if name not in found:
        known = ", ".join(map(repr, found)) or "none: give some with " + how
        raise UsageError(f"there is no metric {name!r} to report (there: {known})")
    return found[name][-1]
