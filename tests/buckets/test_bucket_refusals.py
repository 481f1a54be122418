"""What cannot be a store is told in one sentence with the remedy, whatever server says it and how."""

from __future__ import annotations

import http.server
import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.buckets.servers import Server, free_port

from dibs import Store, StoreError, UsageError
from dibs.backend import BucketBackend, MemoryBackend, Outcome
from dibs.backend._bucket_client import profile
from dibs.backend._bucket_errors import store_error
from dibs.store import _opening_bucket


@pytest.fixture(autouse=True)
def credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AK")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "SK")
    monkeypatch.setattr(_opening_bucket, "_OPENING_S", 0.0)


class Canned(http.server.BaseHTTPRequestHandler):
    """Answers everything alike, and keeps what it was asked."""

    protocol_version = "HTTP/1.1"
    status, body, headers_out, asked = 200, b"", {}, []  # type: ignore[var-annotated]

    def _any(self) -> None:
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.asked.append((self.command, self.path, dict(self.headers)))
        self.send_response(self.status)
        for name, value in {**self.headers_out, "Content-Length": str(len(self.body))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(self.body)

    do_GET = do_PUT = do_HEAD = do_DELETE = _any

    def log_message(self, format: str, *args: Any) -> None:
        return


@contextmanager
def serving(handler: type[http.server.BaseHTTPRequestHandler]) -> Iterator[str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def canned(status: int, code: str = "", **headers: str) -> type[Canned]:
    body = f"<?xml version='1.0'?><Error><Code>{code}</Code><Message>no</Message></Error>".encode() if code else b""
    return type("Answers", (Canned,), {"status": status, "body": body, "headers_out": headers, "asked": []})


@pytest.mark.parametrize(
    ("status", "code", "sentence"),
    [
        (404, "NoSuchBucket", "there is no such bucket"),
        (400, "InvalidResourceName", "there is no such bucket"),
        (403, "AccessDenied", "may not do that"),
        (403, "RequestTimeTooSkewed", "clock is off"),
        (403, "SignatureDoesNotMatch", "secret key does not fit"),
        (403, "InvalidAccessKeyId", "does not know these credentials"),
        (301, "PermanentRedirect", "in another region: set AWS_REGION"),
        (400, "AuthorizationHeaderMalformed", "in another region: set AWS_REGION"),
        (400, "ExpiredToken", "have expired"),
        (401, "", "wants credentials"),
        (405, "MethodNotAllowed", "does not speak S3"),
        (400, "Teapot", r"the server refused it \(400 Teapot\)"),
        (503, "SlowDown", "SlowDown"),
    ],
)
def test_what_the_server_refuses(status: int, code: str, sentence: str, place: str) -> None:
    with serving(canned(status, code)) as endpoint, pytest.raises(StoreError, match=sentence) as told:
        Store.on_bucket(endpoint, "studies", place)
    assert "\n" not in str(told.value)
    assert "SK" not in str(told.value)


def test_an_endpoint_that_is_not_s3(tmp_path: Path, place: str) -> None:
    (tmp_path / "studies").mkdir()

    class Files(http.server.SimpleHTTPRequestHandler):
        def __init__(self, *args: Any, **more: Any) -> None:
            super().__init__(*args, directory=str(tmp_path), **more)

        def log_message(self, format: str, *args: Any) -> None:
            return

    with serving(Files) as endpoint, pytest.raises(StoreError, match="does not speak S3"):
        Store.on_bucket(endpoint, "studies", place)


def test_an_endpoint_where_nothing_is(place: str) -> None:
    with pytest.raises(StoreError, match="does not answer: check the endpoint"):
        Store.on_bucket(f"http://127.0.0.1:{free_port()}", "studies", place)


def test_an_endpoint_without_encryption_and_one_that_nobody_vouches_for(place: str) -> None:
    with serving(canned(200)) as endpoint, pytest.raises(StoreError, match="without encryption"):
        Store.on_bucket(endpoint.replace("http:", "https:"), "studies", place)
    error = OSError("HTTP error: error sending request\n\nDebug source: InvalidCertificate(UnknownIssuer)")
    told = store_error(error, "read", "s3://b", "k", writing=False)
    assert told is not None
    assert "does not trust the server's certificate" in str(told)
    assert store_error(error, "write", "s3://b", "k", writing=True) is None


def test_what_the_client_refuses_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_NAME", "bad name\n")
    monkeypatch.setenv("AZURE_STORAGE_ACCOUNT_KEY", "c2VjcmV0")
    with pytest.raises(UsageError) as told:
        Store("az://studies/p")
    assert "\n" not in str(told.value)


def test_plain_http_only_where_a_url_says_so(monkeypatch: pytest.MonkeyPatch, place: str) -> None:
    with pytest.raises(UsageError, match="an endpoint is a URL"):
        Store.on_bucket("127.0.0.1:9000", "studies", place)
    monkeypatch.setenv("AWS_REGION", "us-east-1")
    with serving(canned(404, "NoSuchBucket")) as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        with pytest.raises(StoreError, match="no such bucket"):
            Store(f"s3://studies/{place}")


def test_a_key_that_spells_a_refusal_is_none() -> None:
    with serving(canned(500, "InternalError")) as endpoint:
        backend = BucketBackend("s3://b/p", {"endpoint": endpoint, "region": "us-east-1"})
        assert backend.create("name/accessdenied.json", backend.stage(b"{}")) is Outcome.UNSURE


def test_a_versioned_bucket_is_told_of(server: Server, place: str, caplog: pytest.LogCaptureFixture) -> None:
    import boto3

    client = boto3.client("s3", endpoint_url=server.endpoint, region_name="us-east-1")
    client.create_bucket(Bucket="versioned")
    client.put_bucket_versioning(Bucket="versioned", VersioningConfiguration={"Status": "Enabled"})
    with caplog.at_level(logging.WARNING, "dibs"):
        Store.on_bucket(server.endpoint, "versioned", place)
        Store.on_bucket(server.endpoint, server.bucket, place)
    assert ["keeps every version" in record.message for record in caplog.records] == [True]


class Locked(MemoryBackend):
    """No object is ever rewritten."""

    def replace(self, key, draft, version):  # type: ignore[no-untyped-def]
        return Outcome.LOST


def test_a_bucket_that_locks_its_objects() -> None:
    from tests.parts import FakeMachine

    with pytest.raises(StoreError, match="object lock"):
        _opening_bucket._probe(Locked(conditional_replace=True), FakeMachine(), "s3://x")


def test_gcs_compares_generations(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    handler = canned(412, "PreconditionFailed")
    with serving(handler) as endpoint:
        (tmp_path / "key.json").write_text(
            f'{{"gcs_base_url": "{endpoint}", "disable_oauth": true, "client_email": "", "private_key": "", "private_key_id": ""}}'
        )
        monkeypatch.setenv("GOOGLE_SERVICE_ACCOUNT", str(tmp_path / "key.json"))
        monkeypatch.setattr(BucketBackend, "timeout_s", 5.0, raising=False)
        backend = BucketBackend("gs://studies/p")
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)  # plain http is allowed where an endpoint says so
        assert backend.replace("a/x.json", backend.stage(b"2"), "17") is Outcome.LOST
        assert backend.create("a/y.json", backend.stage(b"2")) is Outcome.LOST
    sent = [{name.lower(): value for name, value in headers.items()} for _, _, headers in handler.asked]
    assert [headers["x-goog-if-generation-match"] for headers in sent] == ["17", "0"]


# ---- profiles


def write(folder: Path, config: str, credentials: str) -> dict[str, str]:
    (folder / "config").write_text(config)
    (folder / "credentials").write_text(credentials)
    return {"AWS_CONFIG_FILE": str(folder / "config"), "AWS_SHARED_CREDENTIALS_FILE": str(folder / "credentials")}


def test_a_profile_is_read_where_nothing_else_says_it(tmp_path: Path) -> None:
    environ = write(
        tmp_path,
        "[default]\nregion = eu-1\n[profile lab]\nregion = eu-2\nendpoint_url = https://s3.lab\n",
        "[default]\naws_access_key_id = A\naws_secret_access_key = a%b\n[lab]\naws_access_key_id = B\naws_secret_access_key = b\n",
    )
    assert profile(environ, {}) == {"access_key_id": "A", "secret_access_key": "a%b", "region": "eu-1"}
    lab = {"access_key_id": "B", "secret_access_key": "b", "region": "eu-2", "endpoint": "https://s3.lab"}
    assert profile({**environ, "AWS_PROFILE": "lab"}, {}) == lab
    keyed = {**environ, "AWS_ACCESS_KEY_ID": "C", "AWS_REGION": "us-1"}
    assert profile(keyed, {}) == {}
    with pytest.raises(UsageError, match="'nobody'"):
        profile({**environ, "AWS_PROFILE": "nobody"}, {})
    broken = write(tmp_path, "no section\n", "")
    with pytest.raises(UsageError, match="does not read"):
        profile(broken, {})
