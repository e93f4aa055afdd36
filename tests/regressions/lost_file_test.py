"""Files that change while they are mapped by the program."""
import os
import unittest

from serving import ServeTest


class LostFile(ServeTest):
    def test_truncated_weights_end_the_server_with_an_error(self):
        """Reading a page that no longer existed killed the server silently (SIGBUS)."""
        server = self.serve()
        os.truncate(self.served_model() / "model.safetensors", 0)
        with self.assertRaises(OSError):
            self.post("/v1/completions", {"prompt": "The eye", "max_tokens": 3})
        self.assertEqual(server.wait(timeout=30), 1)
        self.assertRegex(self.log(), r"fovea: error: .*model\.safetensors: truncated by another process")


if __name__ == "__main__":
    unittest.main()
