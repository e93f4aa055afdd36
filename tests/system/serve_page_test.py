"""The server's page, its names, and what it says about requests that it does not understand."""
import re
import unittest

from serving import CHAT, ServeTest
from support import fovea


class ServePage(ServeTest):
    def test_the_page_needs_no_other_server(self):
        self.serve(env={"FOVEA_API_KEY": "s3cret"})
        status, headers, page = self.ask("GET", "/")
        self.assertEqual((status, headers["Content-Type"]), (200, "text/html; charset=utf-8"))
        self.assertIn("default-src 'none'", headers["Content-Security-Policy"])
        files = re.findall(r'(?:src|href)="([^"#:]+)"', page.decode())
        self.assertEqual(sorted(files), ["chat.css", "chat.js"])
        for name in files:
            status, _, content = self.ask("GET", "/" + name)
            self.assertEqual(status, 200)
            self.assertNotIn(b"://", content)
        self.assertLess(sum(len(self.ask("GET", "/" + name)[2]) for name in ("", *files)), 32 << 10)
        # Elements that the script uses are on the page.
        script = self.ask("GET", "/chat.js")[2].decode()
        for name in set(re.findall(r'\$\("(\w+)"\)', script)):
            self.assertIn(f'id="{name}"', page.decode())

    def test_unknown_fields_are_named_once(self):
        self.serve()
        for _ in range(3):
            self.good("/v1/completions", {"prompt": "The", "max_tokens": 1, "frobnicate": 1})
        self.good("/v1/chat/completions", {**CHAT, "max_tokens": 1, "frobnicate": 1})
        lines = [line for line in self.log().splitlines() if "frobnicate" in line]
        self.assertEqual(len(lines), 2, lines)
        self.assertIn('/v1/completions: the field "frobnicate" is unknown and ignored', lines[0])

    def test_times_between_tokens_are_counted(self):
        self.serve()
        self.good("/v1/completions", {"prompt": "The", "max_tokens": 7, "ignore_eos": True, "n": 2})
        self.assertEqual(self.metric("fovea_time_per_output_token_seconds_count"), 12)
        self.assertEqual(self.metric("fovea_time_to_first_token_seconds_count"), 1)
        self.assertEqual(self.metric('fovea_time_per_output_token_seconds_bucket{le="[+]Inf"}'), 12)

    def test_a_gguf_file_has_a_name_without_its_ending(self):
        gguf = self.folder / "small.gguf"
        self.ok(fovea("convert", self.served_model(), gguf))
        self.serve(gguf)
        self.assertEqual([model["id"] for model in self.ask("GET", "/v1/models")[2]["data"]], ["model", "small"])

    def test_a_missing_path_is_named(self):
        self.serve()
        status, _, answer = self.ask("GET", "/v2/models")
        self.assertEqual((status, answer["error"]["message"]), (404, "the path /v2/models does not exist"))
        self.stop()
        self.assertIn("stopping after the running requests", self.log())

    def test_suffixes_need_tokens(self):
        self.serve()
        status, _, answer = self.post("/v1/completions", {"prompt": "The", "suffix": "fox"})
        self.assertEqual((status, answer["error"]["param"]), (400, "suffix"))

    def test_objects_repeat_no_key(self):
        self.serve()
        schema = {"type": "object", "additionalProperties": {"type": "boolean"}}
        for seed in range(6):
            answer = self.good("/v1/chat/completions", {**CHAT, "max_tokens": 90, "temperature": 2, "seed": seed,
                                                        "response_format": {"type": "json_schema", "json_schema": {"schema": schema}}})
            keys = re.findall(r'"((?:[^"\\]|\\.)*)"\s*:', answer["choices"][0]["message"]["content"])
            self.assertEqual(len(keys), len(set(keys)), keys)


if __name__ == "__main__":
    unittest.main()
