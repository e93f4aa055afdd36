"""Ollama's Python client: chat, streams, tools, thinking, list, show, version, embed."""
import os

from ollama import Client, ResponseError
from steps import URL, finish, get_weather, ran, same, script, step

client = Client(host=URL)
HELLO = [{"role": "user", "content": "Say hello."}]


@step
def list_models():
    assert any(m.model.split(":")[0] == script.MODEL for m in client.list().models), client.list()


@step
def show():
    found = client.show(script.MODEL)
    assert {"completion", "tools", "thinking"} <= set(found.capabilities), found.capabilities
    assert any(k.endswith(".context_length") for k in found.modelinfo), found.modelinfo


@step
def chat():
    answer = client.chat(model=script.MODEL, messages=HELLO, options={"temperature": 0, "num_ctx": 4096})
    same((answer.message.content, answer.done, answer.done_reason), (script.PLAIN, True, "stop"))


@step
def chat_stream():
    parts = list(client.chat(model=script.MODEL, messages=HELLO, stream=True))
    same("".join(p.message.content or "" for p in parts), script.PLAIN)
    same([p.done for p in parts], [False] * (len(parts) - 1) + [True])


def episode(think, stream):
    def send(talk):
        answer = client.chat(model=script.MODEL, messages=talk, tools=[get_weather], think=think, stream=stream)
        if not stream:
            return answer.message
        whole = None
        for part in answer:
            if whole is None:
                whole = part.message
                continue
            whole.content = (whole.content or "") + (part.message.content or "")
            if part.message.thinking:
                whole.thinking = (whole.thinking or "") + part.message.thinking
            if part.message.tool_calls:
                whole.tool_calls = [*(whole.tool_calls or []), *part.message.tool_calls]
        return whole
    talk = [{"role": "user", "content": script.PROMPT}]
    message = send(talk)
    same(message.thinking or "", script.REASONING if think else "")
    talk.append(message)
    for call in message.tool_calls:
        talk.append({"role": "tool", "tool_name": call.function.name, "content": get_weather(**call.function.arguments)})
    same(ran, ["Paris"])
    same(send(talk).content, script.FINAL)


@step
def tools():
    episode(False, False)


@step
def tools_stream():
    episode(False, True)


@step
def thinking():
    episode(True, False)


@step
def thinking_stream():
    episode(True, True)


@step
def embed():
    """A generating model may refuse; a clear error is then expected, of the form that the client reads."""
    try:
        same(len(client.embed(model=os.environ.get("EMBED_MODEL", script.MODEL), input=["one", "two"]).embeddings), 2)
    except ResponseError as error:
        assert error.status_code in (400, 501) and error.error, error


@step
def unknown_model():
    try:
        client.chat(model="unknown", messages=HELLO)
    except ResponseError as error:
        same(error.status_code, 404)
        assert isinstance(error.error, str) and "unknown" in error.error, error.error
    else:
        raise AssertionError("an unknown model answered")


finish()
