"""What a bucket's refusals mean, in one sentence with the remedy; None where nobody can say what happened. Pure.

Only the status and the server's error code are read, never the rest of the text: it repeats the key, which may say
anything. A refusal (4xx) is certain, but for those that a gateway makes up on the way; a 5xx or a lost answer is not.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from dibs.errors import StoreError

__all__ = ["Said", "said", "store_error"]

_HOW_TO = "see the least permissions in the how-to on buckets"
#: the server's code or the status -> what is wrong and what to do
_MEANS = {
    "there is no such bucket: create it, or check the name": ("NoSuchBucket", "ContainerNotFound", "InvalidBucketName", "InvalidResourceName"),
    "the server refuses it because this machine's clock is off: set the clock": ("RequestTimeTooSkewed", "RequestExpired"),
    "the secret key does not fit the access key: check the credentials": ("SignatureDoesNotMatch", "AuthenticationFailed"),
    "the server does not know these credentials, or they have expired": ("InvalidAccessKeyId", "InvalidToken", "ExpiredToken"),
    "the bucket is in another region: set AWS_REGION": ("AuthorizationHeaderMalformed", "PermanentRedirect", "IllegalLocationConstraintException", "301", "307"),
    "the bucket locks what is in it (object lock, retention), so no record could ever be closed: use one without": (
        "ObjectLocked", "RetentionPolicyNotMet", "ObjectUnderActiveHold", "BlobImmutableDueToPolicy", "BlobImmutableDueToLegalHold"),
    "the server wants credentials: set them in the environment or a profile": ("401",),
    f"these credentials may not do that: {_HOW_TO}": ("AccessDenied", "AllAccessDisabled", "AuthorizationPermissionMismatch", "AuthorizationFailure", "403"),
    "what answers there does not speak S3: check the endpoint": ("405", "501", "not S3"),
}  # fmt: skip
_SENTENCE = {code: sentence for sentence, codes in _MEANS.items() for code in codes}
_STATUS = re.compile(r"status code: (\d{3})")
_CODE = re.compile(r"<Code>(\w+)</Code>")
_UNCERTAIN = (408, 409, 412, 425, 429, 499)  # made up by gateways, or answers to a condition
_ROLES = r"Error performing \w+ http://(169\.254\.\d+\.\d+|metadata\.google)"  # where a machine asks for its role
_NO_CREDENTIALS = "no credentials were found: set them in the environment or a profile"
_CLIENT = [  # no server was asked, or it could not be understood
    (r"MissingAttribute|CredentialsNotLoaded|MissingAccessKey", _NO_CREDENTIALS),
    (r"redirect without LOCATION|incorrectly configured region", "the bucket is in another region: set AWS_REGION"),
    (r"invalid list response", "what answers there does not speak S3: check the endpoint"),
]  # fmt: skip


_UNREACHED = [  # it may pass, as where a network asks for a login first
    (r"InvalidCertificate", "this machine does not trust the server's certificate: check the endpoint and the clock"),
    (r"InvalidMessage|InvalidContentType", "the server answers without encryption: check the port, or say http://"),
    (r"", "the server does not answer: check the endpoint and the network"),
]


class Said(NamedTuple):
    """The facts in an error's text: HTTP status (0: no answer), the server's error code or "", one line of text."""

    status: int
    code: str
    text: str


def said(error: BaseException) -> Said:
    """Read an error of the client."""
    text = str(error).split("Debug source")[0]
    status, code = _STATUS.search(text), _CODE.search(text)
    page = re.search(r"<!doctype html|<html", text, re.I)
    return Said(
        int(status[1]) if status else 0,
        "not S3" if page else code[1] if code else "",
        re.sub(r"\s+", " ", text).strip(),
    )


def store_error(error: BaseException, verb: str, url: str, key: str, *, writing: bool) -> StoreError | None:
    """The StoreError to raise; None for a write whose outcome is not known (a time-out, a 5xx, a lost connection)."""
    told = said(error)
    sentence = _sentence(told, str(error))
    if sentence is None and 400 <= told.status < 500 and told.status not in _UNCERTAIN:
        sentence = f"the server refused it ({told.status} {told.code}): {told.text[-200:]}"
    where = f"cannot {verb} {url}/{key}"
    if sentence is not None:
        return StoreError(f"{where}: {sentence}", key=key)
    if writing:
        return None
    if told.status == 0 and "error sending request" in told.text:
        words = next(words for pattern, words in _UNREACHED if re.search(pattern, str(error)))
        return StoreError(f"{where}: {words}", key=key, passing=True)
    return StoreError(f"{where}: {told.text[:300]}", key=key, passing=True)


def _sentence(told: Said, whole: str) -> str | None:
    if re.search(_ROLES, told.text):
        return _NO_CREDENTIALS
    if told.status >= 500 and told.status != 501:
        return None
    for code in (told.code, str(told.status)):
        if code in _SENTENCE:
            return _SENTENCE[code]
    if told.status:
        return None
    return next((sentence for pattern, sentence in _CLIENT if re.search(pattern, whole, re.S)), None)
