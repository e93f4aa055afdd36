"""Anthropic's Python SDK: messages whole and streamed, tools, thinking, counting."""
from anthropic import Anthropic, NotFoundError
from steps import KEY, PARAMETERS, URL, finish, get_weather, ran, same, script, step

client = Anthropic(base_url=URL, api_key=KEY, max_retries=0)
HELLO = [{"role": "user", "content": "Say hello."}]
TOOLS = [{"name": "get_weather", "description": "The weather of a city.", "input_schema": PARAMETERS}]
COMMON = {"model": script.MODEL, "max_tokens": 2048}
THINKING = {"type": "enabled", "budget_tokens": 1024}


@step
def messages():
    answer = client.messages.create(**COMMON, messages=HELLO, system="Be brief.")
    same(([(b.type, b.text) for b in answer.content], answer.stop_reason), ([("text", script.PLAIN)], "end_turn"))


@step
def messages_stream():
    with client.messages.stream(**COMMON, messages=HELLO) as stream:
        same("".join(stream.text_stream), script.PLAIN)
        same(stream.get_final_message().stop_reason, "end_turn")


def episode(send, thinking):
    talk = [{"role": "user", "content": script.PROMPT}]
    answer = send(talk)
    same(answer.stop_reason, "tool_use")
    same([b.thinking for b in answer.content if b.type == "thinking"], [script.REASONING] if thinking else [])
    talk.append({"role": "assistant", "content": answer.content})
    talk.append({"role": "user", "content": [{"type": "tool_result", "tool_use_id": b.id, "content": get_weather(**b.input)} for b in answer.content if b.type == "tool_use"]})
    same(ran, ["Paris"])
    same([b.text for b in send(talk).content if b.type == "text"], [script.FINAL])


def streamed(**fields):
    with client.messages.stream(**fields) as stream:
        return stream.get_final_message()


@step
def tools():
    episode(lambda talk: client.messages.create(**COMMON, messages=talk, tools=TOOLS), False)


@step
def tools_stream():
    episode(lambda talk: streamed(**COMMON, messages=talk, tools=TOOLS), False)


@step
def thinking():
    episode(lambda talk: client.messages.create(**COMMON, messages=talk, tools=TOOLS, thinking=THINKING), True)


@step
def thinking_stream():
    episode(lambda talk: streamed(**COMMON, messages=talk, tools=TOOLS, thinking=THINKING), True)


@step
def count_tokens():
    short = client.messages.count_tokens(model=script.MODEL, messages=HELLO).input_tokens
    assert short > 0
    assert client.messages.count_tokens(model=script.MODEL, messages=HELLO, tools=TOOLS).input_tokens >= short


@step
def unknown_model():
    try:
        client.messages.create(model="unknown", max_tokens=9, messages=HELLO)
    except NotFoundError as error:
        same((error.body["type"], error.body["error"]["type"]), ("error", "not_found_error"))
    else:
        raise AssertionError("an unknown model answered")


finish()
