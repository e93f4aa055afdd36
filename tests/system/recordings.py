"""Recordings of speech for tests: espeak-ng reads sentences in five languages, and noise, pauses and tones are added. The samples are the
same wherever the version of espeak-ng is. tools/goldens/make_speech_recordings.py uses them too."""
import array
import functools
import hashlib
import shutil
import subprocess
import tempfile
import wave

import synthetic_audio

ESPEAK = shutil.which("espeak-ng")
SENTENCES = {
    "en": "The north wind and the sun were disputing which was the stronger, when a traveller came along wrapped in a warm cloak. ",
    "de": "Einst stritten sich Nordwind und Sonne, wer von ihnen beiden wohl der Stärkere wäre, als ein Wanderer des Weges kam. ",
    "es": "El viento norte y el sol porfiaban sobre cuál de ellos era el más fuerte, cuando acertó a pasar un viajero. ",
    "fr": "La bise et le soleil se disputaient, chacun assurant qu'il était le plus fort, quand ils ont vu un voyageur. ",
    "it": "Si bisticciavano un giorno il vento di tramontana e il sole, l'uno pretendendo d'esser più forte dell'altro. ",
}
# Name, rate of the file, channels and parts: ["speech", language, speed (words a minute), most seconds], or a part of synthetic_audio.py.
# The rate 22050 is that of espeak-ng.
RECORDINGS = [
    ("en", 22050, 1, [["speech", "en", 175, 60]]),
    ("de", 22050, 1, [["speech", "de", 175, 60]]),
    ("es", 22050, 1, [["speech", "es", 175, 60]]),
    ("fr", 22050, 1, [["speech", "fr", 175, 60]]),
    ("it", 22050, 1, [["speech", "it", 175, 60]]),
    ("a tenth of a second", 16000, 1, [["speech", "en", 175, 0.1]]),
    ("half a second", 16000, 1, [["speech", "de", 175, 0.5]]),
    ("exactly a window", 16000, 1, [["speech", "fr", 175, 3]]),
    ("a sample more than a window", 16000, 1, [["speech", "fr", 175, 3.0000625]]),
    ("slow", 16000, 1, [["speech", "es", 90, 20]]),
    ("fast", 16000, 1, [["speech", "it", 380, 20]]),
    ("8 kHz", 8000, 1, [["speech", "en", 175, 8]]),
    ("44.1 kHz, two channels", 44100, 2, [["speech", "de", 175, 8]]),
    ("48 kHz", 48000, 1, [["speech", "es", 175, 8]]),
    ("in noise", 16000, 1, [["speech", "en", 175, 7], ["noise", 4, 3]]),
    ("with pauses", 16000, 1, [["silence", 4], ["speech", "fr", 200, 4], ["silence", 5], ["speech", "fr", 150, 3], ["silence", 2]]),
    ("silence", 16000, 1, [["silence", 9]]),
    ("tones", 16000, 1, [["tones", 9, 4]]),
    ("tones and speech", 16000, 1, [["tones", 3, 5], ["speech", "it", 175, 6], ["tones", 2, 6]]),
    ("five languages", 16000, 1, [["speech", code, 175, 4] for code in SENTENCES]),
    ("ten minutes", 22050, 1, [["speech", code, speed, 60] for speed in (140, 175, 210) for code in SENTENCES] * 7),
]
LONGEST = 600  # seconds of a recording


@functools.cache
def spoken(language, speed):
    """Samples of a sentence at espeak-ng's rate of 22050."""
    with tempfile.NamedTemporaryFile(suffix=".wav") as file:
        subprocess.run([ESPEAK, "-v", language, "-s", str(speed), "-w", file.name, SENTENCES[language]], check=True, capture_output=True)
        with wave.open(file.name) as made:
            return array.array("h", made.readframes(made.getnframes()))


def at_rate(samples, rate):
    """Interpolates samples at 22050 per second linearly. The result is the test's audio, so that its quality does not matter."""
    if rate == 22050:
        return samples
    made = array.array("h")
    for i in range(len(samples) * rate // 22050 - 1):
        place, rest = divmod(i * 22050, rate)
        following = samples[min(place + 1, len(samples) - 1)]
        made.append(samples[place] + (following - samples[place]) * rest // rate)
    return made


def samples_of(recording):
    """The 16-bit samples of a recording with one channel."""
    _, rate, _, parts = recording
    all_samples = array.array("h")
    for kind, *rest in parts:
        if kind == "speech":
            language, speed, seconds = rest
            all_samples += at_rate(spoken(language, speed), rate)[:round(seconds * rate)]
        elif kind == "noise":  # over the beginning of what is there
            added = array.array("h", synthetic_audio.pcm16(synthetic_audio.noise(*rest, rate=rate)))
            for i in range(min(len(added), len(all_samples))):
                all_samples[i] = max(-32768, min(32767, all_samples[i] + added[i]))
        elif kind == "tones":
            all_samples += array.array("h", synthetic_audio.pcm16(synthetic_audio.tones(*rest, rate=rate)))
        else:
            all_samples += array.array("h", bytes(2 * round(rest[0] * rate)))
    return all_samples[:LONGEST * rate]


def digest(samples):
    return hashlib.sha256(samples.tobytes()).hexdigest()[:16]


def write(path, recording, samples):
    _, rate, channels, _ = recording
    with wave.open(str(path), "wb") as file:
        file.setnchannels(channels)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((array.array("h", [x for x in samples for _ in range(channels)]) if channels > 1 else samples).tobytes())
