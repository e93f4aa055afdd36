"""The memory of transcriptions, which does not grow with the duration of the audio beyond 300 MB."""
import os
import subprocess
import unittest

import synthetic_audio
from memory_test import SANITIZED
from support import FOVEA, FoveaTest
from transcribe_test import MODEL

HOURS = 1
MOST = 300 << 20  # bytes, besides the weights, which take less than 1 MB here


def peak_of(process):
    """Waits for a process; returns its exit code and its largest resident memory in bytes."""
    _, status, usage = os.wait4(process.pid, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


@unittest.skipIf(SANITIZED, "sanitizers take memory")
class SpeechMemoryTest(FoveaTest):
    def test_an_hour_takes_less_than_300_megabytes(self):
        path = self.folder / "long.wav"
        minute = bytes(max(0, min(255, round(127 * x) + 128)) for x in synthetic_audio.silence(57, rate=8000) + synthetic_audio.voice(3, 5, rate=8000))
        with open(path, "wb") as file:
            file.write(synthetic_audio.wav_header(rate=8000, bits=8, data_bytes=60 * HOURS * len(minute)))
            for _ in range(60 * HOURS):
                file.write(minute)
        command = [FOVEA, "transcribe", str(MODEL), str(path), "--vad", "--beams", "1", "--temperature", "0", "--max-tokens", "4", "--batch-size", "4",
                   "--out", str(self.folder / "out.txt")]
        with open(self.folder / "errors", "w+b") as errors:
            process = subprocess.Popen(command, stderr=errors)  # pylint: disable=consider-using-with
            code, peak = peak_of(process)
            process.returncode = code
            errors.seek(0)
            self.assertEqual(code, 0, errors.read())
        self.assertLess(peak, MOST)
        self.assertTrue((self.folder / "out.txt").stat().st_size)


if __name__ == "__main__":
    unittest.main()
