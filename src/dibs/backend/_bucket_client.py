"""The client of a bucket, made from its URL: options, credentials and TLS, with the client's own retries off.

Credentials come the ecosystem's way and go nowhere else: environment, then the profile in ``~/.aws``, then the role of
the machine. Plain http only where an endpoint, in the URL or the environment, says ``http://``.
"""

from __future__ import annotations

import configparser
import os
from collections.abc import Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any

from dibs.errors import UsageError

__all__ = ["connect", "demand_client", "profile"]

_ENDPOINTS = (
    "AWS_ENDPOINT_URL_S3",
    "AWS_ENDPOINT_URL",
    "AWS_ENDPOINT",
    "AZURE_STORAGE_ENDPOINT",
    "AZURITE_BLOB_STORAGE_URL",
)
_PLAIN = {"aws_access_key_id": "access_key_id", "aws_secret_access_key": "secret_access_key",
          "aws_session_token": "session_token", "region": "region", "endpoint_url": "endpoint"}  # fmt: skip
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
        raise UsageError(f"{url} cannot be opened: {str(error).split('Debug source')[0].strip()[:300]}") from None


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
