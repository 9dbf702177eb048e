"""Whether the door lets a node in, asked by the node: Flower's part of it stops without a word where it does not."""

from __future__ import annotations

import base64
import datetime
import http.client
import ssl
from pathlib import Path

from fedrec.deploy.admission import public_key_of, sign


def turned_away(address: str, ca: Path, key: Path) -> bool:
    """Whether the server at ``HOST:PORT`` refuses this key; False also where it cannot be asked."""
    host, _, port = address.rpartition(":")
    stamp = datetime.datetime.now(datetime.UTC).isoformat()
    headers = {
        "flwr-public-key": base64.b64encode(public_key_of(key)).decode(),
        "flwr-signature": base64.b64encode(sign(key, stamp.encode())).decode(),
        "flwr-timestamp": stamp,
        "content-type": "application/x-protobuf",
    }
    context = ssl.create_default_context(cafile=str(ca))
    try:
        line = http.client.HTTPSConnection(host.strip("[]"), int(port), timeout=10, context=context)
        line.request("POST", "/v1/fleet/pull-messages", b"", headers)
        return line.getresponse().status == 401
    except (OSError, ValueError, http.client.HTTPException):
        return False
