"""Requests that real clients have sent (tests/goldens/clients, made by tools/clients/run.py and replay.py) get the responses that these
clients have understood. The model plays a script."""
import os
import pathlib
import statistics
import sys
import tempfile
import threading
import time
import unittest

from support import FOVEA, ROOT, SOAK

sys.path.append(str(ROOT / "tools/clients"))
import replay  # noqa: E402
import transcript  # noqa: E402


def resident_kilobytes(process):
    for line in pathlib.Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS"):
            return int(line.split()[1])
    return 0


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
                process.wait(300)
                process.stdout.close()
                for one, other in zip(wanted, found):
                    where = f"{path.stem}: {one['method']} {one['path']}"
                    self.assertEqual(one["status"], other["status"], where)
                    self.assertEqual(one["response"], other["response"], where)

    @unittest.skipUnless(SOAK, "takes minutes; FOVEA_SOAK=1 runs it, for FOVEA_SOAK_SECONDS")
    def test_memory_stays_constant_under_the_requests_of_all_clients(self):
        """After an eighth of the time, memory grows by less than 1 MB an hour, or 0.5 MB in a short run."""
        seconds = int(os.environ.get("FOVEA_SOAK_SECONDS", "600"))
        exchanges = [each for path in sorted((ROOT / "tests/goldens/clients").glob("*.jsonl")) for each in transcript.read(path)
                     if each["method"] == "POST"]
        with tempfile.TemporaryDirectory() as folder, open(pathlib.Path(folder, "log"), "wb") as log:
            process, port = replay.start(FOVEA, folder, log)
            self.addCleanup(lambda: process.poll() is None and (process.kill(), process.wait()))
            begin, statuses, samples = time.monotonic(), set(), []

            def client(first):
                number = first
                while time.monotonic() < begin + seconds:
                    statuses.add(replay.send(port, exchanges[number % len(exchanges)])["status"])
                    number += 7

            clients = [threading.Thread(target=client, args=(first,)) for first in range(4)]
            for each in clients:
                each.start()
            while time.monotonic() < begin + seconds:
                time.sleep(min(15, seconds / 100))
                samples.append(((time.monotonic() - begin) / 3600, resident_kilobytes(process.pid)))
            for each in clients:
                each.join()
            later = [sample for sample in samples if sample[0] * 3600 > seconds / 8]
            slope = statistics.linear_regression(*zip(*later)).slope
            print(f"{slope:.0f} kB an hour; {samples[0][1]} kB after the first, {samples[-1][1]} kB after the last requests of {seconds} s")
            self.assertLessEqual(statuses, {each["status"] for each in exchanges})
            self.assertLess(slope, max(1000, 500 * 3600 / seconds))
            process.terminate()
            self.assertEqual(process.wait(60), 143)
            process.stdout.close()


if __name__ == "__main__":
    unittest.main()
