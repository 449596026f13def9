"""A small agent server on the published `ag-ui-protocol`: the peer our client is judged against.

    interop/python/.venv/bin/python interop/python/server.py

It prints `listening http://127.0.0.1:PORT` and plays the scenario of `../scenarios.json` that the
first word of the last user message names. `POST /release` lets a held scenario go on.
"""

import json
import socket
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from ag_ui.core import Event, RunAgentInput
from ag_ui.encoder import EventEncoder
from pydantic import TypeAdapter, ValidationError

HOLD_LIMIT_SECONDS = 30
SPLIT_BYTES = 3

SCENARIOS = {
    scenario["word"]: scenario
    for scenario in json.loads(
        Path(__file__).parent.parent.joinpath("scenarios.json").read_text("utf-8")
    )["scenarios"]
}
EVENT = TypeAdapter(Event)
# One for each response that may have to wait; `POST /release` sets them.
HELD: set[threading.Event] = set()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_POST(self):
        text = self.rfile.read(int(self.headers.get("content-length", 0)))
        if self.path == "/release":
            for held in list(HELD):
                held.set()
            self.send_response(204)
            self.end_headers()
            return

        try:
            body = json.loads(text)
            word = word_of(RunAgentInput.model_validate(body))
        except (ValueError, ValidationError) as error:
            return self.answer(400, {"error": str(error)})
        scenario = SCENARIOS.get(word)
        if scenario is None or scenario.get("only", "python") != "python":
            return self.answer(400, {"error": f"no scenario is called '{word}'"})
        if "http" in scenario:
            return self.answer(scenario["http"]["status"], scenario["http"]["body"])
        self.play(scenario, body)

    def play(self, scenario, body):
        source = SCENARIOS[scenario["like"]] if "like" in scenario else scenario
        script = source["events"]
        if "resume" in body and "resumed" in source:
            script = source["resumed"]
        received = {
            "method": self.command,
            "url": self.path,
            "headers": {name.lower(): value for name, value in self.headers.items()},
            "body": body,
        }
        encoder = EventEncoder(accept=self.headers.get("accept"))

        self.send_response(200)
        self.send_header("content-type", encoder.get_content_type())
        self.send_header("cache-control", "no-cache, no-transform")
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        # Made before the first byte: a client that is quick to let go must not be missed.
        hold = threading.Event()
        HELD.add(hold)
        for index, event in enumerate(fill(script, received)):
            if index == scenario.get("holdBefore"):
                hold.wait(HOLD_LIMIT_SECONDS)
            frame = encoder.encode(EVENT.validate_python(event)).encode()
            for piece in reframe(frame, scenario.get("framing")):
                self.write_chunk(piece)
        HELD.discard(hold)
        if scenario.get("ends") == "cut":
            self.write_chunk(b'data: {"type":"TEXT_MES')
            self.connection.shutdown(socket.SHUT_RDWR)
            self.close_connection = True
        else:
            self.write_chunk(b"")

    def write_chunk(self, piece):
        self.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
        self.wfile.flush()

    def answer(self, status, body):
        payload = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("content-type", "application/json")
        self.send_header("content-length", str(len(payload)))
        self.end_headers()
        self.wfile.write(payload)

    def log_message(self, *_):
        """Requests are not worth a line each."""


def fill(value, received):
    """Replaces the placeholders of a scenario: $threadId, $runId, $resume, $request, $messages."""
    body = received["body"]
    if isinstance(value, list):
        filled = []
        for item in value:
            filled += body["messages"] if item == "$messages" else [fill(item, received)]
        return filled
    if isinstance(value, dict):
        return {key: fill(member, received) for key, member in value.items()}
    if value == "$threadId":
        return body["threadId"]
    if value == "$runId":
        return body["runId"]
    if value == "$resume":
        return json.dumps(body["resume"])
    if value == "$request":
        return json.dumps(received)
    return value


def reframe(frame, framing):
    if framing == "crlf":
        return [frame.replace(b"\n", b"\r\n")]
    if framing == "comments":
        return [b": keep-alive\n\nevent: message\nid: 7\nretry: 1000\n: inside\n" + frame + b":\n"]
    if framing == "split":
        return [frame[at : at + SPLIT_BYTES] for at in range(0, len(frame), SPLIT_BYTES)]
    return [frame]


def word_of(run_input):
    content = next((m.content for m in reversed(run_input.messages) if m.role == "user"), "")
    if not isinstance(content, str):
        content = " ".join(getattr(part, "text", "") for part in content)
    return (content.split() or [""])[0]


if __name__ == "__main__":
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    print(f"listening http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()
