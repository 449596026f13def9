"""Our server, judged by the models of the published `ag-ui-protocol`.

    interop/python/.venv/bin/python interop/python/server_test.py
"""

import json
import os
import re
import subprocess
import threading
import unittest
import urllib.error
import urllib.request
import uuid
from pathlib import Path

from ag_ui.core import AgentCapabilities, Event, EventType, RunAgentInput, Tool, UserMessage
from pydantic import BaseModel, TypeAdapter

ROOT = Path(__file__).resolve().parents[2]
EVENT = TypeAdapter(Event)
TERMINAL = {EventType.RUN_FINISHED, EventType.RUN_ERROR}
LIMIT_SECONDS = 30


def binary():
    built = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"), "release", "agui")
    path = Path(os.environ.get("AGUI_BIN", built))
    if not path.exists():
        raise SystemExit(
            f"there is no agui binary at {path}: build it with `cargo build --release -p agui-cli`,"
            " or name one in AGUI_BIN"
        )
    return path


class DemoAgent(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.server = subprocess.Popen(
            [binary(), "serve", "--listen", "127.0.0.1:0", "--journal", "memory:"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        for line in cls.server.stderr:
            if address := re.search(r"http://127\.0\.0\.1:\d+", line):
                cls.url = f"{address[0]}/agents/demo"
                # Whatever else it has to say is read, so that it never waits for us.
                cls.reader = threading.Thread(target=cls.server.stderr.read)
                cls.reader.start()
                return
        raise AssertionError("agui serve ended before it listened")

    @classmethod
    def tearDownClass(cls):
        cls.server.terminate()
        cls.server.wait(LIMIT_SECONDS)
        cls.reader.join()
        cls.server.stderr.close()

    def run_agent(self, text):
        """Runs the agent once and returns its events, each parsed by the published models."""
        run_input = RunAgentInput(
            thread_id="thread-1",
            run_id=str(uuid.uuid4()),
            messages=[UserMessage(id="u1", role="user", content=text)],
            tools=[Tool(name="ask", description="asks")],
            context=[],
            state={},
            forwarded_props={},
        )
        request = urllib.request.Request(
            self.url,
            run_input.model_dump_json(by_alias=True).encode(),
            {"content-type": "application/json", "accept": "text/event-stream"},
        )
        with urllib.request.urlopen(request, timeout=LIMIT_SECONDS) as response:
            self.assertEqual(response.headers["content-type"], "text/event-stream")
            body = response.read().decode()
        data = [line[len("data: ") :] for line in body.split("\n") if line.startswith("data: ")]
        events = [EVENT.validate_json(text) for text in data]
        for event, text in zip(events, data):
            self.assertEqual(undescribed(event), [])
            # What the models write is what came: nothing was coerced on the way in.
            self.assertEqual(json.loads(event.model_dump_json(by_alias=True)), json.loads(text))
        self.assertEqual(events[0].type, EventType.RUN_STARTED)
        self.assertEqual(events[0].run_id, run_input.run_id)
        self.assertEqual([e for e in events if e.type in TERMINAL], events[-1:])
        return events

    def test_every_word_streams_events_the_models_describe(self):
        words = (
            "hello help reasoning tools frontend state steps activity subagents approval history"
            " custom result error"
        )
        seen = set()
        for word in words.split():
            with self.subTest(word):
                seen.update(event.type for event in self.run_agent(word))
        chunks = {kind for kind in EventType if kind.value.endswith("_CHUNK")}
        missing = set(EventType) - seen - chunks - {EventType.SUBAGENT_ERROR}
        self.assertEqual(missing, set(), "the demo shows every family of the protocol")

    def test_capabilities_are_what_the_models_describe(self):
        url = f"{self.url}/capabilities"
        with urllib.request.urlopen(url, timeout=LIMIT_SECONDS) as response:
            declared = AgentCapabilities.model_validate_json(response.read())
        self.assertEqual(undescribed(declared), [])

    def test_malformed_input_is_refused_with_the_name_of_the_field(self):
        body = b'{"threadId": "t", "runId": "r", "messages": [{"id": "u", "role": "user"}]}'
        request = urllib.request.Request(self.url, body, {"content-type": "application/json"})
        with self.assertRaises(urllib.error.HTTPError) as refused:
            urllib.request.urlopen(request, timeout=LIMIT_SECONDS)
        with refused.exception as answer:
            self.assertIn(answer.code, range(400, 500))
            self.assertIn("content", json.dumps(json.loads(answer.read())["error"]))


def undescribed(value, path=""):
    """The paths of everything in a model that its class does not describe."""
    if isinstance(value, list):
        return [p for i, item in enumerate(value) for p in undescribed(item, f"{path}/{i}")]
    if not isinstance(value, BaseModel):
        return []
    found = [f"{path}/{name}" for name in value.model_extra or {}]
    for name in type(value).model_fields:
        found += undescribed(getattr(value, name), f"{path}/{name}")
    return found


if __name__ == "__main__":
    unittest.main(verbosity=2)
