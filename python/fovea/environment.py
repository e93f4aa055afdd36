"""Environments for reinforcement learning over several turns.

An environment is a function of a list of episodes, dicts with

    number      of the episode, from 0: of all in training, or of one evaluation
    evaluation  whether it is played for an evaluation
    turn        the number of answers before the last one
    record      the record of the prompt, a dict
    messages    the conversation, whose last message is the model's answer

It returns a tuple (reply, reward, done) for each. reply: what follows the answer, a text of the
user, a message or a list of messages; None if `done`. reward: a number, added to those of the
episode's other answers. done: whether the episode ends.
"""

from __future__ import annotations

import inspect
import json
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from . import _fovea

Message = Mapping[str, Any]
Reply = tuple["str | Message | Sequence[Message] | None", float, bool]
Environment = Callable[[list[dict[str, Any]]], Sequence[Reply]]

_KINDS = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}


class Tools:
    """An environment in which the model calls Python functions, until it answers without a call.

    tools = fovea.Tools(add, search)
    fovea.finetune(model, tools.prompts(questions), out, objective="grpo", environment=tools, reward=right)

    A function has annotated parameters and a docstring, whose first line describes it to the model.
    The model reads what it returns, or the message of its exception. The last answer is judged by
    the rewards of the run.
    """

    def __init__(self, *functions: Callable[..., Any], turns: int = 8) -> None:
        """turns: the most answers of an episode."""
        self._functions = {function.__name__: function for function in functions}
        self._turns = turns

    @property
    def schemas(self) -> list[dict[str, Any]]:
        """The descriptions of the functions, as chat templates and the server read them."""
        return [_schema_of(function) for function in self._functions.values()]

    def prompts(self, records: Iterable[str | Mapping[str, Any]]) -> list[dict[str, Any]]:
        """Returns prompts, texts or records, that tell the model about the functions."""
        tools = self.schemas
        return [
            {**({"prompt": each} if isinstance(each, str) else each), "tools": tools}
            for each in records
        ]

    def __call__(self, episodes: list[dict[str, Any]]) -> list[Reply]:
        return [self._reply(episode) for episode in episodes]

    def _reply(self, episode: Mapping[str, Any]) -> Reply:
        calls = _calls_in(episode, self._functions)
        if not calls or episode["turn"] + 1 >= self._turns:
            return None, 0.0, True
        answer = {**episode["messages"][-1], "tool_calls": calls}
        return [answer, *map(self._result, calls)], 0.0, False

    def _result(self, call: Mapping[str, Any]) -> Message:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        try:
            result = self._functions[name](**arguments)
        except Exception as error:  # the model reads it
            result = f"{type(error).__name__}: {error}"
        text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        return {"role": "tool", "tool_call_id": call["id"], "name": name, "content": text}


def replies_of(
    environment: Environment,
) -> Callable[[list[dict[str, Any]]], list[tuple[float, bool, str, str]]]:
    """Returns an environment for the module: its replies are (reward, done, messages, answer)."""

    def replies(episodes: list[dict[str, Any]]) -> list[tuple[float, bool, str, str]]:
        return [_packed(reply) for reply in environment(episodes)]

    return replies


def _packed(reply: Reply) -> tuple[float, bool, str, str]:
    said, reward, done = reply
    if done:
        return float(reward), True, "", ""
    if isinstance(said, str):
        said = {"role": "user", "content": said}
    messages = [said] if isinstance(said, Mapping) else list(said or ())
    # An answer at the beginning takes the place of the model's, such as one with its calls.
    answer = ""
    if messages and messages[0].get("role") == "assistant":
        answer = json.dumps(messages.pop(0))
    return float(reward), False, json.dumps(messages), answer


def _calls_in(episode: Mapping[str, Any], names: Iterable[str]) -> list[dict[str, Any]]:
    """The calls in an answer, whose ids are the same in each run."""
    text, found = _fovea.find_tool_calls(episode["messages"][-1]["content"], list(names))
    return [
        {
            **call,
            "id": _fovea.short_call_id(f"{episode['number']} {episode['turn']} {n}"),
            "function": {
                **call["function"],
                "arguments": json.loads(call["function"]["arguments"]),
            },
        }
        for n, call in enumerate(found)
    ]


def _schema_of(function: Callable[..., Any]) -> dict[str, Any]:
    types = typing.get_type_hints(function)
    parameters = inspect.signature(function).parameters
    properties = {name: _kind_of(types.get(name)) for name in parameters}
    required = [
        name for name, each in parameters.items() if each.default is inspect.Parameter.empty
    ]
    description = (inspect.getdoc(function) or "").split("\n")[0]
    schema = {"type": "object", "properties": properties, "required": required}
    return {
        "type": "function",
        "function": {
            "name": function.__name__,
            "description": description,
            "parameters": schema,
        },
    }


def _kind_of(annotation: Any) -> dict[str, Any]:
    kind = _KINDS.get(typing.get_origin(annotation) or annotation)
    return {"type": kind} if kind else {}
