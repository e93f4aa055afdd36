"""Requests that real clients have sent (tests/goldens/clients, made by tools/clients/run.py and replay.py) get the responses that these
clients have understood. The model plays a script."""
import pathlib
import sys
import tempfile
import unittest

from support import FOVEA, ROOT

sys.path.append(str(ROOT / "tools/clients"))
import replay  # noqa: E402
import transcript  # noqa: E402


class Clients(unittest.TestCase):
    def test_requests_of_clients_get_the_recorded_responses(self):
        paths = sorted((ROOT / "tests/goldens/clients").glob("*.jsonl"))
        self.assertGreater(len(paths), 5)
        for path in paths:
            with self.subTest(path.stem), tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder, "log"), "wb") as log:
                process, port = replay.start(FOVEA, folder, log)
                self.addCleanup(lambda started=process: started.poll() is None and (started.kill(), started.wait()))
                wanted = transcript.read(path)
                found = replay.replay(port, wanted)
                process.terminate()
                process.wait(30)
                process.stdout.close()
                for one, other in zip(wanted, found):
                    where = f"{path.stem}: {one['method']} {one['path']}"
                    self.assertEqual(one["status"], other["status"], where)
                    self.assertEqual(one["response"], other["response"], where)


if __name__ == "__main__":
    unittest.main()
