"""Ten seconds of torture without root, and a torture of a broken product, which has to say so."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from dibs.testing import torture
from dibs.testing._torture_orders import Orders

# loaded by every worker before anything else: done() now and then forgets to write
FORGETFUL = """
import sys
if "dibs.testing._torture_worker" in " ".join(sys.orig_argv):
    from dibs.store import Settler
    rewrite = Settler.rewrite

    def forgetful(self, held, body, **more):
        if not (body.get("state") == "done" and (body["n"], body["attempt"]) == (1, 0)):
            rewrite(self, held, body, **more)

    Settler.rewrite = forgetful
"""


def tortured(*arguments: str, **environ: str) -> tuple[int, str, str]:
    """(exit code, stdout, stderr) of the command."""
    done = subprocess.run(
        [sys.executable, "-m", "dibs.testing.torture", *arguments],
        capture_output=True, text=True, timeout=110, check=False, env={**os.environ, **environ},
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


def test_ten_seconds(tmp_path: Path) -> None:
    code, out, err = tortured("--seconds", "10", "--seed", "7", "--workers", "4", "--store", str(tmp_path / "new"))
    assert code == 0, out + err
    assert "nothing broken" in out
    found = re.search(r"\((\d+) in a running trial\)", out)
    assert found is not None
    assert int(found[1]) >= 1
    assert (tmp_path / "new" / "facts.json").exists(), "a named folder is kept"


def test_the_time_counts_from_when_somebody_is_there(tmp_path: Path) -> None:
    code, out, err = tortured(
        "--seconds", "0.01", "--only", "steer", "--workers", "1", "--trials", "1", "--trial-s", "0.02", "0.05",
        "--store", str(tmp_path / "new"),
    )  # fmt: skip
    assert code == 0, out + err
    assert "1 times steered" in out


def test_a_broken_product_is_found_out(tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(FORGETFUL)
    path = f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    code, out, err = tortured(
        "--seconds", "2", "--only", "nothing", "--workers", "2", "--trials", "5", "--trial-s", "0.02", "0.05",
        "--store", str(tmp_path / "new"), PYTHONPATH=path,
    )  # fmt: skip
    assert code == 1, out + err
    assert "kept: 1-0 was told done to" in out
    assert "the evidence is in" in out


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--only", "tickle"], "there are kill, stop"),
        (["--seconds", "0"], "must be positive"),
        (["--workers", "0"], "must be positive"),
    ],
)
def test_what_cannot_be_meant(arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        torture.main(arguments)
    assert ended.value.code == 2
    assert says in capsys.readouterr().err


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "thesis.tex").touch()
    assert torture.main(["--store", str(tmp_path)]) == 2
    assert "not empty" in capsys.readouterr().err


def test_orders_arrive_as_they_were_given() -> None:
    orders = Orders("s", "f", "me", "trials", 7, 1, 4.0, None, skew_s=-7200.0, steps=("wish", "stop"))
    assert Orders.of_text(orders.text()) == orders
