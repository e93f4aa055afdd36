#!/usr/bin/env python3
"""Writes tests/goldens/gguf_encoders: tiny text encoders with random weights as .gguf files of llama.cpp's own converter, and what is computed
with them: `llama.cpp` has its vectors of texts, and its scores of texts for the first one; `transformers` has vectors by its models.

Usage: make_gguf_encoders.py CONVERTER [--directories FOLDER]. CONVERTER is convert_hf_to_gguf.py of llama.cpp. Needs torch, transformers
(made with 5.24), sentencepiece, gguf and xllamacpp (made with 2026.10). The directories that were converted stay in FOLDER, for
tools/compare/compare_gguf_encoders.py. llama.cpp looks up GELU and SiLU in tables of half precision, and approximates the exact GELU, so that
its vectors differ by about 1e-3. Files of T5 by its converter do not say that their attention is not causal, so that llama.cpp gives them others."""
import argparse
import json
import pathlib
import runpy
import shutil
import sys
import tempfile

from harness import GOLDENS, byte_characters, one_thread, report, rounded, shaken, word_pieces, write_json
from llama_cpp import scores, vectors
import sentencepiece
from sentencepiece.sentencepiece_model_pb2 import ModelProto
import torch
from safetensors.torch import load_file, save_file
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (AutoTokenizer, BertConfig, BertModel, Gemma3TextConfig, Gemma3TextModel, ModernBertConfig, ModernBertModel, PreTrainedTokenizerFast,
                          RobertaConfig, RobertaModel, T5Config, T5EncoderModel, XLMRobertaConfig, XLMRobertaForSequenceClassification, XLMRobertaModel)

FOLDER = GOLDENS / "gguf_encoders"
WORDS = "a the fox eye light bird see hear sleep ##s ##ing fall on in night day and never always ? , cafe".split()
TEXTS = ["the fox sees the bird", "A BIRD hears,", "light falls on the eye", "night", "Café?",
         "the fox and the bird and the eye and the light never sleep in the night, and the day falls"]
C, INNER = 16, 24
SIZES = {"hidden_size": C, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": INNER}


def words():
    return PreTrainedTokenizerFast(tokenizer_object=word_pieces(WORDS), pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                                   mask_token="[MASK]", model_max_length=128)


def byte_pairs(specials, **roles):
    """Returns a tokenizer of bytes and some pairs; `specials` are the tokens before the bytes, of which the first and third surround a text."""
    vocabulary = {token: i for i, token in enumerate([*specials, *byte_characters().values()])}
    merges = [("t", "h"), ("th", "e"), ("Ġ", "the"), ("Ġ", "a"), ("e", "y"), ("ey", "e"), ("i", "n")]
    for a, b in merges:
        vocabulary[a + b] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in specials])
    begin, end = specials[0], specials[2]
    tokenizer.post_processor = processors.RobertaProcessing((end, 2), (begin, 0), add_prefix_space=False) if begin == "<s>" else (
        processors.TemplateProcessing(single=f"{begin} $A {end}", pair=f"{begin} $A {end} $B {end}", special_tokens=[(begin, 0), (end, 2)]))
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, model_max_length=128, **roles)


def charsmap(path):
    """Returns the compiled rules of a SentencePiece model."""
    proto = ModelProto()
    proto.ParseFromString(path.read_bytes())
    return proto.normalizer_spec.precompiled_charsmap


def pieces(folder, name, **options):
    """Trains a unigram model of SentencePiece on the texts and returns its number of tokens."""
    text, rules = folder / "text.txt", folder / "rules.tsv"
    text.write_text("\n".join(TEXTS * 20))
    # A small map of characters: that of published files has 240 KB.
    rules.write_text("".join(f"{ord(a):X}\t{ord(b):X}\n" for a, b in [*zip("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz"), ("é", "e")]))
    sentencepiece.SentencePieceTrainer.train(input=str(text), model_prefix=str(folder / "pieces"), vocab_size=48, hard_vocab_limit=False,
                                             minloglevel=2, num_threads=1, normalization_rule_tsv=str(rules), **options)
    text.unlink()
    rules.unlink()
    (folder / "pieces.vocab").unlink()
    (folder / "pieces.model").rename(folder / name)
    return sentencepiece.SentencePieceProcessor(str(folder / name)).vocab_size()


def xlm_roberta_tokenizer(folder):
    """Writes the files of a tokenizer of XLM-RoBERTa, which has four special tokens instead of the first three pieces; returns its size."""
    pieces(folder, "sentencepiece.bpe.model", bos_id=1, eos_id=2, unk_id=0)
    source = sentencepiece.SentencePieceProcessor(str(folder / "sentencepiece.bpe.model"))
    parts = [(token, 0.0) for token in ("<s>", "<pad>", "</s>", "<unk>")] + [(source.id_to_piece(i), source.get_score(i)) for i in range(3, len(source))]
    tokenizer = Tokenizer(models.Unigram([*parts, ("<mask>", 0.0)], 3))
    tokenizer.normalizer = normalizers.Precompiled(charsmap(folder / "sentencepiece.bpe.model"))
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()])
    tokenizer.decoder = decoders.Metaspace()
    tokenizer.add_special_tokens([AddedToken(token, special=True) for token in ("<s>", "<pad>", "</s>", "<unk>", "<mask>")])
    tokenizer.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    tokenizer.save(str(folder / "tokenizer.json"))
    roles = {"bos_token": "<s>", "eos_token": "</s>", "sep_token": "</s>", "cls_token": "<s>", "unk_token": "<unk>", "pad_token": "<pad>",
             "mask_token": "<mask>"}
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "XLMRobertaTokenizer", "model_max_length": 128} | roles)
    return tokenizer.get_vocab_size()


def save(folder, model, tokenizer=None):
    shaken(model, 0.15, seed=5).eval().save_pretrained(folder)
    if tokenizer is not None:
        tokenizer.save_pretrained(folder)


def modules(folder, mode, *kinds):
    """Writes the modules of sentence-transformers: a Pooling, and `kinds`."""
    kinds = ["Transformer", "Pooling", *kinds]
    listed = [{"idx": i, "name": str(i), "path": f"{i}_{kind}" * (i > 0), "type": f"sentence_transformers.models.{kind}"} for i, kind in enumerate(kinds)]
    write_json(folder / "modules.json", listed)
    (folder / "1_Pooling").mkdir()
    write_json(folder / "1_Pooling/config.json", {"word_embedding_dimension": C, "pooling_mode_mean_tokens": mode == "mean",
                                                   "pooling_mode_cls_token": mode == "cls", "pooling_mode_lasttoken": mode == "lasttoken"})


def bert(folder):
    save(folder, BertModel(BertConfig(**SIZES, vocab_size=len(WORDS) + 5, max_position_embeddings=128)), words())
    modules(folder, "mean", "Normalize")


def roberta(folder):
    tokenizer = byte_pairs(["<s>", "<pad>", "</s>", "<unk>", "<mask>"], bos_token="<s>", cls_token="<s>", eos_token="</s>", sep_token="</s>",
                           unk_token="<unk>", pad_token="<pad>", mask_token="<mask>")
    save(folder, RobertaModel(RobertaConfig(**SIZES, vocab_size=len(tokenizer), max_position_embeddings=130, type_vocab_size=1, layer_norm_eps=1e-5)),
         tokenizer)
    modules(folder, "cls", "Normalize")


def of_xlm_roberta(folder, kind, **more):
    count = xlm_roberta_tokenizer(folder)
    save(folder, kind(XLMRobertaConfig(**SIZES, vocab_size=count, max_position_embeddings=130, type_vocab_size=1, layer_norm_eps=1e-5, **more)))


def xlm_roberta(folder):
    of_xlm_roberta(folder, XLMRobertaModel)
    modules(folder, "mean", "Normalize")


def xlm_roberta_reranker(folder):
    of_xlm_roberta(folder, XLMRobertaForSequenceClassification, num_labels=1, id2label={0: "LABEL_0"}, label2id={"LABEL_0": 0})


def modernbert(folder):
    tokenizer = byte_pairs(["[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]"], cls_token="[CLS]", sep_token="[SEP]", unk_token="[UNK]", pad_token="[PAD]",
                           mask_token="[MASK]")
    config = ModernBertConfig(**{**SIZES, "num_hidden_layers": 4}, vocab_size=len(tokenizer), max_position_embeddings=128, local_attention=8, pad_token_id=1,
                              bos_token_id=0, eos_token_id=2, cls_token_id=0, sep_token_id=2)
    save(folder, ModernBertModel(config), tokenizer)
    path = folder / "config.json"  # published files have the key that the converter reads
    write_json(path, json.loads(path.read_text()) | {"layer_norm_eps": 1e-5})
    modules(folder, "cls", "Normalize")


def nomic_weights(config, layers):
    """Returns random weights of a model of Nomic's own code; `layers` returns the shapes of a layer's feed-forward part."""
    found = {}
    for i in range(config["n_layer"]):
        shapes = {"attn.Wqkv.weight": (3 * C, C), "attn.out_proj.weight": (C, C), **layers(i)}
        if config["qkv_proj_bias"]:
            shapes |= {"attn.Wqkv.bias": (3 * C,), "attn.out_proj.bias": (C,)}
        found |= {f"encoder.layers.{i}.{name}": torch.randn(shape) * 0.3 for name, shape in shapes.items()}
    found |= {"embeddings.word_embeddings.weight": torch.randn(config["vocab_size"], C)}
    found |= {"embeddings.token_type_embeddings.weight": torch.randn(config["type_vocab_size"], C)}
    for name in ["emb_ln", *(f"encoder.layers.{i}.norm{n}" for i in range(config["n_layer"]) for n in (1, 2))]:
        found |= {f"{name}.weight": 1 + torch.randn(C) * 0.2, f"{name}.bias": torch.randn(C) * 0.2}
    return found


# The keys of Nomic's own code, and those of transformers, which the converter reads first.
NOMIC = {**SIZES, "head_dim": 8, "architectures": ["NomicBertModel"], "model_type": "nomic_bert", "n_embd": C, "n_head": 2, "n_layer": 2, "n_inner": INNER, "causal": False, "prenorm": False,
         "parallel_block": False, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False, "rotary_emb_scale_base": None, "scale_attn_weights": True,
         "layer_norm_epsilon": 1e-12, "resid_pdrop": 0.0, "attn_pdrop": 0.0, "embd_pdrop": 0.0, "max_trained_positions": 2048}


def nomic_bert(folder):
    torch.manual_seed(6)
    config = NOMIC | {"vocab_size": len(WORDS) + 5, "n_positions": 8192, "type_vocab_size": 2, "activation_function": "swiglu", "rotary_emb_base": 1000,
                      "qkv_proj_bias": False, "mlp_fc1_bias": False, "mlp_fc2_bias": False, "pad_token_id": 0}
    weights = nomic_weights(config, lambda i: {"mlp.fc11.weight": (INNER, C), "mlp.fc12.weight": (INNER, C), "mlp.fc2.weight": (C, INNER)})
    words().save_pretrained(folder)
    write_json(folder / "config.json", config)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    modules(folder, "mean", "Normalize")


def nomic_bert_moe(folder):
    torch.manual_seed(7)
    config = NOMIC | {"vocab_size": len(WORDS) + 5, "n_positions": 2048, "type_vocab_size": 1, "activation_function": "gelu", "rotary_emb_base": 10000, "n_layer": 4, "num_hidden_layers": 4,
                      "qkv_proj_bias": True, "mlp_fc1_bias": True, "mlp_fc2_bias": True, "pad_token_id": 0, "moe_every_n_layers": 2, "num_experts": 3,
                      "moe_top_k": 2, "moe_normalize_expert_weights": False, "num_shared_experts": 0, "expert_choice_router": False, "ffn_div": 1.0,
                      "layer_norm_epsilon": 1e-5}
    dense = {"mlp.fc1.weight": (INNER, C), "mlp.fc1.bias": (INNER,), "mlp.fc2.weight": (C, INNER), "mlp.fc2.bias": (C,)}
    experts = {"mlp.router.layer.weight": (3, C), "mlp.experts.mlp.w1": (3 * INNER, C), "mlp.experts.mlp.w2": (3 * INNER, C), "mlp.experts.bias": (C,)}
    weights = nomic_weights(config, lambda i: experts if i % 2 else dense)
    for name in weights:
        if name.endswith("experts.bias"):  # llama.cpp has no such bias
            weights[name].zero_()
    words().save_pretrained(folder)
    write_json(folder / "config.json", config)
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    modules(folder, "mean", "Normalize")


def jina_bert_v3(folder):
    torch.manual_seed(8)
    count = xlm_roberta_tokenizer(folder)
    weights = {"roberta.embeddings.word_embeddings.weight": torch.randn(count, C), "roberta.embeddings.token_type_embeddings.weight": torch.randn(1, C)}
    for i in range(2):
        for name, shape in {"mixer.Wqkv": (3 * C, C), "mixer.out_proj": (C, C), "mlp.fc1": (INNER, C), "mlp.fc2": (C, INNER)}.items():
            layer = f"roberta.encoder.layers.{i}.{name}"
            weights |= {f"{layer}.weight": torch.randn(shape) * 0.3, f"{layer}.bias": torch.randn(shape[0]) * 0.2}
    for name in ["emb_ln", *(f"encoder.layers.{i}.norm{n}" for i in range(2) for n in (1, 2))]:
        weights |= {f"roberta.{name}.weight": 1 + torch.randn(C) * 0.2, f"roberta.{name}.bias": torch.randn(C) * 0.2}
    save_file(weights, folder / "model.safetensors", {"format": "pt"})
    # The converter chooses this architecture for files that name adapters; there is none here.
    write_json(folder / "config.json", {**SIZES, "architectures": ["XLMRobertaModel"], "model_type": "xlm-roberta", "vocab_size": count,
                                        "max_position_embeddings": 130, "type_vocab_size": 1, "layer_norm_eps": 1e-5, "rotary_emb_base": 20000.0, "rope_theta": 20000.0,
                                        "pad_token_id": 1, "bos_token_id": 0, "eos_token_id": 2, "lora_adaptations": ["none"]})
    modules(folder, "mean", "Normalize")


def gemma_embedding(folder):
    tokenizer = byte_pairs(["<bos>", "<pad>", "<eos>", "<unk>"], bos_token="<bos>", eos_token="<eos>", unk_token="<unk>", pad_token="<pad>")
    config = Gemma3TextConfig(hidden_size=C, intermediate_size=INNER, num_attention_heads=2, num_key_value_heads=1, head_dim=8, vocab_size=len(tokenizer),
                              num_hidden_layers=7, max_position_embeddings=128, sliding_window=8, query_pre_attn_scalar=8, use_bidirectional_attention=True,
                              pad_token_id=1, bos_token_id=0, eos_token_id=2)
    save(folder, Gemma3TextModel(config), tokenizer)
    path = folder / "config.json"  # the class stores the window of one direction, the published file that of both
    write_json(path, json.loads(path.read_text()) | {"sliding_window": 8})
    modules(folder, "mean", "Dense", "Dense", "Normalize")
    torch.manual_seed(9)
    for name, (rows, columns) in {"2_Dense": (20, C), "3_Dense": (C, 20)}.items():
        (folder / name).mkdir()
        write_json(folder / name / "config.json", {"in_features": columns, "out_features": rows, "bias": False,
                                                   "activation_function": "torch.nn.modules.linear.Identity"})
        save_file({"linear.weight": torch.randn(rows, columns) * 0.3}, folder / name / "model.safetensors")


def t5_encoder(folder):
    count = pieces(folder, "spiece.model", pad_id=0, eos_id=1, unk_id=2, bos_id=-1)
    save(folder, T5EncoderModel(T5Config(vocab_size=count, d_model=C, d_kv=8, d_ff=INNER, num_layers=2, num_heads=2, feed_forward_proj="gated-gelu",
                                         relative_attention_num_buckets=8, pad_token_id=0, dropout_rate=0.0)))
    write_json(folder / "tokenizer_config.json", {"tokenizer_class": "T5Tokenizer", "extra_ids": 0, "eos_token": "</s>", "unk_token": "<unk>", "pad_token": "<pad>"})
    modules(folder, "mean", "Normalize")


def qwen3_reranker(folder):
    shutil.copytree(GOLDENS / "embedders/qwen3_reranker", folder, dirs_exist_ok=True)


MODELS = (bert, roberta, xlm_roberta, xlm_roberta_reranker, nomic_bert, nomic_bert_moe, modernbert, gemma_embedding, t5_encoder, jina_bert_v3, qwen3_reranker)
CLASSES = {bert: BertModel, roberta: RobertaModel, xlm_roberta: XLMRobertaModel, modernbert: ModernBertModel, gemma_embedding: Gemma3TextModel,
           t5_encoder: T5EncoderModel}
# The converter knows tokenizers by hashes of some ids, which tiny ones do not have.
SPLITS = {"bert": "jina-v2-en", "nomic_bert": "jina-v2-en", "nomic_bert_moe": "jina-v2-en", "roberta": "roberta-bpe", "modernbert": "modern-bert",
          "gemma_embedding": "gpt-2", "qwen3-reranker": "gpt-2"}


def convert(converter, folder, path):
    sys.path.insert(0, str(converter.parent))
    from conversion import base  # of llama.cpp
    base.TextModel.get_vocab_base_pre = lambda self, tokenizer: SPLITS[folder.name]
    sys.argv = [str(converter), str(folder), "--outtype", "f32", "--outfile", str(path), "--sentence-transformers-dense-modules"]
    runpy.run_path(str(converter), run_name="__main__")


def token_ids(folder, text):
    """Returns the ids of a text by the library of the tokenizer."""
    if (folder / "spiece.model").exists():
        return [*sentencepiece.SentencePieceProcessor(str(folder / "spiece.model")).encode(text), 1]
    if (folder / "sentencepiece.bpe.model").exists():  # one more token before the pieces
        ids = sentencepiece.SentencePieceProcessor(str(folder / "sentencepiece.bpe.model")).encode(text)
        return [0, *(3 if id == 0 else id + 1 for id in ids), 2]
    return AutoTokenizer.from_pretrained(folder)(text).input_ids


def by_transformers(folder, kind):
    """Returns vectors of length 1 by a class of transformers."""
    model, found = kind.from_pretrained(folder).eval(), []
    first = json.loads((folder / "1_Pooling/config.json").read_text())["pooling_mode_cls_token"]
    for text in TEXTS:
        with torch.no_grad():
            states = model(torch.tensor([token_ids(folder, text)])).last_hidden_state[0]
        vector = states[0] if first else states.mean(0)
        for name in ("2_Dense", "3_Dense"):
            if (folder / name).exists() and "linear.weight" in (weights := load_file(folder / name / "model.safetensors")):
                vector = weights["linear.weight"] @ vector
        found.append(rounded(vector / vector.norm()))
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("converter", type=pathlib.Path)
    parser.add_argument("--directories", type=pathlib.Path)
    options = parser.parse_args()
    one_thread()
    FOLDER.mkdir(exist_ok=True)
    expected = {"texts": TEXTS, "llama.cpp": {}, "transformers": {}}
    with tempfile.TemporaryDirectory() as temporary:
        parent = options.directories or pathlib.Path(temporary)
        for make in MODELS:
            # The converter recognises the rerankers of Qwen 3 by the name of the directory.
            folder, path = parent / make.__name__.replace("qwen3_", "qwen3-"), FOLDER / f"{make.__name__}.gguf"
            shutil.rmtree(folder, ignore_errors=True)
            folder.mkdir(parents=True)
            torch.manual_seed(3)
            make(folder)
            convert(options.converter.resolve(), folder, path)
            (FOLDER / f"lora-none-{path.name}").unlink(missing_ok=True)  # of jina_bert_v3
            if make.__name__.endswith("reranker"):
                expected["llama.cpp"][make.__name__] = scores(path, TEXTS)
            elif make is not t5_encoder:
                expected["llama.cpp"][make.__name__] = vectors(path, TEXTS)
            if make in CLASSES:
                expected["transformers"][make.__name__] = by_transformers(folder, CLASSES[make])
    write_json(FOLDER / "expected.json", expected)
    report(FOLDER)


if __name__ == "__main__":
    main()
