#!/usr/bin/env python3
"""Writes tests/goldens/embedders: tiny models of the kinds of EmbeddingGemma, Sentence-T5, Qwen3-Embedding and Qwen3-Reranker, and the results of
sentence-transformers for some texts.

Needs torch, transformers (made with 5.24), sentence-transformers (made with 6.2) and safetensors. expected.safetensors of an embedder
contains the `vectors` of texts.json and those of the same texts after the prompt `query`; that of the reranker the `scores` and the `logits`
of the first text with the others, once more with an instruction (`instructed`), and `original`: the scores by the code of the model's
authors, who use the language model without modules and without a template."""
import json
import shutil

import harness
from harness import GOLDENS
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer
from sentence_transformers.base.modules.dense import Dense
from sentence_transformers.base.modules.normalize import Normalize
from sentence_transformers.base.modules.transformer import Transformer
from sentence_transformers.sentence_transformer.modules.pooling import Pooling
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, processors
from transformers import (Gemma3TextConfig, Gemma3TextModel, PreTrainedTokenizerFast, Qwen3Config, Qwen3ForCausalLM, Qwen3Model, T5Config,
                          T5EncoderModel)

WORDS = "a the fox eye light bird sees hears sleeps falls query : title none on in night day and never always ?".split()
TEXTS = ["the fox sees the bird", "A BIRD hears", "light falls on the eye", "night",
         "the fox and the bird and the eye and the light never sleeps in the night", "unknown words , the fox ?"]
COUNT = 5 + len(WORDS)
LLAMA = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "num_key_value_heads": 1, "head_dim": 8}
JUDGE = """<|im_start|>system
Judge whether the Document meets the requirements based on the Query and the Instruct provided. Note that the answer can only be "yes" or "no".<|im_end|>
<|im_start|>user
<Instruct>: {{ messages | selectattr("role", "eq", "system") | map(attribute="content") | first | default("Given a web search query, retrieve relevant passages that answer the query") }}
<Query>: {{ messages | selectattr("role", "eq", "query") | map(attribute="content") | first }}
<Document>: {{ messages | selectattr("role", "eq", "document") | map(attribute="content") | first }}<|im_end|>
<|im_start|>assistant
<think>

</think>


"""
INSTRUCTION = "find animals"


def ended_tokenizer(single):
    """Returns a tokenizer of words that adds special tokens by the template."""
    words = harness.word_pieces(WORDS, ends=False)
    words.post_processor = processors.TemplateProcessing(single=single, special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return PreTrainedTokenizerFast(tokenizer_object=words, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]",
                                   model_max_length=32, padding_side="left")


def byte_tokenizer():
    """Returns a tokenizer of bytes with the words yes and no and the marks of messages."""
    vocabulary = {character: i for i, character in enumerate(harness.byte_characters().values())}
    merges = [("y", "e"), ("ye", "s"), ("n", "o")]
    for a, b in merges:
        vocabulary[a + b] = len(vocabulary)
    tokenizer = Tokenizer(models.BPE(vocabulary, merges))
    tokenizer.pre_tokenizer, tokenizer.decoder = pre_tokenizers.ByteLevel(add_prefix_space=False), decoders.ByteLevel()
    tokenizer.add_special_tokens([AddedToken(mark, special=True) for mark in ("<|endoftext|>", "<|im_start|>", "<|im_end|>")])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<|endoftext|>", eos_token="<|im_end|>", model_max_length=1024,
                                   padding_side="left")


def write_transformer(folder, model, tokenizer):
    shutil.rmtree(folder, ignore_errors=True)
    harness.shaken(model, 0.2, seed=7).eval().save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def embedder(name, model, tokenizer, modules, prompts, most=32):
    folder, plain = GOLDENS / "embedders" / name, GOLDENS / "plain"
    write_transformer(plain, model, tokenizer)
    whole = SentenceTransformer(modules=[Transformer(str(plain), max_seq_length=most), *modules], prompts=prompts, device="cpu")
    expected = {"vectors": whole.encode(TEXTS, convert_to_tensor=True), "query": whole.encode(TEXTS, prompt_name="query", convert_to_tensor=True)}
    shutil.rmtree(folder, ignore_errors=True)
    whole.save(str(folder), create_model_card=False)
    shutil.rmtree(plain)
    finish(folder, expected)
    return folder


def dense(inputs, outputs):
    return harness.shaken(Dense(inputs, outputs, bias=False, activation_function=torch.nn.Identity()), 0.2, seed=inputs)


def embedding_gemma():
    config = Gemma3TextConfig(**LLAMA, vocab_size=COUNT, num_hidden_layers=3, max_position_embeddings=64, sliding_window=6,
                              layer_types=["sliding_attention", "full_attention", "sliding_attention"], query_pre_attn_scalar=8,
                              use_bidirectional_attention=True, pad_token_id=0)
    embedder("embedding_gemma", Gemma3TextModel(config), ended_tokenizer("[CLS] $A [SEP]"),
             [Pooling(16, "mean"), dense(16, 24), dense(24, 12), Normalize()],
             {"query": "query : ", "document": "title : none ", "Retrieval-query": "query : "})


def sentence_t5():
    config = T5Config(vocab_size=COUNT, d_model=16, d_kv=8, d_ff=24, num_layers=2, num_heads=2, relative_attention_num_buckets=8,
                      relative_attention_max_distance=10, feed_forward_proj="gated-gelu", pad_token_id=0, dropout_rate=0.0)
    folder = embedder("sentence_t5", T5EncoderModel(config), ended_tokenizer("$A [SEP]"), [Pooling(16, "mean"), dense(16, 12), Normalize()],
                      {"query": "query : "})
    path = folder / "config.json"  # the published files have the key of the encoder-decoder
    harness.write_json(path, json.loads(path.read_text()) | {"is_encoder_decoder": True}, indent=2)


def qwen3_embedding():
    config = Qwen3Config(**LLAMA, vocab_size=COUNT, num_hidden_layers=2, max_position_embeddings=64, tie_word_embeddings=False)
    folder = embedder("qwen3_embedding", Qwen3Model(config), ended_tokenizer("$A [SEP]"), [Pooling(16, "lasttoken"), Normalize()],
                      {"query": "title : query ? query :", "document": ""})
    path = folder / "config.json"  # the published files name the class of the language model, but have no head
    harness.write_json(path, json.loads(path.read_text()) | {"architectures": ["Qwen3ForCausalLM"]}, indent=2)


def by_authors(model, tokenizer):
    before, after = JUDGE.split("<Instruct>")[0], JUDGE.split("first }}")[-1][:-1]
    ids = [tokenizer.convert_tokens_to_ids(word) for word in ("no", "yes")]
    scores = []
    for text in TEXTS:
        pair = f"<Instruct>: {INSTRUCTION}\n<Query>: {TEXTS[0]}\n<Document>: {text}"
        rows = [tokenizer.encode(part, add_special_tokens=False) for part in (before, pair, after)]
        with torch.no_grad():
            logits = model(torch.tensor([sum(rows, [])])).logits[0, -1, ids]
        scores.append(torch.log_softmax(logits, 0)[1].exp())
    return torch.stack(scores)


def qwen3_reranker():
    folder, tokenizer = GOLDENS / "embedders/qwen3_reranker", byte_tokenizer()
    config = Qwen3Config(**LLAMA, vocab_size=len(tokenizer), num_hidden_layers=2, max_position_embeddings=1024, tie_word_embeddings=True)
    write_transformer(folder, Qwen3ForCausalLM(config), tokenizer)
    model = CrossEncoder(str(folder), device="cpu", processor_kwargs={"chat_template": JUDGE})
    pairs = [(TEXTS[0], text) for text in TEXTS]
    expected = {"scores": model.predict(pairs, convert_to_tensor=True),
                "logits": model.predict(pairs, convert_to_tensor=True, activation_fn=torch.nn.Identity()),
                "instructed": model.predict(pairs, convert_to_tensor=True, prompt=INSTRUCTION),
                "original": by_authors(Qwen3ForCausalLM.from_pretrained(folder), tokenizer)}
    print(expected["instructed"] - expected["original"])
    model.save_pretrained(str(folder), create_model_card=False)
    finish(folder, expected)


def finish(folder, expected):
    harness.remove(folder, "README.md", "special_tokens_map.json", "generation_config.json")
    harness.write_json(folder / "texts.json", TEXTS, indent=1)
    harness.write_tensors(folder / "expected.safetensors", {name: value.float() for name, value in expected.items()})
    harness.report(folder)


if __name__ == "__main__":
    harness.one_thread()
    for number, write in enumerate((embedding_gemma, sentence_t5, qwen3_embedding, qwen3_reranker)):
        torch.manual_seed(10 + number)
        write()
