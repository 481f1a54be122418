"""One cell of the ablation: a small network on the handwritten digits of scikit-learn, trained for some epochs.

    train.py CONFIG TASK EPOCHS OUT

CONFIG is a TOML file with ``hidden``, ``rate``, ``decay`` and ``activation``; TASK is a table of ``tasks.toml`` beside this
script, which says to which class each of the ten digits belongs. The best weights so far lie in OUT/best.npz and its scores in OUT/metrics.json; each epoch is a line of JSON on stdout.
"""

from __future__ import annotations

import json
import os
import sys
import tomllib
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier


def main(config: str, task: str, epochs: str, out: str) -> None:
    given = tomllib.loads(Path(config).read_text())
    images, labels = load_digits(return_X_y=True)
    tasks = tomllib.loads(Path(__file__).with_name("tasks.toml").read_text())
    labels = np.array(tasks[task]["classes"])[labels]
    x, x_test, y, y_test = train_test_split(images / 16.0, labels, test_size=0.3, random_state=0, stratify=labels)
    model = MLPClassifier(
        (given["hidden"],), learning_rate_init=given["rate"], alpha=given["decay"], activation=given["activation"],
        random_state=0,
    )  # fmt: skip
    folder, best = Path(out), -1.0
    (folder / "pid").write_text(str(os.getpid()))
    for epoch in range(int(epochs)):
        model.partial_fit(x, y, classes=np.unique(y))
        score = float(model.score(x_test, y_test))
        print(json.dumps({"step": epoch, "score": score}), flush=True)
        if score > best:
            best = score
            np.savez(folder / "best.npz", *model.coefs_, *model.intercepts_)
            (folder / "metrics.json").write_text(json.dumps({"accuracy": score, "epoch": epoch}))
    print(json.dumps({"score": best}))


if __name__ == "__main__":
    main(*sys.argv[1:])
