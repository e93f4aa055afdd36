"""Conversations that were ended by a single message."""
import json
import unittest

from serving import TEMPLATE, ServeTest
from support import fovea


class Chat(ServeTest):
    def test_invalid_utf8_is_replaced(self):
        """One byte that is not UTF-8 ended the conversation. It is now replaced by U+FFFD."""
        model = self.served_model()
        result = self.ok(fovea("chat", model, "--chat-template", TEMPLATE, "-n", 2, "--greedy", "--json", input=b"a\xffb\nGo on\n"))
        said = json.loads(result.stdout)["messages"]
        self.assertEqual([m["content"] for m in said if m["role"] == "user"], ["a\ufffdb", "Go on"])
        scored = fovea("eval", model, "--score", b"a\xff".decode(errors="surrogateescape"), "--json")
        self.refused(scored, 2, "not UTF-8 (byte 2)")


if __name__ == "__main__":
    unittest.main()
