"""Writes models with random weights for measurements of speed, without numpy: a Llama, a BERT, a Marian and a Whisper with their tokenizers,
and a ViT."""
import itertools
import json
import math
import pathlib
import random
import string
import struct

ROOT = pathlib.Path(__file__).resolve().parents[2]
MODELS = ROOT / ".cache/bench_models"
LLAMA = {"layers": 30, "width": 576, "heads": 9, "kv_heads": 3, "ffn": 1536, "vocabulary": 32000, "context": 16384}
LLAMA_1B = {"layers": 22, "width": 2048, "heads": 32, "kv_heads": 4, "ffn": 5632, "vocabulary": 32000, "context": 32768, "tied": False}
BERT = {"layers": 6, "width": 384, "heads": 12, "ffn": 1536}
VIT = {"layers": 12, "width": 384, "heads": 6, "ffn": 1536, "size": 224, "patch": 16, "labels": 1000}
MARIAN = {"layers": 6, "width": 512, "heads": 8, "ffn": 2048, "vocabulary": 8000}
WHISPERS = {"tiny": {"layers": 4, "width": 384, "heads": 6}, "base": {"layers": 6, "width": 512, "heads": 8}}
WHISPER = {"bins": 80, "positions": 1500, "context": 448, "vocabulary": 51865}  # of both
BLOCK = 65521  # random numbers that are repeated in the weights, on which the speed does not depend; a prime, so that the rows of a matrix differ


def random_block(spread):
    """Returns normally distributed numbers in bf16, the upper half of fp32."""
    generator = random.Random(1)
    return b"".join(struct.pack("<f", generator.gauss(0, spread))[2:] for _ in range(BLOCK))


def write_safetensors(path, shapes):
    """Writes tensors in bf16: random matrices, biases of 0, and other vectors (the gains of norms) of 1."""
    header, offset = {}, 0
    for name, shape in shapes.items():
        size = 2 * math.prod(shape)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [offset, offset + size]}
        offset += size
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    block = random_block(0.02)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for name, shape in shapes.items():
            count = math.prod(shape)
            if len(shape) == 1:
                file.write((b"\0\0" if name.endswith("bias") else b"\x80\x3f") * count)
            else:
                file.write(block * (count // BLOCK) + block[: 2 * (count % BLOCK)])


def make_llama(folder, layers=8, width=512, heads=8, kv_heads=8, ffn=1408, vocabulary=8192, context=2048, tied=True):
    """Writes a Llama; by default, one with 30 million parameters."""
    folder.mkdir(parents=True, exist_ok=True)
    config = {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "hidden_size": width, "num_hidden_layers": layers,
              "num_attention_heads": heads, "num_key_value_heads": kv_heads, "intermediate_size": ffn, "hidden_act": "silu",
              "vocab_size": vocabulary, "max_position_embeddings": context, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "tie_word_embeddings": tied, "bos_token_id": 1, "eos_token_id": 2, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    shapes = {"model.embed_tokens.weight": [vocabulary, width], "model.norm.weight": [width]}
    if not tied:
        shapes["lm_head.weight"] = [vocabulary, width]
    for i in range(layers):
        layer = f"model.layers.{i}"
        for name, outputs in (("q", width), ("k", width // heads * kv_heads), ("v", width // heads * kv_heads), ("o", width)):
            shapes[f"{layer}.self_attn.{name}_proj.weight"] = [outputs, width]
        shapes |= {f"{layer}.mlp.gate_proj.weight": [ffn, width], f"{layer}.mlp.up_proj.weight": [ffn, width],
                   f"{layer}.mlp.down_proj.weight": [width, ffn], f"{layer}.input_layernorm.weight": [width],
                   f"{layer}.post_attention_layernorm.weight": [width]}
    write_safetensors(folder / "model.safetensors", shapes)


def write_words_tokenizer(folder, words, vocabulary):
    """Writes a byte-level BPE for a Llama with three special tokens, its bytes, the words, and strings of up to four letters. Each word after a
    space is one token, and the merges only extend a string that begins with a space."""
    printable = [*range(33, 127), *range(161, 173), *range(174, 256)]
    letters = [chr(byte) for byte in printable] + [chr(256 + i) for i in range(256 - len(printable))]  # GPT-2's names of the bytes
    tokens, merges = dict.fromkeys(["<pad>", "<s>", "</s>", *letters]), []
    fillers = ("".join(each) for length in range(1, 5) for each in itertools.product(string.ascii_lowercase, repeat=length))
    for word in itertools.chain(words, fillers):
        for prefix, letter in zip(itertools.accumulate("\u0120" + word), word):
            if prefix + letter not in tokens and len(tokens) < vocabulary:
                tokens[prefix + letter] = None
                merges.append([prefix, letter])
        if len(tokens) == vocabulary:
            break
    special = [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for i, name in enumerate(["<pad>", "<s>", "</s>"])]
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
                 "pre_tokenizer": byte_level, "post_processor": None, "decoder": byte_level,
                 "model": {"type": "BPE", "vocab": {token: i for i, token in enumerate(tokens)}, "merges": merges}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))


def add_layer(shapes, name, shape):
    """Adds the weight and the bias of a linear layer or a norm."""
    shapes[f"{name}.weight"] = shape
    shapes[f"{name}.bias"] = shape[:1]


def make_bert(folder, layers=6, width=384, heads=12, ffn=1536, words=2000):
    """Writes a model of the size of all-MiniLM-L6-v2 with a smaller vocabulary. Returns words of the vocabulary for texts."""
    folder.mkdir(parents=True, exist_ok=True)
    golden = ROOT / "tests/goldens/sentence_model"
    tokenizer = json.loads((golden / "tokenizer.json").read_text())
    vocabulary = tokenizer["model"]["vocab"]
    texts = [f"w{i}" for i in range(words)]
    for word in texts:
        vocabulary.setdefault(word, len(vocabulary))
    tokenizer["truncation"] = tokenizer["padding"] = None
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    config = json.loads((golden / "config.json").read_text())
    config |= {"hidden_size": width, "num_hidden_layers": layers, "num_attention_heads": heads, "intermediate_size": ffn,
               "max_position_embeddings": 512, "vocab_size": len(vocabulary)}
    (folder / "config.json").write_text(json.dumps(config))
    modules = [{"idx": i, "name": str(i), "path": path, "type": f"sentence_transformers.models.{kind}"}
               for i, (path, kind) in enumerate((("", "Transformer"), ("1_Pooling", "Pooling")))]
    (folder / "modules.json").write_text(json.dumps(modules))
    (folder / "1_Pooling").mkdir(exist_ok=True)
    (folder / "1_Pooling/config.json").write_text(json.dumps({"word_embedding_dimension": width, "pooling_mode_mean_tokens": True}))
    shapes = {"embeddings.word_embeddings.weight": [len(vocabulary), width], "embeddings.position_embeddings.weight": [512, width],
              "embeddings.token_type_embeddings.weight": [2, width]}
    add_layer(shapes, "embeddings.LayerNorm", [width])
    for i in range(layers):
        layer = f"encoder.layer.{i}"
        for name in ("attention.self.query", "attention.self.key", "attention.self.value", "attention.output.dense"):
            add_layer(shapes, f"{layer}.{name}", [width, width])
        add_layer(shapes, f"{layer}.attention.output.LayerNorm", [width])
        add_layer(shapes, f"{layer}.intermediate.dense", [ffn, width])
        add_layer(shapes, f"{layer}.output.dense", [width, ffn])
        add_layer(shapes, f"{layer}.output.LayerNorm", [width])
    add_layer(shapes, "pooler.dense", [width, width])
    write_safetensors(folder / "model.safetensors", shapes)
    return texts


def make_vit(folder, layers, width, heads, ffn, size, patch, labels):
    """Writes a ViT that classifies images; by default of the size S/16."""
    folder.mkdir(parents=True, exist_ok=True)
    names = {str(i): f"label {i}" for i in range(labels)}
    config = {"model_type": "vit", "architectures": ["ViTForImageClassification"], "hidden_size": width, "num_hidden_layers": layers,
              "num_attention_heads": heads, "intermediate_size": ffn, "hidden_act": "gelu", "image_size": size, "patch_size": patch,
              "num_channels": 3, "layer_norm_eps": 1e-12, "qkv_bias": True, "id2label": names, "label2id": {name: int(i) for i, name in names.items()}}
    (folder / "config.json").write_text(json.dumps(config))
    processor = {"image_processor_type": "ViTImageProcessor", "do_resize": True, "size": {"height": size, "width": size}, "resample": 2,
                 "do_rescale": True, "rescale_factor": 1 / 255, "do_normalize": True, "image_mean": [0.5] * 3, "image_std": [0.5] * 3}
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    shapes = {"vit.embeddings.cls_token": [1, 1, width], "vit.embeddings.position_embeddings": [1, (size // patch) ** 2 + 1, width]}
    add_layer(shapes, "vit.embeddings.patch_embeddings.projection", [width, 3, patch, patch])
    for i in range(layers):
        layer = f"vit.encoder.layer.{i}"
        for name in ("attention.attention.query", "attention.attention.key", "attention.attention.value", "attention.output.dense"):
            add_layer(shapes, f"{layer}.{name}", [width, width])
        add_layer(shapes, f"{layer}.intermediate.dense", [ffn, width])
        add_layer(shapes, f"{layer}.output.dense", [width, ffn])
        add_layer(shapes, f"{layer}.layernorm_before", [width])
        add_layer(shapes, f"{layer}.layernorm_after", [width])
    add_layer(shapes, "vit.layernorm", [width])
    add_layer(shapes, "classifier", [labels, width])
    write_safetensors(folder / "model.safetensors", shapes)


def make_marian(folder, layers, width, heads, ffn, vocabulary):
    """Writes a translator whose tokens are the words t1, t2, ... Returns these words."""
    folder.mkdir(parents=True, exist_ok=True)
    end, pad = 0, vocabulary - 1
    words = [f"t{i}" for i in range(1, pad)]
    config = {"model_type": "marian", "architectures": ["MarianMTModel"], "d_model": width, "encoder_layers": layers, "decoder_layers": layers,
              "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": ffn, "decoder_ffn_dim": ffn,
              "vocab_size": vocabulary, "decoder_vocab_size": vocabulary, "max_position_embeddings": 512, "activation_function": "swish",
              "scale_embedding": True, "static_position_embeddings": True, "share_encoder_decoder_embeddings": True,
              "tie_word_embeddings": True, "is_encoder_decoder": True, "pad_token_id": pad, "eos_token_id": end, "bos_token_id": end,
              "decoder_start_token_id": pad, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    special = [{"id": token, "content": text, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
               for token, text in ((end, "</s>"), (pad, "<pad>"))]
    ends = {"type": "TemplateProcessing", "single": [{"Sequence": {"id": "A", "type_id": 0}}, {"SpecialToken": {"id": "</s>", "type_id": 0}}],
            "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 0}}],
            "special_tokens": {"</s>": {"id": "</s>", "ids": [end], "tokens": ["</s>"]}}}
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": special, "normalizer": None,
                 "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": ends, "decoder": None,
                 "model": {"type": "WordLevel", "unk_token": "t1",
                           "vocab": {word: i for i, word in enumerate(["</s>", *words, "<pad>"])}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    shapes = {"model.shared.weight": [vocabulary, width], "final_logits_bias": [1, vocabulary]}
    add_stacks(shapes, layers, width, ffn)
    write_safetensors(folder / "model.safetensors", shapes)
    return words


def add_stacks(shapes, layers, width, ffn, key_bias=True):
    """Adds the layers of an encoder and a decoder with the names of BART's descendants."""
    for side in ("encoder", "decoder"):
        for i in range(layers):
            layer = f"model.{side}.layers.{i}"
            for attention in ("self_attn", "encoder_attn") if side == "decoder" else ("self_attn",):
                for name in ("q_proj", "k_proj", "v_proj", "out_proj"):
                    add_layer(shapes, f"{layer}.{attention}.{name}", [width, width])
                if not key_bias:
                    del shapes[f"{layer}.{attention}.k_proj.bias"]
                add_layer(shapes, f"{layer}.{attention}_layer_norm", [width])
            add_layer(shapes, f"{layer}.fc1", [ffn, width])
            add_layer(shapes, f"{layer}.fc2", [width, ffn])
            add_layer(shapes, f"{layer}.final_layer_norm", [width])


def make_whisper(folder, layers, width, heads):
    """Writes a multilingual speech model of the shape of a published one, whose tokens are the words t0, t1, ..."""
    folder.mkdir(parents=True, exist_ok=True)
    ffn, vocabulary = 4 * width, WHISPER["vocabulary"]
    end, start, english, translate, transcribe, no_times = 50257, 50258, 50259, 50358, 50359, 50363
    config = {"model_type": "whisper", "architectures": ["WhisperForConditionalGeneration"], "d_model": width, "encoder_layers": layers,
              "decoder_layers": layers, "encoder_attention_heads": heads, "decoder_attention_heads": heads, "encoder_ffn_dim": ffn,
              "decoder_ffn_dim": ffn, "vocab_size": vocabulary, "num_mel_bins": WHISPER["bins"], "max_source_positions": WHISPER["positions"],
              "max_target_positions": WHISPER["context"], "activation_function": "gelu", "scale_embedding": False, "is_encoder_decoder": True,
              "pad_token_id": end, "bos_token_id": end, "eos_token_id": end, "decoder_start_token_id": start, "torch_dtype": "bfloat16"}
    (folder / "config.json").write_text(json.dumps(config))
    generation = {"decoder_start_token_id": start, "eos_token_id": end, "no_timestamps_token_id": no_times, "prev_sot_token_id": 50361,
                  "is_multilingual": True, "lang_to_id": {"<|en|>": english}, "task_to_id": {"translate": translate, "transcribe": transcribe}}
    (folder / "generation_config.json").write_text(json.dumps(generation))
    tokenizer = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "normalizer": None,
                 "pre_tokenizer": {"type": "WhitespaceSplit"}, "post_processor": None, "decoder": None,
                 "model": {"type": "WordLevel", "unk_token": "t0", "vocab": {f"t{i}": i for i in range(vocabulary)}}}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer))
    shapes = {"model.encoder.conv1.weight": [width, WHISPER["bins"], 3], "model.encoder.conv1.bias": [width],
              "model.encoder.conv2.weight": [width, width, 3], "model.encoder.conv2.bias": [width],
              "model.encoder.embed_positions.weight": [WHISPER["positions"], width], "model.decoder.embed_tokens.weight": [vocabulary, width],
              "model.decoder.embed_positions.weight": [WHISPER["context"], width]}
    add_stacks(shapes, layers, width, ffn, key_bias=False)
    add_layer(shapes, "model.encoder.layer_norm", [width])
    add_layer(shapes, "model.decoder.layer_norm", [width])
    write_safetensors(folder / "model.safetensors", shapes)


def make_lines(path, words, lines, least, most):
    """Writes lines of `least` to `most` random words."""
    generator = random.Random(2)
    texts = (" ".join(generator.choices(words, k=generator.randint(least, most))) for _ in range(lines))
    path.write_text("".join(text + "\n" for text in texts))
