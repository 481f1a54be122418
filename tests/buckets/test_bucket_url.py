"""What the URL of a bucket says: one place each, no credential, and one sentence for what cannot be one."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.buckets.servers import Server

from dibs import Store, UsageError
from dibs.backend import BucketBackend, check_endpoint
from dibs.backend._bucket_client import connect
from dibs.store._bucket_url import bucket_url, read_url

ENDPOINT = "http://127.0.0.1:9000"
ENV = {
    "AWS_ACCESS_KEY_ID": "AK",
    "AWS_SECRET_ACCESS_KEY": "SK",
    "AWS_CONFIG_FILE": "/no",
    "AWS_SHARED_CREDENTIALS_FILE": "/no",
}
KEYS = st.text(st.characters(exclude_categories=("Cs", "Cc"), exclude_characters="\\"), min_size=1, max_size=20)


def is_plain(prefix: str) -> bool:
    return all(part not in ("", ".", "..") and part == part.strip() for part in prefix.split("/"))


@given(KEYS.filter(is_plain))
def test_a_prefix_is_what_was_said_letter_by_letter(prefix: str) -> None:
    base, options = read_url(bucket_url(ENDPOINT, "b", prefix))
    assert options == {"endpoint": ENDPOINT}
    assert base.startswith("s3://b/")
    assert read_url(base) == (base, {}), "spelt alike however often it is read"
    from urllib.parse import unquote

    assert unquote(base.removeprefix("s3://b/")) == prefix


@given(KEYS)
def test_a_prefix_is_refused_or_kept(prefix: str) -> None:
    from urllib.parse import unquote

    try:
        base, _ = read_url(bucket_url(ENDPOINT, "b", prefix))
    except UsageError:
        assert not is_plain(prefix.strip("/"))
    else:
        assert unquote(base.removeprefix("s3://b").removeprefix("/")) == prefix.strip("/")


def test_odd_prefixes_are_places_of_their_own(server: Server, place: str, credentials: None) -> None:
    """As the client and the server see them."""
    prefixes = [
        "a b",
        "a%20b",
        "a+b",
        "a?b",
        "a#b",
        "a#c",
        "a%23b",
        "a%",
        "ü",
        "日本/語",
        "a;b=c&d",
        "~",
        "{x}",
        "a:b@c",
    ]
    found = {}
    for prefix in prefixes:
        store = Store.on_bucket(server.endpoint, server.bucket, f"{place}/{prefix}")
        assert store.claim("x")
        assert Store(store.url, create=False).marker["nonce"] == store.marker["nonce"]
        found[store.marker["nonce"]] = prefix
    assert len(found) == len(prefixes)
    whole = BucketBackend(server.url(place), server.options())
    assert {entry.key.removesuffix("/dibs.json") for entry in whole.list("") if entry.key.endswith("/dibs.json")} == {
        *prefixes
    }


@pytest.mark.parametrize(
    "url",
    [
        "s3://", "s3:///p", "s3://b?endpoint=", "s3://b?endpoint=garbage", "s3://b?endpoint=http://",
        "s3://b?endpoint=ftp://x", "s3://b?endpoint=http://[::1", "s3://b?endpoint=http://h:99999",
        "s3://b?endpoint=http://h:0", "s3://b?endpoint=http://h%20", "s3://b?endpoint=http://h?x=1",
        "s3://b/p?endpoint=http://h#f", "s3://b/p#f", "s3://b/p#f?endpoint=http://h", "s3://[::1/x", "s3://b c/x",
        "s3://b%00/x", "s3://bü/x", "s3://../x", "s3://b:80/x", "s3://b/a/../b", "s3://b/..", "s3://b/./a",
        "s3://b/%2e%2e/a", "s3://b/a//b", "s3://b/a\nb", "s3://b/a%0ab", "s3://b/a\\b", "s3://b/a%00", "s3://b/a /b",
        "s3://b/p ", "s3://b/\ud800", "s3://b/%ff", "s3://b/" + "x" * 701, "s3://b/p?foo=1", "s3://b/p?region=a%0a",
        "s3://b/p?endpoint=http://h&endpoint=http://i", "s3://b/p?skip_signature=a b",
    ],
)  # fmt: skip
def test_what_is_no_url_of_a_bucket(url: str) -> None:
    with pytest.raises(UsageError) as told:
        Store(url)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    "url",
    [
        "s3://AK:SECRET@b/p", "s3://SECRET@b/p", "s3://AK:SEC/RET@b/p", "s3://b/p?secret_access_key=SECRET",
        "s3://b/p?aws_secret_access_key=SECRET", "s3://b/p?endpoint=http://AK:SECRET@h", "az://c/p?sig=SECRET",
        "s3://b/p?endpoint=http://h&x=1#SECRET", "s3://b/p?endpoint=AK:SECRET@h",
    ],
)  # fmt: skip
def test_a_credential_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(UsageError) as told:
        Store(url)
    assert "SEC" not in str(told.value)


@pytest.mark.parametrize(
    ("endpoint", "bucket", "prefix", "options"),
    [
        (None, "b", "p", {}), (b"http://h", "b", "p", {}), (5, "b", "p", {}), (ENDPOINT, None, "p", {}),
        (ENDPOINT, "", "p", {}), (ENDPOINT, "/", "p", {}), (ENDPOINT, b"b", "p", {}), (ENDPOINT, "b/sub", "p", {}),
        (ENDPOINT, "b?region=x", "p", {}), (ENDPOINT, "b@c", "p", {}), (ENDPOINT, "b", None, {}), (ENDPOINT, "b", 7, {}),
        (ENDPOINT, "b", "..", {}), (ENDPOINT, "b", "a\tb", {}), (ENDPOINT, "b", "p", {"region": 5}),
        (ENDPOINT, "b", "p", {"region": "eu\n"}), (ENDPOINT, "b", "p", {"nonsense": "1"}),
        (ENDPOINT, "b", "p", {"secret_access_key": "SECRET"}), ("", "b", "p", {}), ("h:9000", "b", "p", {}),
        ("http:// ", "b", "p", {}),
    ],
)  # fmt: skip
def test_what_on_bucket_does_not_take(endpoint: Any, bucket: Any, prefix: Any, options: dict[str, Any]) -> None:
    with pytest.raises(UsageError):
        Store.on_bucket(endpoint, bucket, prefix, **options)


def test_options_of_python_are_those_of_the_url() -> None:
    url = bucket_url("HTTP://h:1/", "b", "/p/", region=None, skip_signature=True, virtual_hosted_style_request=False)
    assert url == "s3://b/p?endpoint=http://h:1&skip_signature=true&virtual_hosted_style_request=false"
    assert check_endpoint("https://h/sub/") == "https://h/sub"


@pytest.mark.parametrize("text", ["s3:/b/p", "gs:/b", "az:/c/p"])
def test_a_url_that_became_a_path(text: str) -> None:
    for place in (text, Path(text)):
        with pytest.raises(UsageError, match="two slashes"):
            Store(place)


@pytest.mark.parametrize(
    "environ",
    [
        {"AWS_ENDPOINT_URL": "garbage"}, {"AWS_ENDPOINT_URL_S3": "http://"}, {"AWS_ENDPOINT_URL": "http://AK:SECRET@h"},
        {"AWS_ACCESS_KEY_ID": "AK\n"}, {"AWS_SECRET_ACCESS_KEY": "SECRET\n"}, {"AWS_SESSION_TOKEN": "SEC RET"},
        {"AWS_REGION": "eu\u00fc"},
    ],
)  # fmt: skip
def test_an_environment_that_the_client_has_no_sentence_for(environ: dict[str, str]) -> None:
    with pytest.raises(UsageError) as told:
        connect("s3://b/p", {}, 1.0, {**ENV, **environ})
    assert "SEC" not in str(told.value).replace("AWS_SECRET_ACCESS_KEY", "")


def test_a_forked_process_is_told_at_once(
    server: Server, place: str, credentials: None, capfd: pytest.CaptureFixture[str]
) -> None:
    store = Store.on_bucket(server.endpoint, server.bucket, place)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # forking with threads about is what is tested
        child = os.fork()
    if child == 0:  # nothing of the test goes on in here
        try:
            store.settler.patience_s = 30.0
            store.claim("x")
        except BaseException as wrong:
            os.write(1, f"{type(wrong).__name__}: {wrong}\n".encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert capfd.readouterr().out.startswith("StoreError: ")
    assert store.resolve("x") is None
