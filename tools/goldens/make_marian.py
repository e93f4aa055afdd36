#!/usr/bin/env python3
"""Writes tests/goldens/marian: checkpoints as Marian's training writes them, with random weights: post_norm has a vocabulary in YAML and the
SentencePiece models of both sides; pre_norm has one SentencePiece model for both, and the norms before the sublayers. The names of the
tensors and their layouts are those of the converter convert_marian_to_pytorch of transformers 4; the beams are those of the same weights
in MarianMTModel and, for pre_norm, in the model of transformers with this placement of norms, PEGASUS. Needs torch, transformers and
sentencepiece."""
import io
import json
import shutil

from harness import GOLDENS, one_thread, quiet, shaken, write_json
import numpy
import sentencepiece
import torch
import transformers

quiet()
one_thread()
FOLDER = GOLDENS / "marian"
TOKENIZERS = GOLDENS / "translation_tokenizers"
TEXTS = ["das Meer", "Wind und Sonne", "die Straße am Dorf und am Meer"]
SIZES = dict(d_model=8, encoder_layers=2, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=12,
             decoder_ffn_dim=12, max_position_embeddings=512, dropout=0.0, scale_embedding=True, eos_token_id=0, forced_eos_token_id=None)


def marian_arrays(model, pre):
    """The arrays of Marian, without the row of padding."""
    state = {name: value.float().numpy() for name, value in model.state_dict().items()}
    arrays = {"Wemb": state["model.shared.weight"][:-1], "decoder_ff_logit_out_b": state["final_logits_bias"][:, :-1]}
    norm = "_pre" if pre else ""

    def put_norm(theirs, ours, when):
        arrays[f"{theirs}_scale{when}"], arrays[f"{theirs}_bias{when}"] = state[f"{ours}.weight"][None], state[f"{ours}.bias"][None]

    for stack, layers in (("encoder", SIZES["encoder_layers"]), ("decoder", SIZES["decoder_layers"])):
        for i in range(layers):
            theirs, ours = f"{stack}_l{i + 1}_", f"model.{stack}.layers.{i}."
            blocks = [("self", "self_attn")] + [("context", "encoder_attn")] * (stack == "decoder")
            for block, name in blocks:
                for letter, projection in (("q", "q"), ("k", "k"), ("v", "v"), ("o", "out")):
                    arrays[f"{theirs}{block}_W{letter}"] = state[f"{ours}{name}.{projection}_proj.weight"].T
                    arrays[f"{theirs}{block}_b{letter}"] = state[f"{ours}{name}.{projection}_proj.bias"][None]
                put_norm(f"{theirs}{block}_Wo_ln", f"{ours}{name}_layer_norm", norm)
            for number in "12":
                arrays[f"{theirs}ffn_W{number}"] = state[f"{ours}fc{number}.weight"].T
                arrays[f"{theirs}ffn_b{number}"] = state[f"{ours}fc{number}.bias"][None]
            put_norm(f"{theirs}ffn_ffn_ln", f"{ours}final_layer_norm", norm)
        if pre:
            put_norm(f"{stack}_top_ln", f"model.{stack}.layer_norm", "")
    return arrays


def write(folder, model, pre, activation):
    options = {"type": "transformer", "dim-vocabs": None, "dim-emb": SIZES["d_model"], "enc-depth": SIZES["encoder_layers"],
               "dec-depth": SIZES["decoder_layers"], "transformer-heads": 2, "transformer-dim-ffn": 12, "transformer-ffn-depth": 2,
               "transformer-ffn-activation": activation, "transformer-preprocess": '"n"' if pre else '""',
               "transformer-postprocess": "da" if pre else "dan", "transformer-postprocess-emb": "d",
               "transformer-postprocess-top": "n" if pre else '""', "transformer-decoder-autoreg": "self-attention",
               "transformer-no-projection": "false", "transformer-tied-layers": "\n  []", "tied-embeddings-all": "true", "ulr": "false",
               "version": "v1.12.0"}
    vocabulary = model.config.vocab_size - 1
    options["dim-vocabs"] = f"\n  - {vocabulary}\n  - {vocabulary}"
    yaml = "".join(f"{key}:{'' if str(value).startswith(chr(10)) else ' '}{value}\n" for key, value in options.items())
    arrays = {name: numpy.ascontiguousarray(value) for name, value in marian_arrays(model, pre).items()}
    arrays["special:model.yml"] = numpy.frombuffer(yaml.encode() + b"\0", dtype=numpy.int8)
    numpy.savez(folder / "model.npz", **arrays)


def settle(model, padding):
    """Gives the model large weights, except the sinusoids, and no vector of padding."""
    sinusoids = [stack.embed_positions.weight.detach().clone() for stack in (model.model.encoder, model.model.decoder)]
    shaken(model, 0.5)
    with torch.no_grad():
        for stack, values in zip((model.model.encoder, model.model.decoder), sinusoids):
            stack.embed_positions.weight.copy_(values)
        model.model.shared.weight[padding] = 0
        model.final_logits_bias.normal_(0, 0.5)
        model.final_logits_bias[0, padding] = 0
    return model.eval()


def beams(model, ids):
    padding = model.config.pad_token_id
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), num_beams=4, num_return_sequences=3, max_new_tokens=12, min_new_tokens=2,
                             bad_words_ids=[[padding]], return_dict_in_generate=True, output_scores=True)
    found = []
    for row, score in zip(out.sequences.tolist(), out.sequences_scores):
        row = row[1:]
        while row and row[-1] in (0, padding):
            row.pop()
        found.append({"ids": row, "score": float(score)})
    return found


def post_norm():
    folder = FOLDER / "post_norm"
    folder.mkdir(parents=True)
    for name in ("source.spm", "target.spm"):
        shutil.copy(TOKENIZERS / name, folder)
    vocabulary = json.loads((TOKENIZERS / "vocab.json").read_text())
    padding = vocabulary.pop("<pad>")
    assert padding == len(vocabulary)
    lines = [f"{json.dumps(text)}: {i}\n" if i % 2 or "'" in text else f"'{text}': {i}\n" for text, i in vocabulary.items()]
    lines[0] = f"{next(iter(vocabulary))}: {next(iter(vocabulary.values()))}\n"
    (folder / "opus.vocab.yml").write_text("".join(lines))
    torch.manual_seed(1)
    model = settle(transformers.MarianMTModel(transformers.MarianConfig(
        vocab_size=padding + 1, pad_token_id=padding, decoder_start_token_id=padding, activation_function="swish", **SIZES)), padding)
    write(folder, model, False, "swish")
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "source.spm"))
    unknown = vocabulary["<unk>"]
    return [{"text": text, "ids": ids, "best": beams(model, ids)}
            for text in TEXTS for ids in [[vocabulary.get(piece, unknown) for piece in pieces.encode(text, out_type=str)] + [0]]]


def pre_norm():
    folder = FOLDER / "pre_norm"
    folder.mkdir(parents=True)
    model_bytes = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(TEXTS * 4), model_writer=model_bytes, model_type="unigram", vocab_size=40,
                                             hard_vocab_limit=False, normalization_rule_name="identity", minloglevel=2, bos_id=-1, eos_id=0,
                                             unk_id=1)
    (folder / "vocab.deen.spm").write_bytes(model_bytes.getvalue())
    pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "vocab.deen.spm"))
    padding = pieces.get_piece_size()
    torch.manual_seed(2)
    model = settle(transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(
        vocab_size=padding + 1, pad_token_id=padding, decoder_start_token_id=padding, activation_function="relu", **SIZES)), padding)
    write(folder, model, True, "relu")
    return [{"text": text, "ids": ids, "best": beams(model, ids)} for text in TEXTS for ids in [pieces.encode(text) + [0]]]


if __name__ == "__main__":
    shutil.rmtree(FOLDER, ignore_errors=True)
    for name, make in (("post_norm", post_norm), ("pre_norm", pre_norm)):
        write_json(FOLDER / name / "expected.json", make())
