"""The client of openai, without special settings: chats, tools in two rounds, parsed answers, streams, completions, embeddings."""
import asyncio
import json
import math
import unittest

from serving import ServeTest
from support import ROOT

try:
    import openai
    import pydantic
except ImportError:
    openai = pydantic = None

# A template with tools, as those of Hermes and Qwen.
TEMPLATE = """{%- for tool in tools or [] %}<tool>{{ tool | tojson }}</tool>
{% endfor %}{%- for message in messages %}<{{ message.role }}>{{ message.content or '' }}
{%- for call in message.tool_calls or [] %}<tool_call>{{ call.function | tojson }}</tool_call>{% endfor %}
{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"""
WEATHER = {"type": "function", "function": {
    "name": "weather", "parameters": {"type": "object", "properties": {"city": {"enum": ["fox", "eye"]}}, "required": ["city"]}}}


@unittest.skipUnless(openai, "needs the Python package openai")
class OpenaiClient(ServeTest):
    def client(self, *more):
        self.serve("--chat-template", self.file("tools.jinja", TEMPLATE), *more, context=1024)
        return openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0)

    @staticmethod
    def user(text="the eye"):
        return {"role": "user", "content": text}

    def test_chats_and_streams(self):
        client = self.client()
        model = client.models.list().data[0].id
        answer = client.chat.completions.create(model=model, messages=[self.user()], max_tokens=5, seed=1)
        self.assertTrue(answer.choices[0].message.content)
        self.assertEqual(answer.usage.completion_tokens, 5)
        with client.chat.completions.stream(model=model, messages=[self.user()], max_tokens=5, seed=1) as stream:
            kinds = {event.type for event in stream}
            final = stream.current_completion_snapshot  # get_final_completion() refuses answers that the limit cut
        self.assertIn("content.delta", kinds)
        self.assertEqual(final.choices[0].message.content, answer.choices[0].message.content)
        with self.assertRaises(openai.NotFoundError) as caught:
            client.chat.completions.create(model="nobody", messages=[self.user()])
        self.assertIn("nobody", str(caught.exception))
        with self.assertRaises(openai.BadRequestError):
            client.chat.completions.create(model=model, messages=[{"role": "bot", "content": "a"}])

    def test_tools_in_two_rounds(self):
        client = self.client()
        model = client.models.list().data[0].id
        messages = [self.user()]
        first = client.chat.completions.create(model=model, messages=messages, tools=[WEATHER], tool_choice="required", max_tokens=100)
        self.assertEqual(first.choices[0].finish_reason, "tool_calls")
        call = first.choices[0].message.tool_calls[0]
        self.assertEqual(call.function.name, "weather")
        messages += [first.choices[0].message, {"role": "tool", "tool_call_id": call.id, "content": "light"}]
        second = client.chat.completions.create(model=model, messages=messages, tools=[WEATHER], max_tokens=5)
        self.assertIsNotNone(second.choices[0].message)
        # The older form of the API.
        old = client.chat.completions.create(model=model, messages=[self.user()], functions=[WEATHER["function"]],
                                             function_call={"name": "weather"}, max_tokens=100)
        self.assertEqual((old.choices[0].finish_reason, old.choices[0].message.function_call.name), ("function_call", "weather"))
        messages = [self.user(), old.choices[0].message, {"role": "function", "name": "weather", "content": "light"}]
        client.chat.completions.create(model=model, messages=messages, max_tokens=3)

    def test_parsed_answers(self):
        class Fox(pydantic.BaseModel):
            name: str = pydantic.Field(min_length=1, max_length=4)
            age: int = pydantic.Field(ge=1, le=20)
            tags: dict[str, bool]

        client = self.client()
        parsed = client.chat.completions.parse(model=client.models.list().data[0].id, messages=[self.user()], response_format=Fox,
                                               max_tokens=60, temperature=1, seed=5)
        self.assertIsInstance(parsed.choices[0].message.parsed, Fox)

    def test_completions_with_echo_and_logprobs(self):
        client = self.client()
        model = client.models.list().data[0].id
        scored = client.completions.create(model=model, prompt="the eye", echo=True, logprobs=2, max_tokens=0)
        logprobs = scored.choices[0].logprobs
        self.assertEqual(scored.choices[0].text, "the eye")
        self.assertEqual("".join(logprobs.tokens), "the eye")
        self.assertIsNone(logprobs.token_logprobs[0])
        self.assertTrue(all(value < 0 for value in logprobs.token_logprobs[1:]))
        self.assertEqual(logprobs.text_offset[:2], [0, len(logprobs.tokens[0])])
        # Each log-probability is that of the token as a continuation.
        n = len(logprobs.tokens) - 1
        alone = client.completions.create(model=model, prompt="".join(logprobs.tokens[:n]), max_tokens=1, temperature=0, logprobs=20)
        likeliest = alone.choices[0].logprobs.top_logprobs[0]
        if logprobs.tokens[n] in likeliest:
            self.assertTrue(math.isclose(likeliest[logprobs.tokens[n]], logprobs.token_logprobs[n], rel_tol=1e-4))
        longer = client.completions.create(model=model, prompt="the eye", echo=True, logprobs=0, max_tokens=3, n=2, seed=1)
        for choice in longer.choices:
            self.assertEqual("".join(choice.logprobs.tokens), choice.text)
        stream = client.completions.create(model=model, prompt="the eye", echo=True, logprobs=0, max_tokens=3, stream=True)
        tokens = [token for event in stream for choice in event.choices if choice.logprobs for token in choice.logprobs.tokens]
        self.assertEqual("".join(tokens[:len(logprobs.tokens)]), "the eye")
        with self.assertRaises(openai.BadRequestError) as caught:
            client.completions.create(model=model, prompt="the", suffix="eye", max_tokens=2)
        self.assertIn("suffix", str(caught.exception))

    def test_streamed_tool_calls(self):
        client = self.client()
        model = client.models.list().data[0].id
        asked = {"model": model, "messages": [self.user()], "tools": [WEATHER], "tool_choice": "required", "max_tokens": 100, "seed": 4}
        whole = client.chat.completions.create(**asked).choices[0].message.tool_calls
        calls, reasons = {}, []
        for event in client.chat.completions.create(**asked, stream=True, stream_options={"include_usage": True}):
            for choice in event.choices:
                reasons.append(choice.finish_reason)
                for piece in choice.delta.tool_calls or []:
                    name, given = calls.get(piece.index, ("", ""))
                    calls[piece.index] = name + (piece.function.name or ""), given + (piece.function.arguments or "")
        self.assertEqual(list(calls.values()), [(call.function.name, call.function.arguments) for call in whole])
        self.assertEqual([reason for reason in reasons if reason], ["tool_calls"])
        self.assertIn(json.loads(whole[0].function.arguments)["city"], ("fox", "eye"))
        with client.chat.completions.stream(**asked) as stream:
            done = [event for event in stream if event.type == "tool_calls.function.arguments.done"]
        self.assertEqual([(event.name, event.arguments) for event in done], list(calls.values()))

    def test_several_choices_logprobs_and_stops(self):
        client = self.client()
        model = client.models.list().data[0].id
        asked = {"model": model, "messages": [self.user()], "max_tokens": 12, "seed": 2}
        answer = client.chat.completions.create(**asked, n=3, logprobs=True, top_logprobs=2)
        self.assertEqual([choice.index for choice in answer.choices], [0, 1, 2])
        self.assertGreater(len({choice.message.content for choice in answer.choices}), 1)
        for choice in answer.choices:
            tokens = choice.logprobs.content
            self.assertEqual(b"".join(bytes(token.bytes) for token in tokens).decode(errors="replace").strip("\ufffd"),
                             choice.message.content.strip("\ufffd"))
            self.assertTrue(all(token.logprob <= 0 and len(token.top_logprobs) == 2 for token in tokens))
        texts = {}
        for event in client.chat.completions.create(**asked, n=3, stream=True):
            for choice in event.choices:
                texts[choice.index] = texts.get(choice.index, "") + (choice.delta.content or "")
        self.assertEqual([texts[i] for i in range(3)], [choice.message.content for choice in answer.choices])
        text = answer.choices[0].message.content
        stops = [text[6:8], "never"]
        cut = client.chat.completions.create(**asked, stop=stops).choices[0]
        self.assertEqual((cut.message.content, cut.finish_reason), (text[:text.index(stops[0])], "stop"))

    def test_raw_responses_and_errors(self):
        client = self.client()
        model = client.models.list().data[0].id
        raw = client.chat.completions.with_raw_response.create(model=model, messages=[self.user()], max_tokens=3)
        self.assertEqual(raw.status_code, 200)
        self.assertTrue(raw.headers["x-request-id"])
        self.assertEqual(raw.parse().usage.completion_tokens, 3)
        with client.chat.completions.with_streaming_response.create(model=model, messages=[self.user()], max_tokens=3) as response:
            self.assertIn("choices", "".join(response.iter_lines()))
        with self.assertRaises(openai.BadRequestError) as caught:
            client.chat.completions.create(model=model, messages=[self.user()], temperature=-1)
        self.assertEqual((caught.exception.param, caught.exception.type), ("temperature", "invalid_request_error"))
        self.assertEqual(client.models.retrieve(model).id, model)

    def test_many_requests_of_the_asynchronous_client(self):
        self.client()
        port = self.port

        async def ask():
            async with openai.AsyncOpenAI(base_url=f"http://127.0.0.1:{port}/v1", api_key="none", max_retries=0) as client:
                asked = {"model": "model", "messages": [self.user()], "max_tokens": 8}
                answers = await asyncio.gather(*(client.chat.completions.create(**asked, seed=i % 4) for i in range(16)))
                streamed = ""
                async for event in await client.chat.completions.create(**asked, seed=0, stream=True):
                    streamed += "".join(choice.delta.content or "" for choice in event.choices)
                return [answer.choices[0].message.content for answer in answers], streamed
        texts, streamed = asyncio.run(ask())
        self.assertEqual(texts[:4] * 4, texts)
        self.assertEqual(streamed, texts[0])

    def test_embeddings(self):
        self.serve(ROOT / "tests/goldens/sentence_model")
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0)
        found = client.embeddings.create(model="sentence_model", input=["a fox", "an eye"])
        self.assertEqual(len(found.data), 2)
        self.assertEqual(len(found.data[0].embedding), len(found.data[1].embedding))


if __name__ == "__main__":
    unittest.main()
