#!/usr/bin/env python3
"""Writes tests/goldens/bge_m3: a tiny random model with the files of BAAI/bge-m3, an XLM-RoBERTa with sparse_linear.pt and colbert_linear.pt, as
torch.save() writes them, and the results of FlagEmbedding's BGEM3FlagModel for texts.json, by its formulas.

Needs torch, transformers, tokenizers and safetensors. expected.safetensors has the `dense` vectors [texts, C]; the weights of tokens as `sparse` [texts, V];
the vectors of `tokens` of all texts with their numbers (`tokens.counts`); and the scores of each text for the first text as a query: `scores.sparse`
and `scores.tokens`."""
import json
import shutil

import harness
from harness import GOLDENS, write_json, write_tensors
import torch
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import PreTrainedTokenizerFast, XLMRobertaConfig, XLMRobertaModel

FOLDER = GOLDENS / "bge_m3"
SPECIAL = {"bos_token": "<s>", "pad_token": "<pad>", "eos_token": "</s>", "unk_token": "<unk>", "mask_token": "<mask>"}
WORDS = "the fox eye light bird sees hears sleeps on in night day never ?".split()
TEXTS = ["the fox sees the bird", "never", "", "unknown words , the fox sees on the night the day ?", "the light on the eye sleeps in the night in the day on the day"]
WIDTH, TOKEN_WIDTH, LONGEST = 16, 8, 12


def tokenizer():
    words = [SPECIAL[name] for name in ("bos_token", "pad_token", "eos_token", "unk_token")] + WORDS + ["<mask>"]
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token="<unk>"))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    made.post_processor = processors.TemplateProcessing(single="<s> $A </s>", pair="<s> $A </s> </s> $B </s>", special_tokens=[("<s>", 0), ("</s>", 2)])
    return PreTrainedTokenizerFast(tokenizer_object=made, cls_token="<s>", sep_token="</s>", model_max_length=LONGEST, **SPECIAL)


def write_modules():
    kinds = {"": "Transformer", "1_Pooling": "Pooling", "2_Normalize": "Normalize"}
    write_json(FOLDER / "modules.json", [{"idx": i, "name": str(i), "path": path, "type": "sentence_transformers.models." + kind}
                                         for i, (path, kind) in enumerate(kinds.items())], indent=1)
    write_json(FOLDER / "sentence_bert_config.json", {"max_seq_length": LONGEST, "do_lower_case": False})
    (FOLDER / "1_Pooling").mkdir()
    write_json(FOLDER / "1_Pooling/config.json", {"word_embedding_dimension": WIDTH, "pooling_mode_cls_token": True, "pooling_mode_mean_tokens": False})


def main():
    harness.quiet()
    harness.one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    words = tokenizer()
    config = XLMRobertaConfig(vocab_size=len(words), hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, intermediate_size=24,
                              max_position_embeddings=LONGEST + 2, type_vocab_size=1, bos_token_id=0, pad_token_id=1, eos_token_id=2)
    model = harness.shaken(XLMRobertaModel(config), 0.2, seed=7).eval()
    model.save_pretrained(FOLDER)
    words.save_pretrained(FOLDER)
    write_modules()
    sparse, colbert = (harness.shaken(torch.nn.Linear(WIDTH, outputs), 0.5) for outputs in (1, TOKEN_WIDTH))
    torch.save(sparse.half().state_dict(), FOLDER / "sparse_linear.pt")
    torch.save(colbert.state_dict(), FOLDER / "colbert_linear.pt")
    sparse.float()
    dropped = {words.convert_tokens_to_ids(getattr(words, name)) for name in ("cls_token", "eos_token", "pad_token", "unk_token")}
    dense, weights, vectors = [], torch.zeros(len(TEXTS), len(words)), []
    with torch.no_grad():
        for i, text in enumerate(TEXTS):
            batch = words([text], truncation=True, max_length=LONGEST, return_tensors="pt")
            states = model(input_ids=batch["input_ids"], attention_mask=batch["attention_mask"]).last_hidden_state[0]
            dense.append(torch.nn.functional.normalize(states[0], dim=-1))
            for token, weight in zip(batch["input_ids"][0].tolist(), torch.relu(sparse(states))[:, 0]):
                if token not in dropped:
                    weights[i, token] = torch.maximum(weights[i, token], weight)
            vectors.append(torch.nn.functional.normalize(colbert(states[1:]), dim=-1))
    write_json(FOLDER / "texts.json", TEXTS)
    write_tensors(FOLDER / "expected.safetensors", {
        "dense": torch.stack(dense), "sparse": weights, "tokens": torch.cat(vectors), "tokens.counts": torch.tensor([len(each) for each in vectors]),
        "scores.sparse": weights @ weights[0], "scores.tokens": torch.stack([(vectors[0] @ each.T).max(-1).values.mean() for each in vectors])})
    for name in ("special_tokens_map.json", "README.md"):
        (FOLDER / name).unlink(missing_ok=True)
    assert (weights > 0).sum() > len(TEXTS), json.dumps(weights.tolist())
    harness.report(FOLDER)


if __name__ == "__main__":
    main()
