"""LiteLLM: chat completions, and the other protocols that it can speak to a server."""
import json

import litellm
from steps import KEY, PARAMETERS, URL, finish, get_weather, ran, same, script, step

litellm.telemetry = False
HELLO = [{"role": "user", "content": "Say hello."}]
TOOLS = [{"type": "function", "function": {"name": "get_weather", "description": "The weather of a city.", "parameters": PARAMETERS}}]
ROUTES = {"openai": {"model": "openai/" + script.MODEL, "api_base": URL + "/v1", "api_key": KEY},
          "hosted_vllm": {"model": "hosted_vllm/" + script.MODEL, "api_base": URL + "/v1", "api_key": KEY},
          "anthropic": {"model": "anthropic/" + script.MODEL, "api_base": URL, "api_key": KEY, "max_tokens": 1024},
          "ollama_chat": {"model": "ollama_chat/" + script.MODEL, "api_base": URL}}


def check(name):
    where = {**ROUTES[name], "num_retries": 0}
    same(litellm.completion(messages=HELLO, **where).choices[0].message.content, script.PLAIN)
    same("".join(c.choices[0].delta.content or "" for c in litellm.completion(messages=HELLO, stream=True, **where) if c.choices), script.PLAIN)
    talk = [{"role": "user", "content": script.PROMPT}]
    message = litellm.completion(messages=talk, tools=TOOLS, **where).choices[0].message
    talk.append(message.model_dump(exclude_none=True))
    for call in message.tool_calls:
        talk.append({"role": "tool", "tool_call_id": call.id, "name": call.function.name, "content": get_weather(**json.loads(call.function.arguments))})
    same(ran, ["Paris"])
    same(litellm.completion(messages=talk, tools=TOOLS, **where).choices[0].message.content, script.FINAL)


@step
def openai():
    check("openai")


@step
def hosted_vllm():
    check("hosted_vllm")


@step
def anthropic():
    check("anthropic")


@step
def ollama_chat():
    check("ollama_chat")


@step
def responses():
    same(litellm.responses(input="Say hello.", **ROUTES["openai"]).output[-1].content[0].text, script.PLAIN)


finish()
