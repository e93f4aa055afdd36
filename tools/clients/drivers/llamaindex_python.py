"""LlamaIndex: chat, stream, and its agent with function calls."""
import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.llms import ChatMessage
from llama_index.llms.openai_like import OpenAILike
from steps import KEY, URL, finish, get_weather, ran, same, script, step

model = OpenAILike(model=script.MODEL, api_base=URL + "/v1", api_key=KEY, is_chat_model=True, is_function_calling_model=True, context_window=65536, max_retries=0)
HELLO = [ChatMessage(role="user", content="Say hello.")]


@step
def chat():
    same(model.chat(HELLO).message.content, script.PLAIN)


@step
def chat_stream():
    same("".join(part.delta or "" for part in model.stream_chat(HELLO)), script.PLAIN)


@step
def agent():
    async def run():
        return await FunctionAgent(tools=[get_weather], llm=model).run(script.PROMPT)
    same(str(asyncio.run(run())), script.FINAL)
    same(ran, ["Paris"])


finish()
