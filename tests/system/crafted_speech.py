"""Speech models with crafted logits: copies of tests/goldens/speech/model whose last norm is changed. The logits are the products of the
norm's output and the embeddings, so a bias along an embedding makes its token as likely as desired, and a smaller weight makes the logits
the same for all recordings and texts. tools/goldens/make_speech_crafted.py uses them too."""
import json
import shutil
import struct

SPEECH = [["voice", 4.0, 5], ["silence", 1.5], ["noise", 1.0, 6], ["voice", 3.1, 9]]
THE = 258  # the token " the"
SILENCE, NO_TIMES, FIRST_TIME = 283, 284, 285
NO_CHECKS = ["--compression-ratio-threshold", "0", "--logprob-threshold", "0", "--no-speech-threshold", "1"]


def at(seconds):
    return FIRST_TIME + round(50 * seconds)


def checks(ratio, logprob, silence):
    """The options of fovea and of transformers' generate() with these limits. The temperatures are so low that the samples are the greedy
    text, but tokens whose logits differ by less are chosen at random: at 0.0001, two runs of transformers differ. Without top_k=0,
    transformers samples from 50 tokens, and the log-probability of a sampled text is that among them."""
    return {"options": ["--temperature", "0,0.0000001,0.0000002", "--samples", "1", "--compression-ratio-threshold", str(ratio),
                        "--logprob-threshold", str(logprob), "--no-speech-threshold", str(silence)],
            "generate": {"temperature": (0.0, 1e-7, 2e-7), "top_k": 0, "compression_ratio_threshold": ratio, "logprob_threshold": logprob,
                         "no_speech_threshold": silence}}


# Name, factor of the norm's weight, what is added to the logits of tokens, and the options.
PLAIN = {"options": NO_CHECKS, "generate": {}}
CASES = [
    ("one token repeats in all windows", 0, {THE: 12}, checks(2.4, -50, 1.0)),
    ("one token repeats in some windows", 0.7, {THE: 5}, checks(2.4, -50, 1.0)),
    ("all windows are improbable", 0.6, {}, checks(50, -1, 1.0)),
    ("some windows are improbable", 0.6, {}, checks(50, -2.9, 1.0)),
    ("silence that is improbable", 0.5, {SILENCE: 9}, checks(50, -1, 0.6)),
    ("silence with probable text", 0, {SILENCE: 26, THE: 20}, checks(50, -1, 0.6)),
    ("a time is always likely", 0.4, {at(0.6): 7}, PLAIN),
    ("the first time is too late", 0.4, {at(2.5): 7}, PLAIN),
    ("times would decrease", 0.4, {at(0): 6, at(0.5): 5, THE: 2}, PLAIN),
    ("times are likely together", 0.4, {at(i / 10): 2 for i in range(30)}, PLAIN),
    ("text without times is likely", 0.4, {NO_TIMES: 8}, PLAIN),
]


def write(folder, source, factor, added):
    """Writes a copy of the model in the directory `source`."""
    shutil.copytree(source, folder, dirs_exist_ok=True)
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    size = struct.unpack_from("<Q", content)[0]
    header = json.loads(content[8:8 + size])

    def place(name):
        tensor = header[name]
        assert tensor["dtype"] == "F16"
        return 8 + size + tensor["data_offsets"][0], tensor["shape"]

    table, (_, width) = place("model.decoder.embed_tokens.weight")
    weight, _ = place("model.decoder.layer_norm.weight")
    bias, _ = place("model.decoder.layer_norm.bias")
    numbers = f"<{width}e"
    scaled = [factor * x for x in struct.unpack_from(numbers, content, weight)]
    moved = [factor * x for x in struct.unpack_from(numbers, content, bias)]
    for token, logit in added.items():
        row = struct.unpack_from(numbers, content, table + 2 * width * token)
        length = sum(x * x for x in row)
        moved = [a + logit * x / length for a, x in zip(moved, row)]
    struct.pack_into(numbers, content, weight, *scaled)
    struct.pack_into(numbers, content, bias, *moved)
    path.write_bytes(content)
