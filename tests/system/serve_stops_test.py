"""Work of fovea serve ends when its client has left, its time is over or the server stops, and its memory returns."""
import contextlib
import http.client
import socket
import struct
import threading
import time
import unittest

from serve_speech_test import MODEL, TYPE, form
from serving import ServeTest
from synthetic_audio import voice, write_wav


def crc(data, bits, polynomial):
    value, top = 0, 1 << (bits - 1)
    for byte in data:
        value ^= byte << (bits - 8)
        for _ in range(8):
            value = (value << 1) ^ polynomial if value & top else value << 1
            value &= (1 << bits) - 1
    return value


def number(n):
    """An integer as a FLAC frame has it: as UTF-8 writes a character."""
    if n < 128:
        return bytes([n])
    count = next(k for k in range(2, 7) if n < 1 << (5 * k + 1))
    parts = [((255 << (8 - count)) & 255) | n >> (6 * (count - 1))]
    return bytes(parts + [128 | (n >> (6 * i)) & 63 for i in reversed(range(count - 1))])


def silence(hours):
    """A FLAC file of silence: 4 seconds take 12 bytes."""
    rate, block = 16000, 65535
    frames = hours * 3600 * rate // block + 1
    total = frames * block & ((1 << 36) - 1)
    about = struct.pack(">HH", block, block) + bytes(6) + ((rate << 44) | (15 << 36) | total).to_bytes(8, "big") + bytes(16)
    out = bytearray(b"fLaC\x80" + len(about).to_bytes(3, "big") + about)
    for i in range(frames):
        head = b"\xff\xf8\x70\x08" + number(i) + struct.pack(">H", block - 1)
        frame = head + bytes([crc(head, 8, 7)]) + bytes(3)
        out += frame + struct.pack(">H", crc(frame, 16, 0x8005))
    return bytes(out)


class ServeStopsTest(ServeTest):
    def served_model(self, context=256):
        return MODEL

    def upload(self, audio, **how):
        return self.post("/v1/audio/transcriptions", form(audio), headers={"Content-Type": TYPE}, **how)

    def upload_in_background(self, audio):
        def upload():
            with contextlib.suppress(OSError, http.client.HTTPException):  # the server ends
                self.upload(audio)
        threading.Thread(target=upload, daemon=True).start()

    def expect_idle(self):
        """Work ends within a second."""
        time.sleep(1)
        before = self.processor_seconds()
        time.sleep(0.5)
        self.assertLess(self.processor_seconds() - before, 0.1)

    # Regression: 4 MB of FLAC with 300 hours of silence were read to their end after the client had its 503, the model served
    # nobody else, and SIGTERM did not end the server.
    def test_endless_silence_ends_with_its_time(self):
        self.serve("--max-time", 1, "--grace", 1)
        self.assertEqual(self.upload(silence(20))[0], 503)
        self.expect_idle()
        path = self.folder / "a.wav"
        write_wav(path, voice(0.5, 1))
        self.assertEqual(self.upload(path.read_bytes())[0], 200)
        self.upload_in_background(silence(20))
        time.sleep(0.5)
        self.assertEqual(self.stop(seconds=10), 143)

    def test_a_recording_of_days_is_refused(self):
        self.serve()
        status, _, answer = self.upload(silence(7))
        self.assertEqual((status, answer["error"]["message"]), (400, "a.wav: is longer than 6 hours; expected a shorter recording"))

    # Regression: 40 uploads of 60 MB whose clients had left were kept: 2.4 GB.
    def test_waiting_uploads_of_clients_that_left_are_dropped(self):
        self.serve()
        self.upload_in_background(silence(5))
        time.sleep(0.3)
        body = form(b"RIFF" + bytes(30_000_000))
        before = self.of_status("VmRSS")
        for _ in range(12):
            with socket.create_connection(("127.0.0.1", self.port)) as client:
                client.sendall(f"POST /inference HTTP/1.1\r\nHost: localhost\r\nContent-Type: {TYPE}\r\nContent-Length: {len(body)}\r\n\r\n".encode())
                with contextlib.suppress(OSError):  # refused, since the requests of the server hold too much
                    client.sendall(body)
                time.sleep(0.1)
        self.wait_until(lambda: self.of_status("VmRSS") - before < 100_000)


if __name__ == "__main__":
    unittest.main()
