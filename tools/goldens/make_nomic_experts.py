#!/usr/bin/env python3
"""Writes tests/goldens/nomic_experts: a tiny model of the form of Nomic Embed 2, whose odd layers have experts, and what it computes.

Needs torch and safetensors. transformers has no class for these layers, so that this script computes them: BERT with rotary positions,
biases, and experts without biases; the softmax over all experts weighs the two best ones, and one bias is added to their sum. The files
are those of make_checkpoints.py for encoders."""
from harness import GOLDENS, one_thread, write_json, write_tensors
import torch
from safetensors.torch import save_file
from torch.nn.functional import cross_entropy, embedding, gelu, layer_norm, linear

WIDTH, HEADS, INNER, LAYERS, EXPERTS, CHOSEN, VOCABULARY, TOKENS, EPSILON, THETA = 24, 4, 20, 2, 3, 2, 37, 11, 1e-5, 10000
CONFIG = {"architectures": ["NomicBertForPreTraining"], "model_type": "nomic_bert", "activation_function": "gelu", "attn_pdrop": 0.0,
          "causal": False, "embd_pdrop": 0.0, "expert_choice_router": False, "ffn_div": 1.0, "layer_norm_epsilon": EPSILON,
          "mlp_fc1_bias": True, "mlp_fc2_bias": True, "moe_every_n_layers": 2, "moe_normalize_expert_weights": False, "moe_top_k": CHOSEN,
          "n_embd": WIDTH, "n_head": HEADS, "n_inner": INNER, "n_layer": LAYERS, "n_positions": 36, "num_experts": EXPERTS,
          "num_shared_experts": 0, "pad_token_id": 1, "parallel_block": False, "prenorm": False, "qkv_proj_bias": True,
          "resid_pdrop": 0.0, "rotary_emb_base": THETA, "rotary_emb_fraction": 1.0, "rotary_emb_interleaved": False,
          "rotary_emb_scale_base": None, "rotary_scaling_factor": None, "router_aux_loss_coef": 0.0, "scale_attn_weights": True,
          "type_vocab_size": 1, "vocab_size": VOCABULARY}


def shapes():
    found = {"nomic_bert.embeddings.word_embeddings.weight": (VOCABULARY, WIDTH),
             "nomic_bert.embeddings.token_type_embeddings.weight": (1, WIDTH),
             "cls.predictions.transform.dense.weight": (WIDTH, WIDTH), "cls.predictions.transform.dense.bias": (WIDTH,),
             "cls.predictions.bias": (VOCABULARY,)}
    norms = ["nomic_bert.emb_ln", "cls.predictions.transform.layer_norm"]
    for i in range(LAYERS):
        layer = f"nomic_bert.encoder.layers.{i}."
        norms += [layer + "norm1", layer + "norm2"]
        linears = {"attn.Wqkv": (3 * WIDTH, WIDTH), "attn.out_proj": (WIDTH, WIDTH)}
        if i % 2 == 0:
            linears |= {"mlp.fc1": (INNER, WIDTH), "mlp.fc2": (WIDTH, INNER)}
        else:
            found |= {layer + "mlp.router.layer.weight": (EXPERTS, WIDTH), layer + "mlp.experts.mlp.w1": (EXPERTS * INNER, WIDTH),
                      layer + "mlp.experts.mlp.w2": (EXPERTS * INNER, WIDTH), layer + "mlp.experts.bias": (WIDTH,)}
        for name, shape in linears.items():
            found |= {f"{layer}{name}.weight": shape, f"{layer}{name}.bias": shape[:1]}
    return found | {f"{name}.{part}": (WIDTH,) for name in norms for part in ("weight", "bias")}


def rotated(x):
    """x [H, T, D], whose elements i and i + D/2 are turned together."""
    half = x.shape[-1] // 2
    angles = torch.arange(x.shape[1])[:, None] * THETA ** (-torch.arange(half) / half)
    first, second = x[..., :half], x[..., half:]
    return torch.cat([first * angles.cos() - second * angles.sin(), second * angles.cos() + first * angles.sin()], -1)


def expected(w, ids):
    def normed(x, name):
        return layer_norm(x, (WIDTH,), w[name + ".weight"], w[name + ".bias"], EPSILON)

    def product(x, name):
        return linear(x, w[name + ".weight"], w[name + ".bias"])

    def experts(x, name):
        weights, chosen = linear(x, w[name + "router.layer.weight"]).softmax(-1).topk(CHOSEN)
        first, second = (w[name + f"experts.mlp.w{n}"].view(EXPERTS, INNER, WIDTH) for n in (1, 2))
        outputs = torch.einsum("eti,eic->tec", gelu(torch.einsum("tc,eic->eti", x, first)), second)
        return (weights[..., None] * outputs.gather(1, chosen[..., None].expand(-1, -1, WIDTH))).sum(1) + w[name + "experts.bias"]

    table = w["nomic_bert.embeddings.word_embeddings.weight"]
    x = normed(embedding(ids[0], table) + w["nomic_bert.embeddings.token_type_embeddings.weight"][0], "nomic_bert.emb_ln")
    found = {"hidden.0": x}
    for i in range(LAYERS):
        layer = f"nomic_bert.encoder.layers.{i}."
        q, k, v = product(x, layer + "attn.Wqkv").view(TOKENS, 3, HEADS, -1).permute(1, 2, 0, 3)
        found[f"attention.{i}"] = attention = (rotated(q) @ rotated(k).mT / q.shape[-1] ** 0.5).softmax(-1)
        x = normed(x + product((attention @ v).transpose(0, 1).reshape(TOKENS, WIDTH), layer + "attn.out_proj"), layer + "norm1")
        y = experts(x, layer + "mlp.") if i % 2 else product(gelu(product(x, layer + "mlp.fc1")), layer + "mlp.fc2")
        found[f"hidden.{i + 1}"] = x = normed(x + y, layer + "norm2")
    x = normed(gelu(product(x, "cls.predictions.transform.dense")), "cls.predictions.transform.layer_norm")
    found["logits"] = linear(x, table, w["cls.predictions.bias"])
    return {name: value[None] for name, value in found.items()}


if __name__ == "__main__":
    one_thread()
    torch.manual_seed(1)
    weights = {name: (torch.randn(shape) * 0.2 + ("norm" in name or "_ln" in name) * name.endswith("weight")).requires_grad_()
               for name, shape in shapes().items()}
    ids = torch.randint(3, VOCABULARY, (1, TOKENS))
    found = expected(weights, ids)
    loss = cross_entropy(found["logits"][0], ids[0])
    loss.backward()
    folder = GOLDENS / "nomic_experts"
    folder.mkdir(exist_ok=True)
    write_json(folder / "config.json", CONFIG, indent=2)
    save_file({name: value.detach() for name, value in weights.items()}, folder / "model.safetensors", metadata={"format": "pt"})
    write_tensors(folder / "expected.safetensors", {"input_ids": ids, "attention_mask": torch.ones_like(ids), "labels": ids.clone(), **found,
                                                    "loss": loss.reshape(1), **{f"grad.{name}": value.grad for name, value in weights.items()}})
