"""moto's S3 on a free port of loopback, which answers one request after the other.

moto looks whether a name is there and writes then; between the two another request may do the same, and both are told
that they were first. In turn there is no between.
"""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, MotoRequestHandler, create_backend_app
from werkzeug.serving import run_simple

_TURN = threading.Lock()
_MOTO: Any = DomainDispatcherApplication(create_backend_app)


def in_turn(environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
    """What moto answers; a client that is slow, or stopped, while it sends or receives keeps nobody waiting."""
    length = -1 if environ.get("wsgi.input_terminated") else int(environ.get("CONTENT_LENGTH") or 0)
    environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(length))
    with _TURN:
        return list(_MOTO(environ, start_response))


if __name__ == "__main__":
    run_simple("127.0.0.1", 0, in_turn, threaded=True, request_handler=MotoRequestHandler)
