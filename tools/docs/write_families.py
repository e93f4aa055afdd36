#!/usr/bin/env python3
"""Writes families.md: a row for each family of checkpoints, from the registry, the tables of GGUF's architectures and the lists of the tests.
`write_site.py` calls this script.

Usage: write_families.py FOLDER"""
import argparse
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
FAMILIES, GGUF = ROOT / "src/model/families", ROOT / "src/model/formats/gguf"
OWN_FORMAT = "fovea_format"
BEGIN = """# Families of checkpoints

Each family is read and written in Hugging Face's format, trained as a whole or by adapters of the named layers, and used by every verb that fits
its heads. Its tokenizer is that of the directory, whatever the family: `tokenizer.json` of any kind, a SentencePiece model, `vocab.txt`, or
`vocab.json` with `merges.txt` ([tokenizers.md](tokenizers.md)). [support.md](support.md) describes the features,
[add-a-family.md](add-a-family.md) how a family is added.

| family | kind | heads | GGUF, read and written | layers that adapters may change | tested with |
|---|---|---|---|---|---|
"""
HEADS = {"language_model": "language model", "pooled": "vectors", "sequence": "labels", "token": "labels of tokens", "span": "answers"}


def code(folder):
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.cc")))


def constants(text, kind):
    """The definitions of constants and functions of a type, by their names."""
    found = dict(re.findall(rf"^const {kind} (\w+) =?(.*?);$", text, re.M | re.S))
    functions = re.findall(rf"^{kind} (\w+)\((?:[^;{{]*?)\) \{{\n(.*?)^\}}", text, re.M | re.S)
    return {**dict(functions), **found}


def closure(expression, parts):
    """The text of an expression and of everything that it names."""
    seen, text = set(), expression
    todo = set(re.findall(r"\w+", expression))
    while todo:
        name = todo.pop()
        if name in seen or name not in parts:
            continue
        seen.add(name)
        text += parts[name]
        todo |= set(re.findall(r"\w+", parts[name]))
    return text


def alternatives(pattern):
    """The names that a pattern with groups stands for."""
    group = re.search(r"\{([^{}]*,[^{}]*)\}", pattern)
    if not group:
        return [pattern]
    return [name for item in group[1].split(",") for name in alternatives(pattern.replace(group[0], item, 1))]


def adapted_layers(text):
    """The last names of the layers of attention, recurrences and feed-forward parts."""
    layers = []
    for theirs, ours in re.findall(r'"([^"]+)",\s*(?:[\w.]+ \+\s*)?"([^"]+)"', text):
        if not re.search(r"(attention|cross|ffn|rnn|gru|lstm|latent|delta|state_space|convolution)\.[^\"]*weight", ours) or re.search(r"norm|router|xielu|scale\.", ours):
            continue
        for name in alternatives(theirs):
            layer = re.sub(r"\.(weight|bias)$", "", name).split(".")[-1]
            if name.endswith(("bias", "]", "conv1d.weight", "conv.conv.weight")) or layer in layers or "{" in layer:
                continue
            layers.append(layer)
    return layers


def heads_of(text):
    kinds = re.findall(r"HeadKind::(\w+)", text)
    if re.search(r"ForImageClassification", text):
        kinds.insert(0, "sequence")
    if re.search(r'_architectures\(|language_models\(|ForCausalLM|ForMaskedLM|ForConditionalGeneration|LMHeadModel|MTModel|RNNModel', text):
        kinds.insert(0, "language_model")
    return list(dict.fromkeys(HEADS[kind] for kind in kinds))


def kind_of(text):
    if re.search(r"ForConditionalGeneration|MTModel", text):
        return "encoder-decoder"
    if "RNNModel" in text:
        return "recurrent network"
    if re.search(r"ForImageClassification|Vision", text):
        return "encoder of images"
    return "decoder" if re.search(r'ForCausalLM|LMHeadModel|language_models\(|decoder_architectures\(', text) else "encoder"


def gguf_names():
    names = dict(re.findall(r'const Family (gguf_\w+) =[^;"]*"([\w.-]+)', code(GGUF)))
    names["gguf_gemma_embedding"] = re.search(r'kGemmaEmbedding = "([\w-]+)"', (GGUF / "shared.h").read_text(encoding="utf-8"))[1]
    return [(family, names[architecture]) for architecture, family in re.findall(r"Pair\{&(gguf_\w+), &(\w+)\}", code(GGUF))]


def tests_of():
    """The checkpoints that tests/parity compares, by model_type."""
    found = {}
    for path in sorted(ROOT.glob("tests/goldens/*/config.json")):
        kind = json.loads(path.read_text(encoding="utf-8")).get("model_type")
        found.setdefault(kind, []).append(path.parent.name)
    text = (ROOT / "tests/parity/families_test.cc").read_text(encoding="utf-8")
    for name in re.findall(r'"(?:models\d/)?([\w.-]+)"', text[text.index("kFixtures[]"):text.index("// Returns whether a fixture")]):
        found.setdefault(name, []).append(f"{name} (larger)")
    return found


def page():
    text = code(FAMILIES)
    parts = {name: body for kind in ("Names", "std::vector<Architecture>", "HeadSpec", "Family") for name, body in constants(text, kind).items()}
    definitions = re.findall(r'^const Family (\w+) =\s[^"]*?"([^"]+)"(.*?);$', text, re.M | re.S)
    whole = dict(re.findall(r"^const Family (\w+) =\s(.*?);$", text, re.M | re.S))
    parts = {name: body for name, body in parts.items() if name not in whole}
    gguf, tests, rows = gguf_names(), tests_of(), []
    order = re.findall(r"&(\w+)[,}]", (FAMILIES / "registry.cc").read_text(encoding="utf-8"))
    for identifier, model_type, _ in sorted(definitions, key=lambda one: order.index(one[0])):
        if identifier == OWN_FORMAT:
            continue
        all_of_it = closure(whole[identifier], parts)
        ours = ", ".join(f"`{name}`" for family, name in gguf if family == identifier) or "-"
        layers = ", ".join(f"`{layer}`" for layer in adapted_layers(all_of_it)) or "-"
        tried = tests.get(model_type, []) + [name for name in tests.get(identifier, []) if model_type != identifier]
        rows.append(f"| `{model_type}` | {kind_of(all_of_it)} | {', '.join(heads_of(all_of_it)) or '-'} | {ours} | {layers} | {', '.join(tried) or '-'} |\n")
    return BEGIN + "".join(rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    (parser.parse_args().folder / "families.md").write_text(page(), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
