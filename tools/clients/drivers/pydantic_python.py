"""Pydantic AI: its run loop over three protocols, and an answer that must fit a type."""
import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider
from steps import KEY, URL, finish, get_weather, ran, same, script, step

openai = OpenAIProvider(base_url=URL + "/v1", api_key=KEY)


def check(model):
    async def run():
        agent = Agent(model, tools=[get_weather], instructions="Be brief.")
        whole = await agent.run(script.PROMPT)
        async with agent.run_stream(script.PROMPT) as streamed:
            return whole.output, await streamed.get_output()
    same(asyncio.run(run()), (script.FINAL, script.FINAL))
    same(ran, ["Paris", "Paris"])


@step
def chat():
    check(OpenAIChatModel(script.MODEL, provider=openai))


@step
def responses():
    check(OpenAIResponsesModel(script.MODEL, provider=openai))


@step
def anthropic():
    check(AnthropicModel(script.MODEL, provider=AnthropicProvider(base_url=URL, api_key=KEY)))


finish()
