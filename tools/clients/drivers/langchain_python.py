"""LangChain over each of its three protocols."""
import langchain_anthropic
import langchain_ollama
import langchain_openai
from langchain.agents import create_agent
from steps import KEY, URL, finish, get_weather, ran, same, script, step

OPENAI = {"model": script.MODEL, "base_url": URL + "/v1", "api_key": KEY, "max_retries": 0}


def check(model):
    same(model.invoke("Say hello.").text, script.PLAIN)
    same("".join(c.text for c in model.stream("Say hello.")), script.PLAIN)
    answer = create_agent(model, [get_weather]).invoke({"messages": [{"role": "user", "content": script.PROMPT}]})
    same(ran, ["Paris"])
    same(answer["messages"][-1].text, script.FINAL)


@step
def openai_chat():
    check(langchain_openai.ChatOpenAI(**OPENAI, use_responses_api=False))


@step
def openai_responses():
    check(langchain_openai.ChatOpenAI(**OPENAI, use_responses_api=True, output_version="responses/v1"))


@step
def anthropic():
    check(langchain_anthropic.ChatAnthropic(model=script.MODEL, base_url=URL, api_key=KEY, max_retries=0, max_tokens=1024))


@step
def ollama():
    check(langchain_ollama.ChatOllama(model=script.MODEL, base_url=URL))


@step
def ollama_reasoning():
    answer = langchain_ollama.ChatOllama(model=script.MODEL, base_url=URL, reasoning=True).bind_tools([get_weather]).invoke(script.PROMPT)
    same(answer.additional_kwargs["reasoning_content"], script.REASONING)


finish()
