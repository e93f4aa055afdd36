"""OpenAI's agents SDK: its run loop over Responses and over chat completions, whole and streamed."""
import asyncio

from agents import Agent, OpenAIChatCompletionsModel, OpenAIResponsesModel, Runner, function_tool, set_tracing_disabled
from openai import AsyncOpenAI
from steps import KEY, URL, finish, get_weather, ran, same, script, step

set_tracing_disabled(True)

def check(kind):
    async def run():
        client = AsyncOpenAI(base_url=URL + "/v1", api_key=KEY, max_retries=0)
        agent = Agent(name="tester", instructions="Be brief.", tools=[function_tool(get_weather)], model=kind(script.MODEL, client))
        whole = await Runner.run(agent, script.PROMPT)
        streamed = Runner.run_streamed(agent, script.PROMPT)
        async for _ in streamed.stream_events():
            pass
        return whole.final_output, streamed.final_output
    same(asyncio.run(run()), (script.FINAL, script.FINAL))
    same(ran, ["Paris", "Paris"])


@step
def chat():
    check(OpenAIChatCompletionsModel)


@step
def responses():
    check(OpenAIResponsesModel)


finish()
