"""The client of a bucket, made from its URL: options, credentials and TLS, with the client's own retries off.

Credentials come the ecosystem's way and go nowhere else: environment, then the profile in ``~/.aws``, then the role of
the machine. Plain http only where an endpoint, in the URL or the environment, says ``http://``.
"""

from __future__ import annotations

import configparser
import os
import re
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from dibs.errors import UsageError

__all__ = ["check_endpoint", "connect", "demand_client", "profile"]

_ENDPOINTS = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURITE_BLOB_STORAGE_URL",
)
_PLAIN = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key",
          "aws_session_token": "session_token", "region": "region", "endpoint_url": "endpoint"}  # fmt: skip
_WRITTEN = (
    "AWS_ACCESS_KEY_ID",
    "AWS_SECRET_ACCESS_KEY",
    "AWS_SESSION_TOKEN",
    "AWS_REGION",
    "AWS_DEFAULT_REGION",
)
_ELSEWHERE = ("sso_session", "sso_start_url", "role_arn", "credential_process", "login_session")


def connect(url: str, options: Mapping[str, str], timeout_s: float, environ: Mapping[str, str] = os.environ) -> Any:
    """An obstore client. Raises UsageError: no obstore, a URL or a profile it cannot use."""
    demand_client(url)
    from obstore.store import from_url

    given: dict[str, Any] = dict(options)
    if url.startswith("s3:"):
        given = {**profile(environ, given), **given}
        if "endpoint" not in given and environ.get("AWS_ENDPOINT_URL_S3"):
            given["endpoint"] = environ["AWS_ENDPOINT_URL_S3"]
        for name in _WRITTEN:
            _demand_plain(name, environ.get(name, ""))
    endpoints = _ENDPOINTS[:3] if url.startswith("s3:") else _ENDPOINTS[3:] if url.startswith("az:") else ()
    for where in (given.get("endpoint"), *map(environ.get, endpoints)):
        if where:
            check_endpoint(where)
    plain = any(str(where).startswith("http://") for where in (given.get("endpoint"), *map(environ.get, _ENDPOINTS)))
    try:
        return from_url(
            url,
            **given,
            client_options={
                "allow_http": plain or given.get("use_emulator") == "true",
                "timeout": timedelta(seconds=timeout_s),
                "connect_timeout": timedelta(seconds=min(10.0, timeout_s)),
            },
            retry_config={"max_retries": 0, "retry_timeout": timedelta(seconds=timeout_s)},
        )
    except Exception as error:
        text = re.sub(r"\s+", " ", str(error).split("Debug source")[0]).strip()[:300]
        raise UsageError(f"{url} cannot be opened: {text}") from None


def check_endpoint(text: str) -> str:
    """The endpoint, without a slash at its end. Raises UsageError for what the client could not go to, or should not."""
    try:
        parts = urlsplit(text)
        port = parts.port
    except ValueError:  # brackets that do not close, a port that is none
        parts, port = urlsplit(""), None
    if "@" in text:
        raise UsageError(
            "an endpoint ends up in logs: give credentials through the environment or a profile, not in it"
        )
    whole = (
        parts.scheme in ("http", "https") and parts.hostname and port != 0 and not re.search(r"[\s?#\\\x00-\x20]", text)
    )
    if not whole:
        raise UsageError(f"an endpoint is a URL such as https://s3.example.org, not {text!r}")
    return f"{parts.scheme}{text[len(parts.scheme) :]}".rstrip("/")


def _demand_plain(name: str, value: str) -> None:
    """The client has no sentence for a key that no header can carry."""
    if re.search(r"[^\x21-\x7e]", value):
        raise UsageError(f"{name} has a space, a line break or another character in it that no key has: set it anew")


def demand_client(url: str) -> None:
    """UsageError that says what to install, where the extra is missing."""
    try:
        import obstore  # noqa: F401 because only whether it is there is asked
    except ImportError:
        raise UsageError(f"{url} is a bucket, which needs the extra `bucket` of dibs: pip install obstore") from None


def profile(environ: Mapping[str, str], given: Mapping[str, Any]) -> dict[str, Any]:
    """What ``~/.aws/config`` and ``~/.aws/credentials`` say for AWS_PROFILE, where nothing else says it."""
    name = environ.get("AWS_PROFILE") or "default"
    found: dict[str, str] = {}
    for variable, file, section in (
        ("AWS_CONFIG_FILE", "~/.aws/config", name if name == "default" else f"profile {name}"),
        ("AWS_SHARED_CREDENTIALS_FILE", "~/.aws/credentials", name),
    ):
        parser = configparser.RawConfigParser()
        try:
            parser.read(Path(environ.get(variable) or file).expanduser())
        except (configparser.Error, UnicodeDecodeError) as wrong:
            raise UsageError(f"the profile of AWS does not read: {str(wrong)[:200]}") from None
        if parser.has_section(section):
            found |= dict(parser.items(section))
    if environ.get("AWS_PROFILE") and not found:
        raise UsageError(f"AWS_PROFILE names {name!r}, which is neither in ~/.aws/config nor in ~/.aws/credentials")
    keyed = "AWS_ACCESS_KEY_ID" in environ or "access_key_id" in given or "skip_signature" in given
    options: dict[str, Any] = {ours: found[theirs] for theirs, ours in _PLAIN.items() if theirs in found}
    if keyed:
        for secret in ("access_key_id", "secret_access_key", "session_token"):
            options.pop(secret, None)
    elif "access_key_id" not in options and any(word in found for word in _ELSEWHERE):
        options["credential_provider"] = _boto(name)
    if environ.get("AWS_REGION") or environ.get("AWS_DEFAULT_REGION"):
        options.pop("region", None)
    if any(environ.get(variable) for variable in _ENDPOINTS[:3]):
        options.pop("endpoint", None)
    return options


def _boto(name: str) -> Any:
    """Single sign-on, assumed roles and helpers are boto3's business."""
    try:
        import boto3
        from obstore.auth.boto3 import Boto3CredentialProvider
    except ImportError:
        raise UsageError(
            f"the profile {name!r} gets its credentials elsewhere (sso, a role): pip install boto3"
        ) from None
    return Boto3CredentialProvider(boto3.Session(profile_name=name))
