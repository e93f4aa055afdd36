#!/usr/bin/env python3
"""Opens with transformers the directories that fovea writes, for small models of all families: converted, by way of a .gguf file, fine-tuned
and merged with an adapter. transformers must take each config.json and each tensor, and compute the logits of `fovea trace`.

Usage: compare_written_directories.py [--fovea PROGRAM] [FAMILY...]. Prints a line per family; exit code 1 if there is a difference."""
import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program, quiet, shaken  # noqa: E402
import torch  # noqa: E402
import transformers  # noqa: E402
from safetensors.torch import load_file, save_file  # noqa: E402
from transformers import AutoConfig  # noqa: E402
from transformers.models.auto.configuration_auto import CONFIG_MAPPING  # noqa: E402

TOLERANCE = 2e-5  # relative to the largest logit
WORDS = "the a fox bird eye sun light night sees sings is old calm of and .".split()
SPECIAL = ["[PAD]", "[UNK]", "</s>", "<s>", "[MASK]", "[CLS]", "[SEP]"]
SIZE = 64
DECODER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
           "max_position_embeddings": 64}
ENCODER = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "max_position_embeddings": 64}
BOTH = {"d_model": 32, "encoder_layers": 2, "decoder_layers": 2, "encoder_attention_heads": 4, "decoder_attention_heads": 4,
        "encoder_ffn_dim": 48, "decoder_ffn_dim": 48, "max_position_embeddings": 64}
IMAGES = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4, "image_size": 16, "patch_size": 8}
LOCAL = {"sliding_window": 5, "layer_types": ["sliding_attention", "full_attention"]}
LATENT = {"num_key_value_heads": 4, "kv_lora_rank": 16, "q_lora_rank": 12, "qk_rope_head_dim": 8, "qk_nope_head_dim": 12, "v_head_dim": 10,
          "n_routed_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32, "first_k_dense_replace": 1, "n_group": 2, "topk_group": 1}
GRANITE = {"embedding_multiplier": 3.0, "attention_multiplier": 0.3, "residual_multiplier": 0.6, "logits_scaling": 6.0}
# The class and the sizes of each family; the others are the defaults of its class.
FAMILIES = {
    "gpt2": ("GPT2LMHeadModel", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "llama": ("LlamaForCausalLM", DECODER), "mistral": ("MistralForCausalLM", DECODER),
    "mixtral": ("MixtralForCausalLM", {**DECODER, "num_local_experts": 4}),
    "qwen2": ("Qwen2ForCausalLM", DECODER), "qwen3": ("Qwen3ForCausalLM", {**DECODER, "head_dim": 16}),
    "qwen3_moe": ("Qwen3MoeForCausalLM", {**DECODER, "head_dim": 16, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32}),
    "gemma2": ("Gemma2ForCausalLM", {**DECODER, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}),
    "gemma3_text": ("Gemma3ForCausalLM", {**DECODER, "head_dim": 16, "query_pre_attn_scalar": 16, "sliding_window": 8}),
    "phi3": ("Phi3ForCausalLM", {**DECODER, "original_max_position_embeddings": 64}), "olmo2": ("Olmo2ForCausalLM", DECODER),
    "starcoder2": ("Starcoder2ForCausalLM", DECODER),
    "gemma": ("GemmaForCausalLM", {**DECODER, "head_dim": 16}), "phi": ("PhiForCausalLM", DECODER),
    "cohere": ("CohereForCausalLM", DECODER), "cohere2": ("Cohere2ForCausalLM", {**DECODER, **LOCAL}),
    "granite": ("GraniteForCausalLM", {**DECODER, **GRANITE}), "granitemoe": ("GraniteMoeForCausalLM", {**DECODER, **GRANITE, "num_local_experts": 4}),
    "granitemoeshared": ("GraniteMoeSharedForCausalLM", {**DECODER, **GRANITE, "num_local_experts": 4, "shared_intermediate_size": 24}),
    "glm": ("GlmForCausalLM", {**DECODER, "head_dim": 16}), "glm4": ("Glm4ForCausalLM", {**DECODER, "head_dim": 16}),
    "smollm3": ("SmolLM3ForCausalLM", {**DECODER, "no_rope_layer_interval": 2}), "olmo3": ("Olmo3ForCausalLM", {**DECODER, **LOCAL}),
    "olmoe": ("OlmoeForCausalLM", {**DECODER, "num_experts": 4, "num_experts_per_tok": 2}),
    "qwen2_moe": ("Qwen2MoeForCausalLM", {**DECODER, "num_experts": 4, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                                          "shared_expert_intermediate_size": 24}),
    "ernie4_5": ("Ernie4_5ForCausalLM", {**DECODER, "head_dim": 16}),
    "ernie4_5_moe": ("Ernie4_5_MoeForCausalLM", {**DECODER, "moe_num_experts": 4, "moe_k": 2, "moe_intermediate_size": 32}),
    "exaone4": ("Exaone4ForCausalLM", {**DECODER, **LOCAL}), "stablelm": ("StableLmForCausalLM", {**DECODER, "partial_rotary_factor": 0.5}),
    "falcon": ("FalconForCausalLM", {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "ffn_hidden_size": 48,
                                     "max_position_embeddings": 64}),
    "gpt_bigcode": ("GPTBigCodeForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64}),
    "gptj": ("GPTJForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "rotary_dim": 4}),
    "codegen": ("CodeGenForCausalLM", {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 64, "n_ctx": 64, "rotary_dim": 4}),
    "gpt_neo": ("GPTNeoForCausalLM", {"hidden_size": 32, "num_layers": 2, "num_heads": 4, "max_position_embeddings": 64, "window_size": 5,
                                      "attention_types": [[["global", "local"], 1]]}),
    "mpt": ("MptForCausalLM", {"d_model": 32, "n_layers": 2, "n_heads": 4, "max_seq_len": 64}),
    "seed_oss": ("SeedOssForCausalLM", {**DECODER, "head_dim": 16}), "arcee": ("ArceeForCausalLM", DECODER),
    "helium": ("HeliumForCausalLM", {**DECODER, "head_dim": 8}), "nemotron": ("NemotronForCausalLM", DECODER),
    "ministral": ("MinistralForCausalLM", {**DECODER, **LOCAL}),
    "ministral3": ("Ministral3ForCausalLM", {**DECODER, "head_dim": 16, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 16.0, "original_max_position_embeddings": 4, "beta_fast": 32.0, "beta_slow": 1.0,
        "mscale": 1.0, "mscale_all_dim": 1.0, "llama_4_scaling_beta": 0.1}}),
    "hunyuan_v1_dense": ("HunYuanDenseV1ForCausalLM", {**DECODER, "head_dim": 16}), "nanochat": ("NanoChatForCausalLM", DECODER),
    "dots1": ("Dots1ForCausalLM", {**DECODER, "n_routed_experts": 4, "n_shared_experts": 1, "num_experts_per_tok": 2, "moe_intermediate_size": 32,
                                   "first_k_dense_replace": 1}),
    "deepseek_v2": ("DeepseekV2ForCausalLM", {**DECODER, **LATENT, "q_lora_rank": None}),
    "deepseek_v3": ("DeepseekV3ForCausalLM", {**DECODER, **LATENT, "rope_parameters": {
        "rope_type": "yarn", "rope_theta": 10000.0, "factor": 4.0, "original_max_position_embeddings": 16, "mscale": 1.0, "mscale_all_dim": 1.0}}),
    "glm4_moe_lite": ("Glm4MoeLiteForCausalLM", {**DECODER, **LATENT, "n_group": 1, "topk_group": 1}),
    "modernbert-decoder": ("ModernBertDecoderForCausalLM", {**ENCODER, "global_attn_every_n_layers": 2, "local_attention": 8}),
    "opt": ("OPTForCausalLM", {"hidden_size": 32, "word_embed_proj_dim": 32, "ffn_dim": 48, "num_hidden_layers": 2, "num_attention_heads": 4,
                               "max_position_embeddings": 64}),
    "bloom": ("BloomForCausalLM", {"hidden_size": 32, "n_layer": 2, "n_head": 4}),
    "gpt_neox": ("GPTNeoXForCausalLM", {key: value for key, value in DECODER.items() if key != "num_key_value_heads"}),
    "bert": ("BertForMaskedLM", ENCODER), "roberta": ("RobertaForMaskedLM", {**ENCODER, "max_position_embeddings": 66}),
    "electra": ("ElectraForMaskedLM", {**ENCODER, "embedding_size": 16}), "mpnet": ("MPNetForMaskedLM", ENCODER),
    "distilbert": ("DistilBertForMaskedLM", {"dim": 32, "hidden_dim": 48, "n_layers": 2, "n_heads": 4, "max_position_embeddings": 64}),
    "modernbert": ("ModernBertForMaskedLM", {**ENCODER, "global_attn_every_n_layers": 2, "local_attention": 8}),
    "camembert": ("CamembertForMaskedLM", {**ENCODER, "max_position_embeddings": 66}),
    "data2vec-text": ("Data2VecTextForMaskedLM", {**ENCODER, "max_position_embeddings": 66}),
    "roberta-prelayernorm": ("RobertaPreLayerNormForMaskedLM", {**ENCODER, "max_position_embeddings": 66}),
    "albert": ("AlbertForMaskedLM", {**ENCODER, "embedding_size": 16}), "roformer": ("RoFormerForMaskedLM", ENCODER),
    "rembert": ("RemBertForMaskedLM", {**ENCODER, "input_embedding_size": 16, "output_embedding_size": 24}),
    "jina_embeddings_v3": ("JinaEmbeddingsV3ForMaskedLM", ENCODER), "nomic_bert": ("NomicBertForMaskedLM", ENCODER),
    "gte": ("GteForMaskedLM", ENCODER), "eurobert": ("EuroBertForMaskedLM", ENCODER),
    "deberta": ("DebertaForMaskedLM", {**ENCODER, "relative_attention": True, "pos_att_type": ["c2p", "p2c"]}),
    "deberta-v2": ("DebertaV2ForMaskedLM", {**ENCODER, "relative_attention": True, "position_buckets": 8, "pos_att_type": ["c2p", "p2c"],
                                            "norm_rel_ebd": "layer_norm", "share_att_key": True}),
    "t5": ("T5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}),
    "mt5": ("MT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}),
    "umt5": ("UMT5ForConditionalGeneration", {"d_model": 32, "d_kv": 8, "d_ff": 48, "num_layers": 2, "num_heads": 4}),
    "mbart": ("MBartForConditionalGeneration", BOTH), "m2m_100": ("M2M100ForConditionalGeneration", BOTH),
    "pegasus": ("PegasusForConditionalGeneration", BOTH),
    "bart": ("BartForConditionalGeneration", BOTH), "marian": ("MarianMTModel", {**BOTH, "decoder_vocab_size": SIZE}),
    "vit": ("ViTForImageClassification", IMAGES), "deit": ("DeiTForImageClassification", IMAGES),
    "dinov2": ("Dinov2ForImageClassification", {key: value for key, value in IMAGES.items() if key != "intermediate_size"}),
    "whisper": ("WhisperForConditionalGeneration", {**{key: value for key, value in BOTH.items() if key != "max_position_embeddings"},
                                                    "max_source_positions": 16, "max_target_positions": 32, "num_mel_bins": 8}),
}
# Classes with other heads, which are converted and opened too.
HEADS = {"bert": ["BertForSequenceClassification", "BertForTokenClassification", "BertForQuestionAnswering", "BertModel"],
         "electra": ["ElectraForSequenceClassification"], "roberta": ["RobertaForSequenceClassification"],
         "modernbert": ["ModernBertForSequenceClassification"], "distilbert": ["DistilBertForSequenceClassification"],
         "mpnet": ["MPNetForSequenceClassification"], "camembert": ["CamembertForSequenceClassification"],
         "data2vec-text": ["Data2VecTextForSequenceClassification"], "roformer": ["RoFormerForSequenceClassification", "RoFormerModel"],
         "roberta-prelayernorm": ["RobertaPreLayerNormForSequenceClassification", "RobertaPreLayerNormModel"],
         "albert": ["AlbertForSequenceClassification", "AlbertForTokenClassification", "AlbertForQuestionAnswering", "AlbertModel"],
         "rembert": ["RemBertForSequenceClassification", "RemBertModel"], "eurobert": ["EuroBertForSequenceClassification", "EuroBertModel"],
         "jina_embeddings_v3": ["JinaEmbeddingsV3ForSequenceClassification", "JinaEmbeddingsV3Model"],
         "nomic_bert": ["NomicBertForSequenceClassification", "NomicBertModel"], "gte": ["GteForSequenceClassification", "GteModel"],
         "bart": ["BartForSequenceClassification"], "t5": ["T5ForSequenceClassification", "T5EncoderModel"],
         "deberta": ["DebertaForSequenceClassification"],
         "deberta-v2": ["DebertaV2ForSequenceClassification", "DebertaV2ForTokenClassification", "DebertaV2Model"],
         "llama": ["LlamaForSequenceClassification", "LlamaForTokenClassification"], "gpt2": ["GPT2ForSequenceClassification"],
         "gemma2": ["Gemma2ForSequenceClassification"], "gpt_neox": ["GPTNeoXForSequenceClassification"],
         "bloom": ["BloomForSequenceClassification"], "qwen3": ["Qwen3ForSequenceClassification"],
         "gemma": ["GemmaForSequenceClassification"], "falcon": ["FalconForSequenceClassification", "FalconForTokenClassification"],
         "gptj": ["GPTJForSequenceClassification"], "stablelm": ["StableLmForTokenClassification"], "mt5": ["MT5ForSequenceClassification"],
         "modernbert-decoder": ["ModernBertDecoderForSequenceClassification"], "umt5": ["UMT5EncoderModel"],
         "mbart": ["MBartForSequenceClassification"], "smollm3": ["SmolLM3ForQuestionAnswering"]}
BOTH_STACKS = {"t5", "mt5", "umt5", "bart", "mbart", "m2m_100", "pegasus", "marian"}
SIGNALS = {"vit", "deit", "dinov2", "whisper"}


def tokenizer_files(folder, name):
    words = SPECIAL + WORDS
    vocabulary = {word: i for i, word in enumerate(words + [f"[unused{i}]" for i in range(SIZE - len(words))])}
    end = {"id": "</s>", "ids": [2], "tokens": ["</s>"]}
    parts = [{"Sequence": {"id": "A", "type_id": 0}}] + ([{"SpecialToken": {"id": "</s>", "type_id": 0}}] if name in BOTH_STACKS else [])
    tokenizer = {"version": "1.0", "truncation": None, "padding": None,
                 "added_tokens": [{"id": i, "content": word, "special": True, "single_word": False, "lstrip": False, "rstrip": False,
                                   "normalized": False} for i, word in enumerate(SPECIAL)],
                 "normalizer": None, "pre_tokenizer": {"type": "Whitespace"},
                 "post_processor": {"type": "TemplateProcessing", "single": parts,
                                    "pair": parts + [{"Sequence": {"id": "B", "type_id": 0}}], "special_tokens": {"</s>": end}},
                 "decoder": None, "model": {"type": "WordLevel", "vocab": vocabulary, "unk_token": "[UNK]"}}
    config = {"tokenizer_class": "PreTrainedTokenizerFast", "pad_token": "[PAD]", "unk_token": "[UNK]", "eos_token": "</s>",
              "bos_token": "<s>", "mask_token": "[MASK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    (folder / "tokenizer.json").write_text(json.dumps(tokenizer), encoding="utf-8")
    (folder / "tokenizer_config.json").write_text(json.dumps(config), encoding="utf-8")


def make(folder, name, architecture, sizes):
    torch.manual_seed(7)
    ids = {} if name in ("vit", "deit", "dinov2") else {"pad_token_id": 0, "bos_token_id": 3, "eos_token_id": 2, "vocab_size": SIZE}
    if name in BOTH_STACKS | {"whisper"}:
        ids |= {"decoder_start_token_id": 0, "forced_eos_token_id": None}
    if name in ("modernbert", "modernbert-decoder"):
        ids |= {"cls_token_id": 5, "sep_token_id": 6}
    config = CONFIG_MAPPING[name](**sizes, **ids)
    shaken(getattr(transformers, architecture)(config).eval(), 0.05).save_pretrained(folder)
    if name not in SIGNALS:
        tokenizer_files(folder, name)


def inputs_of(name, folder):
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    if name == "whisper":
        return {"input_features": torch.sin(torch.arange(8 * 32).float()).view(1, 8, 32), "labels": torch.tensor([[5, 9, 12, 7]])}
    if name in SIGNALS:
        return {"pixel_values": torch.sin(torch.arange(3 * 16 * 16).float()).view(1, 3, 16, 16)}
    found = {"input_ids": torch.tensor([[7, 9, 12, 10, 8, 11, 13, 2]])}
    if config["architectures"][0].endswith(("ForConditionalGeneration", "MTModel")):
        found["labels"] = torch.tensor([[9, 11, 8, 2]])
    return found


def by_transformers(name, folder):
    """The main output of the model in a directory. Raises an error if a tensor or a value of config.json does not fit."""
    AutoConfig.from_pretrained(folder)
    config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    classes = getattr(transformers, config["architectures"][0])
    model, report = classes.from_pretrained(folder, output_loading_info=True, attn_implementation="eager")
    for key in ("missing_keys", "unexpected_keys", "mismatched_keys"):
        found = [one for one in report[key] if not str(one).endswith(("position_ids", "embed_positions.weight", "pooler.dense.weight",
                                                                      "pooler.dense.bias", "mask_token"))]
        if found:
            raise ValueError(f"{key}: {sorted(map(str, found))[:4]}")
    with torch.no_grad():
        result = model.eval().float()(**inputs_of(name, folder))
    for key in ("logits", "start_logits", "pooler_output"):
        if result.get(key) is not None:
            value = result[key]
            return torch.stack([value, result["end_logits"]], -1) if key == "start_logits" else value
    return result[0]


def by_fovea(program, name, folder):
    with tempfile.TemporaryDirectory() as holder:
        given, out = pathlib.Path(holder) / "input.safetensors", pathlib.Path(holder) / "trace.safetensors"
        save_file({key: value.to(torch.int32) if value.dtype == torch.int64 else value for key, value in inputs_of(name, folder).items()}, given)
        run(program, "trace", folder, "--input", given, "--out", out)
        return load_file(out)["logits"]


class Refused(Exception):
    pass


def run(*command):
    done = subprocess.run(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode != 0:
        raise Refused((done.stderr.strip().splitlines() or ["no message"])[-1])


def apart(one, other):
    if one.shape != other.shape:
        return f"shapes {tuple(one.shape)} and {tuple(other.shape)}"
    distance = ((one - other).abs().max() / other.abs().max()).item()
    return None if distance <= TOLERANCE else f"logits differ by {distance:.1e}"


def data_of(name, source, folder):
    """The arguments that name data for the model's head."""
    architecture = json.loads((source / "config.json").read_text(encoding="utf-8"))["architectures"][0]
    data, context = folder / "data", "the fox sees a bird and the sun is old"
    if architecture.endswith("ForSequenceClassification"):
        data, how, text = data.with_suffix(".tsv"), "--labels", "the fox sees\tLABEL_0\nthe sun is old\tLABEL_1\n" * 40
    elif architecture.endswith("ForTokenClassification"):
        data, how, text = data.with_suffix(".conll"), "--labels", "the LABEL_0\nfox LABEL_1\n\n" * 40
    elif architecture.endswith("ForQuestionAnswering"):
        questions = [{"id": "1", "question": "the fox", "answers": [{"text": "a bird", "answer_start": context.index("a bird")}]}]
        data, how = data.with_suffix(".json"), "--labels"
        text = json.dumps({"data": [{"paragraphs": [{"context": context, "qas": questions}] * 40}]})
    elif name in BOTH_STACKS:
        data, how, text = data.with_suffix(".tsv"), "--pairs", "the fox sees\ta bird sings\nthe sun is old\tthe eye of night\n" * 40
    else:
        data, how, text = data.with_suffix(".txt"), None, "the fox sees the bird . the sun is old and calm .\n" * 200
    data.write_text(text, encoding="utf-8")
    return [how, data] if how else [data]


def written(program, name, architecture, source, folder):
    """Yields the name of each way and the directory that it writes, or the message that refuses it."""
    data = data_of(name, source, folder)
    size = ["--batch-tokens", 64] if data[0] == "--pairs" else ["--batch", 2, "--length", 24]
    steps = ["--from", source, "--steps", 1, *size, "--evaluate-every", 0]
    if architecture.endswith(("ForCausalLM", "LMHeadModel")):
        steps += ["--sample-every", 0]
    ways = {"convert": [["convert", source, folder / "convert"]],
            "gguf": [["convert", source, folder / "model.gguf"], ["convert", folder / "model.gguf", folder / "gguf"]]}
    if name not in SIGNALS and architecture != "BertModel":
        ways["train"] = [["train", *data, *steps, "--out", folder / "train"]]
        ways["lora"] = [["train", *data, *steps, "--lora", 2, "--out", folder / "adapter"],
                        ["convert", folder / "adapter", folder / "lora"]]
    for way, commands in ways.items():
        try:
            for command in commands:
                run(program, *command)
            yield way, folder / way, None
        except Refused as error:
            yield way, None, str(error)


def check(program, name, architecture, sizes):
    """Returns the ways that were checked, those that fovea refuses, and the differences."""
    checked, refused, wrong = [], [], []
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        source = folder / "source"
        make(source, name, architecture, sizes)
        expected = by_transformers(name, source)
        for way, directory, message in written(program, name, architecture, source, folder):
            if directory is None:
                (refused if way == "gguf" else wrong).append(f"{way}: {message}")
                continue
            checked.append(way)
            try:
                found = by_transformers(name, directory)
                difference = apart(by_fovea(program, name, directory), found)
                if difference is None and way in ("convert", "gguf") and architecture != "BertModel":
                    difference = apart(found, expected)
            except Exception as error:  # whatever transformers raises
                difference = " ".join(str(error).split())[:300]
            if difference:
                wrong.append(f"{way}: {difference}")
    return checked, refused, wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("families", nargs="*")
    add_program(parser)
    options = parser.parse_args()
    quiet()
    bad = 0
    for name in options.families or FAMILIES:
        main_class, sizes = FAMILIES[name]
        for architecture in [main_class, *HEADS.get(name, [])]:
            checked, refused, wrong = check(options.fovea, name, architecture, sizes)
            print(f"{architecture}: {' '.join(checked)}" + "".join(f"; refused {each[:60]}" for each in refused)
                  + "".join(f"; WRONG {each}" for each in wrong), flush=True)
            bad += bool(wrong)
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
