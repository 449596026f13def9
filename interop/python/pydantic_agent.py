"""An agent of a framework that knows nothing of us: pydantic-ai behind its own AG-UI adapter.

    interop/python/.venv/bin/python interop/python/pydantic_agent.py

It prints `listening http://127.0.0.1:PORT`. Nothing here makes events or reads inputs: that is the
adapter's work. Only the model is scripted (pydantic-ai's `FunctionModel`): the first word of what
the user said last decides what it does, and it puts the results of tools into words.
"""

import socket

import uvicorn
from ag_ui.core import StateDeltaEvent, StateSnapshotEvent
from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, RunContext, ToolReturn
from pydantic_ai.messages import ModelRequest, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import DeltaThinkingPart, DeltaToolCall, FunctionModel
from pydantic_ai.ui import StateDeps
from pydantic_ai.ui.ag_ui import AGUIAdapter
from starlette.applications import Starlette
from starlette.routing import Route


class Counter(BaseModel):
    """The shared state."""

    count: int = 0
    notes: list[str] = []


async def model(messages, info):
    """What the model says, piece by piece."""
    last = messages[-1]
    assert isinstance(last, ModelRequest)
    results = [part for part in last.parts if isinstance(part, ToolReturnPart)]
    if results:
        for result in results:
            yield f"{result.tool_name} said "
            yield f"{result.model_response_str()}."
        return
    prompt = next(part for part in reversed(last.parts) if isinstance(part, UserPromptPart))
    word, _, rest = prompt.content.partition(" ")
    match word:
        case "text":
            for piece in ["Grüße, ", "世界 ", "🌍"]:
                yield piece
        case "think":
            yield {0: DeltaThinkingPart(content="Hm, ")}
            yield {0: DeltaThinkingPart(content="yes.", signature="sealed")}
            yield "Yes."
        case "weather":
            yield "I look. "
            yield {1: DeltaToolCall(name="weather", json_args='{"city":', tool_call_id="call-1")}
            yield {1: DeltaToolCall(json_args='"Genève"}')}
        case "both":
            for at, city in enumerate(["Bonn", "Köln"]):
                arguments = f'{{"city":"{city}"}}'
                yield {at: DeltaToolCall("weather", arguments, tool_call_id=f"call-{at}")}
        case "count":
            yield {0: DeltaToolCall(name="count", json_args="{}", tool_call_id="call-1")}
        case "note":
            arguments = f'{{"text":"{rest}"}}'
            yield {0: DeltaToolCall(name="note", json_args=arguments, tool_call_id="call-1")}
        case "delete":
            yield {0: DeltaToolCall(name="delete", json_args='{"file":"a"}', tool_call_id="call-1")}
        case "ask":
            # A tool of the front end, which the request describes.
            name = f"ask_{rest}"
            assert name in {tool.name for tool in info.function_tools}
            yield {0: DeltaToolCall(name, '{"question":"Why?"}', tool_call_id="call-1")}
        case "fail":
            yield "I was "
            raise RuntimeError("out of tokens")
        case _:
            users = [
                part.content
                for message in messages
                for part in message.parts
                if isinstance(part, UserPromptPart)
            ]
            yield f"You said {users}."


agent = Agent(
    FunctionModel(stream_function=model),
    deps_type=StateDeps[Counter],
    output_type=[str, DeferredToolRequests],
)


@agent.tool_plain
def weather(city: str) -> str:
    """Tells the weather."""
    return f"sun over {city}"


@agent.tool
def count(ctx: RunContext[StateDeps[Counter]]) -> ToolReturn:
    """Counts one up, and restates the state."""
    ctx.deps.state.count += 1
    snapshot = StateSnapshotEvent(snapshot=ctx.deps.state.model_dump())
    return ToolReturn(return_value=str(ctx.deps.state.count), metadata=[snapshot])


@agent.tool
def note(ctx: RunContext[StateDeps[Counter]], text: str) -> ToolReturn:
    """Notes something, and says how the state changes."""
    ctx.deps.state.notes.append(text)
    delta = StateDeltaEvent(delta=[{"op": "add", "path": "/notes/-", "value": text}])
    return ToolReturn(return_value=f"noted {text}", metadata=[delta])


@agent.tool_plain(requires_approval=True)
def delete(file: str) -> str:
    """Deletes a file, where a person agrees."""
    return f"{file} is gone"


async def run(request):
    deps = StateDeps(Counter())
    return await AGUIAdapter.dispatch_request(request, agent=agent, deps=deps, include_usage=True)


def main():
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        print(f"listening http://127.0.0.1:{listener.getsockname()[1]}", flush=True)
        app = Starlette(routes=[Route("/", run, methods=["POST"])])
        uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listener])


if __name__ == "__main__":
    main()
