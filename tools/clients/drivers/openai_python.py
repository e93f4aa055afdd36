"""OpenAI's Python SDK: chat, completions, embeddings, models and Responses."""
import json

from openai import BadRequestError, NotFoundError, OpenAI
from steps import KEY, PARAMETERS, URL, finish, get_weather, ran, same, script, step

client = OpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)
HELLO = [{"role": "user", "content": "Say hello."}]
ASK = [{"role": "user", "content": script.PROMPT}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": PARAMETERS}}]
RESPONSE_TOOLS = [{"type": "function", "name": "get_weather", "description": "The weather of a city.", "parameters": PARAMETERS, "strict": True}]


@step
def models():
    same([m.id for m in client.models.list()], [script.MODEL])


@step
def chat():
    answer = client.chat.completions.create(model=script.MODEL, messages=HELLO, temperature=0)
    same((answer.choices[0].message.content, answer.choices[0].finish_reason), (script.PLAIN, "stop"))


@step
def chat_stream():
    text, usage = "", None
    for chunk in client.chat.completions.create(model=script.MODEL, messages=HELLO, stream=True, stream_options={"include_usage": True}):
        usage = chunk.usage or usage
        text += "".join(c.delta.content or "" for c in chunk.choices)
    same(text, script.PLAIN)
    same(usage.total_tokens, usage.prompt_tokens + usage.completion_tokens)


@step
def chat_tools():
    messages = list(ASK)
    message = client.chat.completions.create(model=script.MODEL, messages=messages, tools=TOOLS).choices[0].message
    same(message.reasoning_content, script.REASONING)
    messages.append(message)
    for call in message.tool_calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": get_weather(**json.loads(call.function.arguments))})
    same(ran, ["Paris"])
    same(client.chat.completions.create(model=script.MODEL, messages=messages, tools=TOOLS).choices[0].message.content, script.FINAL)


@step
def chat_tools_stream():
    with client.chat.completions.stream(model=script.MODEL, messages=ASK, tools=TOOLS) as stream:
        message = stream.get_final_completion().choices[0].message
    same([(c.function.name, json.loads(c.function.arguments)) for c in message.tool_calls], [("get_weather", {"city": "Paris"})])


@step
def responses():
    answer = client.responses.create(model=script.MODEL, input="Say hello.", instructions="Be brief.", store=False)
    same((answer.output_text, answer.status), (script.PLAIN, "completed"))


@step
def responses_stream():
    kinds, text = [], ""
    with client.responses.stream(model=script.MODEL, input="Say hello.", store=False) as stream:
        for event in stream:
            kinds.append(event.type)
            text += event.delta if event.type == "response.output_text.delta" else ""
        same(stream.get_final_response().output_text, script.PLAIN)
    same((text, kinds[0], kinds[-1]), (script.PLAIN, "response.created", "response.completed"))


def responses_episode(send):
    items = [{"role": "user", "content": script.PROMPT}]
    answer = send(items)
    same([s.text for o in answer.output if o.type == "reasoning" for s in (o.summary or o.content or [])], [script.REASONING])
    items += [o.to_dict() for o in answer.output]
    for call in answer.output:
        if call.type == "function_call":
            items.append({"type": "function_call_output", "call_id": call.call_id, "output": get_weather(**json.loads(call.arguments))})
    same(ran, ["Paris"])
    same(send(items).output_text, script.FINAL)


@step
def responses_tools():
    responses_episode(lambda items: client.responses.create(model=script.MODEL, input=items, tools=RESPONSE_TOOLS, store=False, reasoning={"summary": "auto"}))


@step
def responses_tools_stream():
    def send(items):
        with client.responses.stream(model=script.MODEL, input=items, tools=RESPONSE_TOOLS, store=False, reasoning={"summary": "auto"}) as stream:
            return stream.get_final_response()
    responses_episode(send)


@step
def responses_previous():
    """A server that keeps no responses may refuse, if it names the field."""
    try:
        answer = client.responses.create(model=script.MODEL, input=script.PROMPT, tools=RESPONSE_TOOLS)
        results = [{"type": "function_call_output", "call_id": o.call_id, "output": script.RESULT} for o in answer.output if o.type == "function_call"]
        same(client.responses.create(model=script.MODEL, input=results, tools=RESPONSE_TOOLS, previous_response_id=answer.id).output_text, script.FINAL)
    except BadRequestError as error:
        assert "previous_response_id" in str(error), error


@step
def unknown_model():
    for send in (lambda: client.chat.completions.create(model="unknown", messages=HELLO), lambda: client.responses.create(model="unknown", input="Hello")):
        try:
            send()
        except NotFoundError as error:
            assert "unknown" in error.message and error.code == "model_not_found", error
        else:
            raise AssertionError("an unknown model answered")


finish()
