"""The URL of a store in a bucket, read and written: two spellings are one store, and two prefixes never are. Pure.

What a client or a server would bend (``..``, an empty segment, a backslash, a line break) is refused here, since it
would put one search into the place of another. A URL ends up in logs, so what looks like a credential is refused, too,
and never repeated.
"""

from __future__ import annotations

import re
from urllib.parse import parse_qsl, quote, unquote, urlencode

from dibs.backend import check_endpoint
from dibs.errors import UsageError

__all__ = ["bucket_url", "read_url"]

_OPTIONS = ("endpoint", "region", "virtual_hosted_style_request", "account_name", "skip_signature", "use_emulator")
_SECRETS = ("access_key_id", "secret_access_key", "session_token", "account_key", "sas_key", "token", "password")
_BUCKET = re.compile(r"[A-Za-z0-9$][A-Za-z0-9._$-]*")
_WORD = re.compile(r"[A-Za-z0-9._-]*")  # a region, an account, a yes or no
_BENT = re.compile(r"[\x00-\x1f\x7f\\]")
_LONGEST = 700  # bytes: keys go on for some 200, and end at 1,024


def bucket_url(endpoint: str, bucket: str, prefix: str = "", **options: str | bool | None) -> str:
    """The URL of a store in a bucket of a server that speaks S3: ``s3://bucket/prefix?endpoint=...``.

    The prefix is what the keys begin with, letter by letter: ``a%20b`` is not ``a b``. An option that is None is left
    out. Raises UsageError.
    """
    for what, value in {"endpoint": endpoint, "bucket": bucket, "prefix": prefix}.items():
        if not isinstance(value, str):
            raise UsageError(f"the {what} of a bucket is a text, not {value!r}")
    for name, given in options.items():
        if given is not None and not isinstance(given, str | bool):
            raise UsageError(f"the option {name} of a bucket is a text, not {given!r}")
    if not bucket:
        raise UsageError("a store in a bucket needs the bucket's name")
    _demand_bucket(bucket)
    words = {name: str(given).lower() if given is True or given is False else given for name, given in options.items()}
    query = {"endpoint": check_endpoint(endpoint), **{name: word for name, word in words.items() if word is not None}}
    path = "/".join(part for part in (bucket, _quoted(prefix.strip("/"))) if part)
    return f"s3://{path}?{urlencode(query, quote_via=quote, safe=':/')}"


def read_url(url: str) -> tuple[str, dict[str, str]]:
    """The URL without its query, always spelt alike, and the query as the client's options. Raises UsageError."""
    scheme, _, rest = url.partition("://")
    place, _, query = rest.partition("?")
    bucket, _, path = place.partition("/")
    if "@" in bucket or ":" in bucket:  # never repeated: it may be half a secret
        raise UsageError(
            "a store's URL has only the bucket's name behind ://, and ends up in logs: give a server as ?endpoint=URL, and "
            "credentials through the environment or a profile"
        )
    options = _options(query)
    if "#" in url:
        raise UsageError("a store's URL has no part behind a #: write %23 if the prefix has one")
    if not bucket:
        raise UsageError(f"{url} names no bucket: write {scheme}://BUCKET/PREFIX")
    _demand_bucket(bucket)
    prefix = _prefix(path)
    return f"{scheme}://{bucket}" + (f"/{_quoted(prefix)}" if prefix else ""), options


def _options(query: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name in _SECRETS:
            raise UsageError(f"{name} in a store's URL would end up in logs: set it in the environment or a profile")
        if name not in _OPTIONS:
            raise UsageError(f"unknown option {name!r} in a store's URL: the options are {', '.join(_OPTIONS)}")
        if name in options:
            raise UsageError(f"{name} stands twice in a store's URL")
        if name != "endpoint" and not _WORD.fullmatch(value):
            raise UsageError(f"{name} in a store's URL is a word, not {value!r}")
        options[name] = check_endpoint(value) if name == "endpoint" else value
    return options


def _demand_bucket(bucket: str) -> None:
    if not _BUCKET.fullmatch(bucket):
        raise UsageError(
            f"{bucket!r} cannot be a bucket's name, which has letters, digits, dots and dashes (the prefix is given apart)"
        )


def _prefix(path: str) -> str:
    """What every key begins with. Raises UsageError for what would become another prefix on its way."""
    prefix = unquote(path, errors="surrogateescape").strip("/")
    try:
        size = len(prefix.encode())
    except UnicodeEncodeError:
        raise UsageError(f"the prefix {prefix!r} is not valid Unicode: choose another") from None
    if _BENT.search(prefix):
        raise UsageError(f"the prefix {prefix!r} has a backslash or a control character in it: choose another")
    if size > _LONGEST:
        raise UsageError(f"a prefix has {_LONGEST} bytes at most, since keys end at 1,024, and this one has {size}")
    for segment in prefix.split("/") if prefix else ():
        if segment in ("", ".", "..") or segment != segment.strip():
            raise UsageError(
                f"the prefix {prefix!r} has an empty part, a . or .., or a space at an edge: write it without"
            )
    return prefix


def _quoted(prefix: str) -> str:
    """Only what a URL would take for something else, so that it stays readable."""
    return prefix.replace("%", "%25").replace("?", "%3F").replace("#", "%23")
