"""The client of openai, without special settings: chats, tools in two rounds, parsed answers, streams, completions, embeddings."""
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

    def test_embeddings(self):
        self.serve(ROOT / "tests/goldens/sentence_model")
        client = openai.OpenAI(base_url=f"http://127.0.0.1:{self.port}/v1", api_key="none", max_retries=0)
        found = client.embeddings.create(model="sentence_model", input=["a fox", "an eye"])
        self.assertEqual(len(found.data), 2)
        self.assertEqual(len(found.data[0].embedding), len(found.data[1].embedding))


if __name__ == "__main__":
    unittest.main()
