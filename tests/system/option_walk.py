"""Walks options: what a run gives with each option, compared with the run without it."""
import json
import struct
import zlib

import synthetic_audio
from support import ROOT, fovea

GOLDENS = ROOT / "tests/goldens"

# Options that change no result: they change the speed, the memory, the files beside the result, or what is printed.
HARMLESS = {
    "--device": "the same bits (device_test.py)",
    "--recompute": "speed and memory; same bits",
    "--save-every": "snapshots",
    "--keep": "snapshots",
    "--bad-steps": "matters only if a loss is not finite",
    "--shard": "memory; same bits",
    "--stall-timeout": "matters only if a job of several processes stands still",
    "--tensorboard": "a further file",
    "--csv": "a further file",
    "--inspect": "serves a page during the run",
    "--memory-limit": "matters only if memory is short",
    "--token-cache": "memory; same tokens",
    "--shard-size": "the same weights in several files",
    "--allow-change": "matters only if a run is resumed",
    "--out": "the place of the result",
    "--sample-every": "samples in the log",
    "--sample-tokens": "samples in the log",
    "--reference-cache": "the place of a cache",
    "--cache": "the place of a cache",
    "--reward-timeout": "matters only if a program is slow",
    "--dry-run": "another action",
    "--show-example": "another action",
    "--dump-config": "another action",
    "--threads": "speed; same bits",
    "--json": "what is printed",
    "--yes": "matters only for a model that is not here",
    "--strict": "matters only if a file has warnings",
    "--help": "another action",
    "--help-all": "another action",
    "--config": "other options",
}


def bars(vertical):
    """Returns a PNG file: an image of 8 x 8 pixels."""
    rows = b"".join(b"\0" + b"".join(bytes([255 * ((x if vertical else y) % 2)] * 3) for x in range(8)) for y in range(8))
    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", 8, 8, 8, 2, 0, 0, 0)) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


class World:
    """The data and the models of the walk, in a folder."""

    def __init__(self, folder):
        self.folder = folder
        file = self.file
        words = ["the", "eye", "of", "a", "fox", "sees", "what", "light", "falls", "on", "it"]
        sentence = lambda i, n: " ".join(words[(i * 7 + 3 * k + k * k) % len(words)] for k in range(n))
        self.text = file("text.txt", "".join(sentence(i, 5 + i % 5) + ".\n" for i in range(150)))
        self.documents = file("documents.jsonl", "".join(json.dumps({"text": sentence(i, 4 + i % 9)}) + "\n" for i in range(150)))
        self.pairs = file("pairs.tsv", "".join(f"{sentence(i, 3 + i % 3)}\t{sentence(i + 1, 3)}\n" for i in range(40)))
        self.more_pairs = file("more_pairs.tsv", "".join(f"{sentence(i, 2)}\t{sentence(i + 2, 3)}\n" for i in range(90, 100)))
        self.labels = file("labels.tsv", "".join(f"{sentence(i, 4)}\t{'ab'[i % 3 == 0]}\n" for i in range(40)))
        self.more_labels = file("more_labels.tsv", "".join(f"{sentence(i, 2)}\t{'ab'[i % 2]}\n" for i in range(90, 100)))
        self.numbers = file("numbers.tsv", "".join(f"{sentence(i, 4)}\t{i % 5}.5\n" for i in range(40)))
        self.words = file("words.jsonl", "".join(json.dumps({"words": sentence(i, 4).split(), "labels": ["A", "B", "A", "C"]}) + "\n" for i in range(40)))
        paragraphs = [{"context": sentence(i, 9), "qas": [{"id": str(i), "question": "who?", "answers": [{"text": sentence(i, 9).split()[2], "answer_start": len(" ".join(sentence(i, 9).split()[:2])) + 1}]}]} for i in range(20)]
        self.questions = file("squad.json", json.dumps({"data": [{"title": "t", "paragraphs": paragraphs}]}))
        chat = lambda i, turns: json.dumps({"messages": [m for k in range(turns) for m in ({"role": "user", "content": sentence(i + k, 3)}, {"role": "assistant", "content": sentence(i + k + 1, 2)})]})
        self.chats = file("chats.jsonl", "".join(chat(i, 1 + i % 2) + "\n" for i in range(30)))
        self.more_chats = file("more_chats.jsonl", "".join(chat(i, 1) + "\n" for i in range(60, 66)))
        said = lambda role, text: [{"role": role, "content": text}]
        self.preferences = file("preferences.jsonl", "".join(json.dumps({"prompt": said("user", sentence(i, 3)), "chosen": said("assistant", sentence(i, 2)), "rejected": said("assistant", sentence(i + 4, 2))}) + "\n" for i in range(24)))
        self.judged = file("judged.jsonl", "".join(json.dumps({"prompt": said("user", sentence(i, 3)), "completion": said("assistant", sentence(i, 2)), "label": i % 2 == 0}) + "\n" for i in range(24)))
        self.prompts = file("prompts.jsonl", "".join(json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(9)))
        self.more_prompts = file("more_prompts.jsonl", "".join(json.dumps({"prompt": f"{i}+2=", "answer": str(i + 2)}) + "\n" for i in range(5)))
        for i in range(12):
            for name, vertical in (("rows", False), ("columns", True)):
                (folder / "images" / name).mkdir(parents=True, exist_ok=True)
                (folder / "images" / name / f"{i}.png").write_bytes(bars(vertical))
        self.images = folder / "images"
        self.requests = file("requests.jsonl", "".join(json.dumps({"prompt": sentence(i, 4)} if i % 2 else {"messages": [{"role": "user", "content": sentence(i, 4)}]}) + "\n" for i in range(4)))
        self.captions = file("captions.tsv", "".join(f"images/{name}/{i}.png\t{name} {sentence(i, 2)}\n" for i in range(12) for name in ("rows", "columns")))
        golden = json.loads((GOLDENS / "speech/training.json").read_text())
        lines = ["audio,text,language"]
        for i, (part, text, language) in enumerate(golden["pairs"]):
            synthetic_audio.write_wav(folder / f"{i}.wav", synthetic_audio.samples_of([part]))
            lines.append(f'{i}.wav,"{text}",{language}')
        self.recordings = file("recordings.csv", "\n".join(lines) + "\n")
        self.template = file("template.jinja", "{% for m in messages %}{{ m.role[0] }}{{ m.content }}{{ eos_token }}{% endfor %}")
        self.mlm = GOLDENS / "classifiers/masks"
        self.marian = GOLDENS / "ctranslate2/translation_model"
        self.llama = GOLDENS / "fine_tuning/model"
        self.whisper = GOLDENS / "speech/model"
        small = ["--layers", 1, "--heads", 2, "--width", 16, "--batch", 2, "--context", 32, "--steps", 2, "--sample-tokens", 0, "--seed", 7, "--dtype", "fp32"]
        self.tokenizer = folder / "tokenizer"
        self.run("tokenize", "--train", "bpe", "--vocab-size", 280, self.text, "--out", self.tokenizer)
        self.base = self.made("base", self.text, "--preset", "tiny", *small, "--tokenizer", self.tokenizer)
        self.other = self.made("other", self.text, "--preset", "tiny", *small, "--seed", 8, "--tokenizer", self.tokenizer)
        self.translator = self.made("translator", "--pairs", self.pairs, "--preset", "translate-tiny", "--layers", 1, "--encoder-layers", 1, "--steps", 2, "--tokenizer", "char", "--dtype", "fp32")
        self.vit = self.made("vit", "--images", self.images, "--preset", "vit-tiny", "--image-size", 8, "--patch", 4, "--encoder-layers", 1, "--encoder-heads", 2, "--width", 16, "--steps", 2, "--batch", 4, "--dtype", "fp32")

        self.adapter = self.made("adapter", self.chats, "--from", self.llama, "--lora", 4, "--steps", 3, "--learning-rate", "0.1", "--batch", 4, "--sample-tokens", 0, "--dtype", "fp32")

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    def run(self, *arguments, **more):
        result = fovea(*arguments, **more)
        assert result.returncode == 0, (arguments, result.stderr.decode())
        return result

    def made(self, name, *arguments):
        self.run("train", *arguments, "--out", self.folder / name)
        return self.folder / name


SMALL = ["--heads", 2, "--width", 16, "--batch", 4, "--context", 32, "--steps", 3, "--learning-rate", "0.01", "--evaluate-every", 1, "--sample-tokens", 0, "--dtype", "fp32"]
OF_PAIRS = ["--steps", 3, "--learning-rate", "0.01", "--evaluate-every", 1, "--sample-tokens", 0, "--dtype", "fp32"]
TUNED = ["--batch", 4, *OF_PAIRS]


def training_cases(w):
    """Returns the commands of train by name, without --out."""
    tiny = ["--preset", "tiny", "--layers", 1, *SMALL]
    encoder = ["--encoder-layers", 1, "--encoder-heads", 2, "--width", 16, "--encoder-ffn-width", 32, *TUNED, "--context", 32]
    images = ["--images", w.images, "--preset", "vit-tiny", "--image-size", 8, "--patch", 4, "--encoder-layers", 1, "--encoder-heads", 2, "--width", 16, *TUNED]
    answers = ["--prompts", 2, "--generations", 3, "--answer-tokens", 6, "--reward", "length:1-4", "0.5*regex:[a-f]"]
    return {
        "text": [w.text, *tiny],
        "text schedules": [w.documents, *tiny, "--accumulate", 2, "--accumulate-from", 1, "--average", 2, "--schedule", "trapezoid", "--tokenizer", w.tokenizer],
        "text muon": [w.text, *tiny, "--optimizer", "muon"],
        "text sgd": [w.text, *tiny, "--optimizer", "sgd"],
        "text lion": [w.text, *tiny, "--optimizer", "lion", "--schedule", "constant"],
        "text adafactor": [w.text, *tiny, "--optimizer", "adafactor", "--schedule", "inverse_root"],
        "masked": [w.text, "--preset", "bert-base", "--head", "language_model", *encoder, "--tokenizer", "wordpiece:120"],
        "spans": [w.text, "--preset", "t5-small", "--layers", 1, "--encoder-layers", 1, "--heads", 2, "--encoder-heads", 2, "--head-width", 8, "--encoder-head-width", 8, "--width", 16, "--ffn-width", 16, "--encoder-ffn-width", 16, *TUNED, "--context", 32],
        "pairs": ["--pairs", w.pairs, "--preset", "translate-tiny", "--layers", 1, "--encoder-layers", 1, "--width", 16, *OF_PAIRS],
        "labels": ["--labels", w.labels, *tiny],
        "numbers": ["--labels", w.numbers, "--preset", "bert-base", *encoder],
        "words": ["--labels", w.words, "--preset", "bert-base", *encoder],
        "images": images,
        "augmented images": [*images, "--rand-augment", 1],
        "captions": ["--images", w.captions, "--preset", "clip-tiny", "--image-size", 8, "--patch", 4, "--encoder-layers", 1, "--layers", 1, "--encoder-heads", 2, "--heads", 2, "--width", 16, *TUNED, "--context", 32],
        "skip_gram": [w.text, "--objective", "skip_gram", "--preset", "tiny", "--layers", 0, *SMALL[2:]],
        "replaced_tokens": [w.text, "--objective", "replaced_tokens", "--preset", "bert-base", *encoder],
        "text of a model": [w.text, "--from", w.base, *TUNED],
        "masked of a model": [w.text, "--from", w.mlm, *TUNED],
        "lora": [w.text, "--from", w.base, "--lora", 2, *TUNED],
        "pairs of a model": ["--pairs", w.pairs, "--from", w.translator, *OF_PAIRS],
        "labels of a model": ["--labels", w.labels, "--from", w.mlm, *TUNED],
        "words of a model": ["--labels", w.words, "--from", w.mlm, *TUNED],
        "questions of a model": ["--labels", w.questions, "--from", w.mlm, *TUNED],
        "images of a model": ["--images", w.images, "--from", w.vit, *TUNED],
        "chats of a model": [w.chats, "--from", w.llama, *TUNED],
        "dpo": [w.preferences, "--from", w.llama, "--objective", "dpo", *TUNED],
        "kto": [w.judged, "--from", w.llama, "--objective", "kto", *TUNED],
        "orpo": [w.preferences, "--from", w.llama, "--objective", "orpo", *TUNED],
        "simpo": [w.preferences, "--from", w.llama, "--objective", "simpo", *TUNED],
        "reward": [w.preferences, "--from", w.llama, "--objective", "reward", *TUNED],
        "grpo": [w.prompts, "--from", w.base, "--objective", "grpo", *answers, *TUNED],
        "ppo": [w.prompts, "--from", w.base, "--objective", "ppo", *answers, *TUNED],
        "speech": [w.recordings, "--from", w.whisper, *TUNED],
    }


def training_values(w):
    """Returns a value for each option that the kind of the option does not give; several words are several values."""
    return {
        "--validation-chats": [w.more_chats], "--validation-pairs": [w.more_pairs], "--validation-labels": [w.more_labels],
        "--validation-images": [w.images / "rows", w.images / "columns"], "--validation-prompts": [w.more_prompts],
        "--pairs": [w.more_pairs], "--labels": [w.more_labels], "--images": [w.images], "--from": [w.other],
        "--source-prefix": ["fox "], "--class-weights": ["balanced"], "--tokenizer": ["bpe:400"], "--max-vocabulary": [9],
        "--validation": ["0.3"], "--image-crop": ["0.5"], "--chat-template": [w.template], "--preset": ["baby"],
        "--problem-type": ["multi_label"], "--objective": ["masked"], "--best-by": ["loss"], "--lora-targets": ["q_proj"], "--freeze": ["*norm*"],
        "--steps": [4], "--epochs": [1], "--batch": [3], "--length": [16], "--batch-tokens": [40], "--accumulate": [3], "--accumulate-from": [2],
        "--window-from": [4], "--growth": ["0.9"], "--patience": [1], "--warmup": [2], "--schedule": ["linear"], "--optimizer": ["lion"],
        "--lora": [4], "--reward": ["regex:[g-z]"], "--reward-command": ["cat"], "--seed": [99], "--dtype": ["bf16"], "--evaluate-every": [2],
        "--evaluate-windows": [1], "--bleu-lines": [1], "--average": [3], "--average-of": ["best"], "--clip": ["0.01"], "--beta1": ["0.5"], "--final-rate": ["0.7"],
        "--epsilon": ["0.1"], "--clip-ratio": ["0.00001"], "--clip-ratio-high": ["0.00002"], "--evaluation-prompts": [1], "--score-clip": ["0.1"],
        "--reward-clip": ["0.01"], "--too-long": ["skip"], "--mean-span": [5], "--answer-tokens": [3], "--subsampling": ["0.00001"],
        "--rand-augment": [3], "--rand-augment-magnitude": [20], "--kl-target": ["0.0001"], "--kl-horizon": [1], "--clip-value": ["0.0001"],
        "--decay-fraction": ["0.9"], "--moments": ["8bit"], "--dropout": ["0.5"], "--memory-limit": ["8G"],
        "--embedding-dropout": ["0.5"], "--attention-dropout": ["0.5"], "--residual-dropout": ["0.5"], "--lora-dropout": ["0.5"],
        "--vocabulary": [400], "--source-vocabulary": [500], "--context": [24], "--width": [32], "--padding-token": [3], "--token-types": [3],
        "--input": ["image"], "--mixer": ["gru"], "--encoder-mixer": ["gru"], "--head": ["token"], "--window": [4], "--encoder-window": [4],
        "--dense-layers": [0], "--encoder-dense-layers": [0], "--rope-theta": [100], "--encoder-rope-theta": [100], "--norm-alpha": [2],
        "--encoder-norm-alpha": [2], "--norm-epsilon": ["0.1"], "--encoder-norm-epsilon": ["0.1"], "--kv-heads": [1], "--encoder-kv-heads": [1],
        "--head-width": [4], "--encoder-head-width": [4],
    }


def value_of(option, values):
    name = option["name"]
    if name in values:
        return [name, *values[name]]
    if option["kind"] == "flag":
        return [name]
    if option["kind"] == "boolean":
        return [name, "false" if option["default"] == "true" else "true"]
    if option["kind"] == "choice":
        return [name, next(each for each in reversed(option["expected"].split(", ")) if each != option["default"])]
    if option["kind"] in ("integer", "number"):
        least, _, most = option["expected"].partition(" to ")
        least, most = float(least.split()[0]), float(most or 1e9)
        default = float(option["default"] or least)
        other = default * 2 if default else 2 if option["kind"] == "integer" else 0.5
        other = min(max(other, least), most)
        if other == default:
            other = default / 2
        return [name, int(other) if option["kind"] == "integer" else other]
    raise KeyError(name)


def verb_cases(w):
    """Returns commands of other verbs: (verb, name) -> arguments."""
    write = [w.llama, "-p", "the cat sat on the", "-n", 12, "--seed", 3]
    classifiers = GOLDENS / "classifiers"
    sentences = GOLDENS / "sentence_model"
    scored = w.folder / "scored.tsv"
    scored.write_text("".join(f"the fox sees {i * i}\t{'of the eye what light'[i:]} falls\t{i * 7 % 5}\n" for i in range(12)))
    related = w.folder / "related.tsv"
    related.write_text("".join(f"the fox {i}\tthe eye {i}\n" for i in range(12)))
    mined = w.folder / "mined.tsv"
    words = "fox eye light bird night day".split()
    mined.write_text("".join(f"the {words[i % 6]} {words[i // 2]}\t{words[i // 2]} on {words[i % 5]}\tnever {words[i % 4]} {words[i // 3]}\n" for i in range(12)))
    listed = w.file("listed.tsv", "query\tpositive\tnegative\tscores\n" + "".join(
        f"the {words[i % 6]}\t{words[i // 2]} on {words[i % 5]}\tnever {words[i % 4]}\t[{i % 3}, {-i % 4}]\n" for i in range(12)))
    lines = w.folder / "lines.txt"
    lines.write_text("the fox sees\nwhat light falls on it and on the eye of a fox\nthe eye\n")
    questions = w.folder / "asked.txt"
    questions.write_text("who sees?\nwhat is light?\n")
    masked = w.folder / "masked.txt"
    masked.write_text("the [MASK] sees\n")
    translated, reference = w.folder / "translated.txt", w.folder / "reference.txt"
    translated.write_text("the fox sees\nthe eye of a fox\n")
    reference.write_text("the fox saw\nan eye of the fox\n")
    names = json.loads((classifiers / "texts/config.json").read_text())["id2label"]
    known = w.file("known.tsv", "".join(f"the fox {i}\t{names[str(i % 2)]}\n" for i in range(8)))
    tasks = w.folder / "tasks.jsonl"
    tasks.write_text("".join(json.dumps({"context": f"the fox {i}", "choices": [" sees", " falls"], "gold": i % 2}) + "\n" for i in range(6)))
    queries = w.file("queries.jsonl", "".join(json.dumps({"_id": f"q{i}", "text": text}) + "\n" for i, text in enumerate(["the fox", "light", "the eye"])))
    corpus = w.file("corpus.jsonl", "".join(json.dumps({"_id": f"d{i}", "text": text}) + "\n" for i, text in enumerate(
        ["the fox sees", "what light falls", "the eye", "a bird", "the night", "the fox and the eye"])))
    judgements = w.file("qrels.tsv", "query-id\tcorpus-id\tscore\nq0\td3\t1\nq0\td5\t2\nq1\td4\t1\nq2\td0\t1\n")
    retrieval = ["--retrieval", queries, corpus, judgements, "--depth", 4, "--cutoffs", 2]
    w.file("other_labelled.tsv", "sentence1\tsentence2\tlabel\nthe fox\tnight\t1\nthe eye\tthe eye\t0\nlight\ta bird\t0\n")
    labelled = w.file("labelled.tsv", "sentence1\tsentence2\tlabel\n" + "".join(f"the fox\t{text}\t{i % 3 % 2}\n" for i, text in enumerate(
        ["the eye", "light", "the fox", "night", "a bird", "the light falls"])))
    # An output is removed before each run, and its digest is a part of the result.
    return {
        ("generate", "sampling"): write,
        ("generate", "greedy"): [*write, "--greedy"],
        ("generate", "beams"): [*write, "--beams", 4],
        ("generate", "groups"): [*write, "--beams", 4, "--beam-groups", 2],
        ("generate", "mirostat"): [*write, "--mirostat", 2],
        ("generate", "penalties"): [*write, "--dry-multiplier", 2, "--xtc-probability", "0.5"],
        ("generate", "alternatives"): [*write, "--alternatives", 3],
        ("generate", "prompts"): [w.llama, "--prompts", w.requests, "-n", 12, "--seed", 3],
        ("translate", "beams"): [w.marian, lines, "--max-tokens", 8],
        ("translate", "tree"): [w.marian, lines, "--max-tokens", 8, "--json"],
        ("translate", "greedy"): [w.marian, lines, "--max-length-factor", 1, "--beams", 1],
        ("embed", "dense"): [sentences, lines],
        ("embed", "sparse"): [GOLDENS / "sparse_model", lines],
        ("embed", "late"): [GOLDENS / "multi_vector_model", lines],
        ("embed", "images"): [GOLDENS / "vision/clip", w.images / "rows"],
        ("embed", "evaluate"): [sentences, "--evaluate", scored],
        ("embed", "explain"): [sentences, lines, "--explain", "the fox"],
        ("embed", "train"): [sentences, "--train", related, "--out", w.folder / "embedder", "--batch", 4, "--learning-rate", "0.01"],
        ("embed", "train triplets"): [sentences, "--train", mined, "--out", w.folder / "embedder_of_triplets", "--batch", 4, "--learning-rate", "0.01",
                                      "--loss", "gist", "--guide", sentences],
        ("embed", "train sparse"): [GOLDENS / "sparse_model", "--train", listed, "--out", w.folder / "sparse", "--batch", 4, "--learning-rate", "0.01"],
        ("embed", "train tokens"): [sentences, "--kind", "tokens", "--train", listed, "--out", w.folder / "tokens", "--batch", 4, "--learning-rate", "0.01",
                                    "--loss", "kl"],
        ("embed", "train pair scores"): [GOLDENS / "cross_encoder", "--train", listed, "--out", w.folder / "scores", "--batch", 4, "--learning-rate", "0.01"],
        ("embed", "mine"): [sentences, lines, "--mine", mined, "--negatives", 2, "--sampling", "random", "--range-max", 6],
        ("embed", "train scores"): [sentences, "--train", scored, "--out", w.folder / "embedder_of_scores", "--batch", 4, "--learning-rate", "0.01"],
        ("classify", "texts"): [classifiers / "texts", lines],
        ("classify", "several"): [classifiers / "several", lines],
        ("classify", "regression"): [classifiers / "regression", lines],
        ("classify", "words"): [classifiers / "words", lines],
        ("classify", "answers"): [classifiers / "answers", questions, "--context", "the fox sees what light falls on the eye " * 6],
        ("classify", "masks"): [classifiers / "masks", masked],
        ("classify", "explain"): [classifiers / "texts", lines, "--explain"],
        ("classify", "images"): [w.vit, w.images / "rows"],
        ("classify", "images by texts"): [GOLDENS / "vision/clip", w.images / "rows", "--labels", "rows,columns"],
        ("eval", "text"): [w.base, w.text],
        ("eval", "masked"): [classifiers / "masks", w.text],
        ("eval", "pairs"): [w.translator, "--pairs", w.more_pairs],
        ("eval", "labels"): [classifiers / "texts", "--labels", known],
        ("eval", "chats"): [w.llama, w.chats],
        ("eval", "hypotheses"): ["--hypotheses", translated, "--references", reference],
        ("eval", "score"): [w.base, "--score", "the fox"],
        ("eval", "against"): [w.base, w.text, "--against", w.base],
        ("eval", "probe"): [sentences, "--probe", w.labels],
        ("eval", "tasks"): [w.base, "--tasks", tasks],
        ("eval", "retrieval"): [sentences, *retrieval],
        ("eval", "sentences"): [sentences, "--sentences", labelled],
        ("transcribe", "beams"): [w.whisper, w.folder / "0.wav"],
        ("transcribe", "greedy"): [w.whisper, w.folder / "0.wav", "--beams", 1],
        ("rerank", "pairs"): [GOLDENS / "cross_encoder", "--query", "the fox", lines],
        ("tokenize", "encode"): [w.base, lines],
        ("tokenize", "decode"): [w.base, "--decode", w.file("ids.txt", "5 6 7\n")],
        ("tokenize", "train"): ["--train", "bpe", w.text, "--vocab-size", 300, "--out", w.folder / "made"],
        ("trace", "text"): [w.base, "--text", "the fox", "--out", w.folder / "trace.safetensors"],
    }


def verb_values(w):
    """Returns values of the options of other verbs that their kinds do not give."""
    schema = w.file("schema.json", '{"type": "integer"}')
    grammar = w.file("grammar.gbnf", 'root ::= "ab"+')
    return {
        "--file": [w.text], "--prompt": ["a fox"], "--prompts": [w.requests], "--ids": ["5,9,2"], "--image": [w.images / "rows/0.png"], "--frames": [2], "--echo": [],
        "--dtype": ["int8"], "--cache-dtype": ["int8"], "--adapter": [f"{w.adapter}:4"], "--mute": ["0.0"], "--mmproj": [w.text],
        "--prompt-cache": [w.folder / "prompt.cache"], "--stop": ["a"], "--stop-ids": ["70,71,72,73,74,75,76,77,78,79,80,81"], "--ban": ["a"], "--min-tokens": [11], "--predict": [3],
        "--temperature": [3], "--top-k": [2], "--top-p": ["0.2"], "--min-p": ["0.9"], "--typical-p": ["0.1"], "--top-n-sigma": ["0.1"],
        "--xtc-probability": [1], "--xtc-threshold": ["0.01"], "--samplers": ["temperature"], "--mirostat": [2], "--mirostat-tau": ["0.1"], "--seed": [77],
        "--repetition-penalty": [5], "--presence-penalty": [20], "--frequency-penalty": [20], "--no-repeat-ngram": [1], "--dry-multiplier": [9],
        "--dry-base": [9], "--dry-allowed-length": [9], "--dry-penalty-last-n": [1], "--dry-sequence-breaker": ["e"], "--logit-bias": ["70:50"],
        "--speculative-tokens": [4], "--draft": [w.llama], "--draft-tokens": [3], "--generations": [2], "--beams": [2], "--length-penalty": [9], "--beam-groups": [2],
        "--diversity-penalty": [30], "--must": ["cat"], "--logprobs": [2], "--alternatives": [4], "--at": [2], "--json-schema": ['{"type": "integer"}'],
        "--json-schema-file": [schema], "--grammar": ['root ::= "ab"+'], "--grammar-file": [grammar], "--regex": ["[a-c]+"], "--choice": ["cat"],
        "--n-best": [2], "--force-decode": ["fox"], "--terms": [w.file("terms.tsv", "fox\teye\n")], "--source-prefix": ["eye "], "--task": ["translation_en_to_de"],
        "--max-length-factor": ["0.1"], "--max-tokens": [3], "--sequences": [1], "--format": ["json"], "--prompt-name": ["query"], "--dimensions": [2],
        "--normalize": ["false"], "--precision": ["int8"], "--batch-tokens": [8], "--top": [1], "--evaluate": [w.folder / "scored.tsv"], "--pooling": ["all"],
        "--explain": ["eye"], "--train": [w.folder / "related.tsv"], "--validation": [w.folder / "scored.tsv"], "--epochs": [2], "--batch": [2], "--learning-rate": ["0.05"],
        "--kind": ["scores"], "--query-weight": [1], "--document-weight": [1], "--regulariser": ["l1"], "--token-width": [5],
        "--margin": ["0.001"], "--relative-margin": ["0.001"], "--guide": [GOLDENS / "embedder_losses/model"], "--mine": [w.folder / "related.tsv"],
        "--negatives": [1], "--range-min": [1], "--range-max": [3], "--max-score": ["0.5"], "--sampling": ["top"], "--loss": ["ranking"],
        "--warmup": ["0.9"], "--weight-decay": ["0.9"], "--matryoshka": ["4"], "--learn-pooling": ["layers"], "--evaluate-every": [1], "--patience": [1],
        "--moments": ["8bit"], "--freeze": ["*norm*"], "--lora": [2], "--lora-targets": ["query"], "--lora-dropout": ["0.5"], "--lora-base": ["int8"],
        "--method": ["rollout"], "--baseline": ["zero"], "--integration-steps": [3], "--removed-share": ["0.7"], "--random-choices": [3],
        "--input-format": ["pairs"], "--hypothesis": ["Is it {}?"], "--joining": ["first"], "--answer-tokens": [1], "--window": [24], "--overlap": [3],
        "--labels": ["fox,eye"], "--context": ["the fox"], "--question": ["what?"], "--threshold": ["0.9"], "--target": ["1"],
        "--pairs": [w.pairs], "--images": [w.images], "--limit": [1], "--chat-template": [w.template], "--hypotheses": [w.text], "--references": [w.text],
        "--score": ["an eye"], "--candidate": [" sees"], "--against": [w.base], "--probe": [w.labels], "--layer": [0], "--folds": [3], "--cs": ["0.5"],
        "--predictions": [w.folder / "predictions.jsonl"], "--tasks": [w.folder / "tasks.jsonl"], "--shots": [1], "--delimiter": ["x"], "--samples-out": [w.folder / "samples.jsonl"],
        "--language": ["de"], "--samples": [2], "--temperatures": ["0.9"], "--compression-ratio-threshold": ["0.1"], "--logprob-threshold": ["-0.01"],
        "--no-speech-threshold": ["0.01"], "--hotwords": ["fox"], "--suppress-tokens": ["60,61,62"], "--windows": [2], "--rate": [8000], "--channels": [2],
        "--retrieval": [w.folder / "queries.jsonl", w.folder / "corpus.jsonl", w.folder / "qrels.tsv"], "--depth": [3], "--cutoffs": ["1"], "--run-out": [w.folder / "run.txt"],
        "--rerank": [GOLDENS / "cross_encoder"], "--sentences": [w.folder / "other_labelled.tsv"], "--bootstrap": [50], "--bleu-tokenizer": ["char"],
        "--query": ["eye"], "--sts": [w.folder / "scored.tsv"], "--check": [w.text], "--vocab-size": [280], "--min-frequency": [50], "--alphabet": [5], "--special-token": ["<x>"], "--memory": ["1M"],
        "--text": ["an eye"], "--input": [w.text], "--what": ["hidden.*"], "--layers": ["0"], "--patch": [w.text], "--other": ["an eye"], "--circuit": ["0.0"],
        "--steer": [0], "--strength": [9], "--token": [1],
    }
