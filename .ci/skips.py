"""Fail on a skipped test that is not listed: ``skips.py JUNIT_XML ALLOWED``.

A line of ALLOWED is ``test_name: reason``: a test of a shared suite may be skipped for the parts it does not apply
to, as long as it runs for some other. A line that no skip needs is stale, and fails as well. ``?what a test says when
it is skipped: reason``: what it needs is a matter of the machine (a kernel's feature), so it may run or be skipped.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def outcomes(report: Path) -> tuple[dict[str, str], set[str]]:
    """The skipped tests with the reasons they gave, and the names of the tests that ran somewhere."""
    skipped, ran = {}, set()
    for case in ET.parse(report).iter("testcase"):
        name = case.get("name", "")
        skip = case.find("skipped")
        if skip is None:
            ran.add(name)
        elif skip.get("type") != "pytest.xfail":  # an expected failure did run
            skipped[f"{case.get('classname')}::{name}"] = skip.get("message", "")
    return skipped, ran


def allowed(listing: Path) -> tuple[set[str], set[str]]:
    """The names of tests that may be skipped somewhere, and what those say that the machine may skip; each with why."""
    lines = (line.partition(":") for line in listing.read_text(encoding="utf-8").splitlines())
    names = {name for name, _, reason in lines if reason.strip() and not name.startswith("#")}
    return {name for name in names if name[0] != "?"}, {name[1:] for name in names if name[0] == "?"}


def main(report: Path, listing: Path) -> int:
    """0 if what was skipped is exactly what may be."""
    (skipped, ran), (may, machine) = outcomes(report), allowed(listing)
    wrong = [
        f"skipped, and {'run nowhere' if name in may else f'not in {listing}'}: {test} ({reason})"
        for test, reason in sorted(skipped.items())
        if reason not in machine and ((name := test.rpartition("::")[2]) not in may or name not in ran)
    ]
    needless = may - {test.rpartition("::")[2] for test in skipped}
    wrong += [f"listed in {listing}, but skipped nowhere: {name}" for name in sorted(needless)]
    for line in wrong:
        print(line, file=sys.stderr)
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
