"""Synthetic audio for tests of speech: lists of samples in [-1, 1], the same on every machine. tools/goldens/make_speech.py uses them too."""
import array
import math
import struct
import wave

RATE = 16000


class Numbers:
    """A linear congruential generator (Knuth's MMIX constants): numbers in [0, 1)."""

    def __init__(self, seed):
        self.state = seed

    def next(self):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 11) / 2**53


def voice(seconds, seed, rate=RATE):
    """Syllables of a harmonic tone with two resonances that move, and pauses: the shape of speech."""
    numbers, samples = Numbers(seed), []
    while len(samples) < seconds * rate:
        length = int((0.08 + 0.25 * numbers.next()) * rate)
        pitch, first, second = 90 + 120 * numbers.next(), 300 + 500 * numbers.next(), 900 + 1500 * numbers.next()
        parts = [(h * pitch, 0.25 * (math.exp(-((h * pitch - first) / 200)**2) + 0.6 * math.exp(-((h * pitch - second) / 300)**2) + 0.03))
                 for h in range(1, 20) if h * pitch < rate / 2]
        for i in range(length):
            shape = math.sin(math.pi * i / length)
            samples.append(shape * sum(a * math.sin(2 * math.pi * f * i / rate) for f, a in parts if a > 0.01))
        if numbers.next() < 0.35:
            samples += [0.0] * int(0.3 * numbers.next() * rate)
    return samples[:int(seconds * rate)]


def noise(seconds, seed, loudness=0.1, rate=RATE):
    numbers = Numbers(seed)
    return [loudness * (2 * numbers.next() - 1) for _ in range(int(seconds * rate))]


def tones(seconds, seed, rate=RATE):
    """Chords like those of music, half a second each."""
    numbers, samples = Numbers(seed), []
    while len(samples) < seconds * rate:
        chord = [220 * 2**(int(24 * numbers.next()) / 12) for _ in range(3)]
        samples += [0.2 * sum(math.sin(2 * math.pi * f * i / rate) for f in chord) * math.exp(-2 * i / rate) for i in range(rate // 2)]
    return samples[:int(seconds * rate)]


def silence(seconds, rate=RATE):
    return [0.0] * int(seconds * rate)


KINDS = {"voice": voice, "noise": noise, "tones": tones}


def samples_of(parts):
    """Joins parts such as ["voice", 1.5, 7] (kind, seconds, seed) and ["silence", 2]."""
    samples = []
    for kind, seconds, *seed in parts:
        samples += silence(seconds) if kind == "silence" else KINDS[kind](seconds, *seed)
    return samples


def pcm16(samples):
    """The samples as 16-bit integers, little-endian."""
    return array.array("h", [max(-32768, min(32767, round(32767 * x))) for x in samples]).tobytes()


def write_wav(path, samples, rate=RATE, channels=1):
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes(pcm16([x for x in samples for _ in range(channels)]))


def wav_header(rate=RATE, channels=1, bits=16, code=1, data_bytes=0xFFFFFFFF):
    """A header whose lengths may lie, as in a stream."""
    frame = channels * bits // 8
    return (b"RIFF" + struct.pack("<I", min(0xFFFFFFFF, data_bytes + 36)) + b"WAVEfmt " +
            struct.pack("<IHHIIHH", 16, code, channels, rate, min(0xFFFFFFFF, rate * frame), frame % 65536, bits) +
            b"data" + struct.pack("<I", data_bytes))
