"""Files that change under a program which has them mapped."""
import os
import unittest

from serving import ServeTest


class LostFile(ServeTest):
    def test_weights_that_shrink_end_the_server_with_a_sentence(self):
        """Once a page was gone, the read of it killed the server without a word (SIGBUS)."""
        server = self.serve()
        os.truncate(self.served_model() / "model.safetensors", 0)
        with self.assertRaises(OSError):
            self.post("/v1/completions", {"prompt": "The eye", "max_tokens": 3})
        self.assertEqual(server.wait(timeout=30), 1)
        self.assertRegex(self.log(), r"fovea: error: .*model\.safetensors: truncated by another process")


if __name__ == "__main__":
    unittest.main()
