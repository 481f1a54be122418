"""Fail on a skipped test that is not listed: ``skips.py JUNIT_XML ALLOWED``.

A line of ALLOWED is ``tests.module::test_name: reason``; a line that no skip used is stale and fails as well.
"""

from __future__ import annotations

import sys
import xml.etree.ElementTree as ET
from pathlib import Path


def skipped(report: Path) -> dict[str, str]:
    """Ids of the skipped tests (expected failures are skips to pytest, and are not meant) with their reasons."""
    found = {}
    for case in ET.parse(report).iter("testcase"):
        skip = case.find("skipped")
        if skip is not None and skip.get("type") != "pytest.xfail":
            found[f"{case.get('classname')}::{case.get('name')}"] = skip.get("message", "")
    return found


def allowed(listing: Path) -> dict[str, str]:
    """Ids with the reason why each may be skipped."""
    lines = (line.strip() for line in listing.read_text(encoding="utf-8").splitlines())
    pairs = (line.rpartition(": ") for line in lines if line and not line.startswith("#"))
    return {test: reason for test, _, reason in pairs}


def main(report: Path, listing: Path) -> int:
    """0 if what was skipped is exactly what may be."""
    seen, may = skipped(report), allowed(listing)
    for test in sorted(seen.keys() - may.keys()):
        print(f"skipped, and not in {listing}: {test} ({seen[test]})", file=sys.stderr)
    for test in sorted(may.keys() - seen.keys()):
        print(f"listed in {listing}, but not skipped: {test}", file=sys.stderr)
    return int(seen.keys() != may.keys())


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), Path(sys.argv[2])))
