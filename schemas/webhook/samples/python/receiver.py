"""Receives navlog's webhooks: see ../README.md."""

import hashlib
import hmac
import json
import os
import re
import ssl
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock

SECRET = os.environ["WEBHOOK_SECRET"].encode()
TOLERANCE = 300  # seconds
MAX_BODY = 64 * 1024

lock = Lock()
seen = set()  # event ids; a real receiver keeps them in its database
sequences = set()


def genuine(headers, body):
    """Returns whether the body was signed recently with our secret."""
    timestamp = headers.get("X-Service-Timestamp", "")
    if not re.fullmatch("[0-9]{1,12}", timestamp) or abs(time.time() - int(timestamp)) > TOLERANCE:
        return False
    want = "sha256=" + hmac.new(SECRET, timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
    # During a rotation there are two signatures, and one of them is made with our secret.
    given = [headers.get(name, "") for name in ("X-Service-Signature", "X-Service-Signature-Next")]
    return any([hmac.compare_digest(want.encode(), g.encode()) for g in given])


def note(event_id, sequence):
    """Returns "new" or "repeat", and how many sequences are missing below the highest."""
    with lock:
        news = "repeat" if event_id in seen else "new"
        seen.add(event_id)
        if sequence:
            sequences.add(int(sequence))
        return news, max(sequences, default=0) - len(sequences)


class Receiver(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    timeout = 10  # seconds without a byte

    def do_POST(self):
        length = self.headers.get("Content-Length", "0")
        if not re.fullmatch("[0-9]{1,9}", length) or int(length) > MAX_BODY:
            self.close_connection = True
            return self.answer(413)
        body = self.rfile.read(int(length))
        if not genuine(self.headers, body):
            return self.answer(401)
        event = json.loads(body)  # headers are not signed, and a copied request may have another id there
        news, missing = note(event["id"], self.headers.get("X-Service-Sequence"))
        print(news, event["id"], event["type"], "missing", missing, flush=True)
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        if status != 204:
            self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


server = ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "0"))), Receiver)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
context.load_cert_chain(os.environ["TLS_CERT"], os.environ["TLS_KEY"])
# Do the handshake in the connection's thread and not in the accepting one.
server.socket = context.wrap_socket(server.socket, server_side=True, do_handshake_on_connect=False)
print("listening", server.server_address[1], flush=True)
server.serve_forever()
