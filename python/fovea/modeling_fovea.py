"""Decoders of fovea's own type in pure torch, for AutoModelForCausalLM.from_pretrained(folder, trust_remote_code=True).

fovea.write_modeling(folder) copies this file into a model's directory. It needs torch and transformers, not fovea, and
computes mixtures of attention and feed-forward layers; other layers are refused by name.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F
from transformers import GenerationMixin, PretrainedConfig, PreTrainedModel
from transformers.modeling_outputs import CausalLMOutput

ACTIVATIONS = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": lambda x: F.gelu(x, approximate="tanh"),
    "silu": F.silu,
    "tanh": torch.tanh,
    "quick_gelu": lambda x: x * torch.sigmoid(1.702 * x),
    "relu_squared": lambda x: F.relu(x) ** 2,
    "sigmoid": torch.sigmoid,
}


class FoveaConfig(PretrainedConfig):
    model_type = "fovea"

    def __init__(self, spec=None, **others):
        self.spec = spec or {}
        super().__init__(**others)
        stack = self.spec.get("decoder") or {}
        self.vocab_size = self.spec.get("vocabulary", 0)
        self.hidden_size = self.spec.get("width", 0)
        self.num_hidden_layers = stack.get("layers", 0)
        self.num_attention_heads = stack.get("attention", {}).get("heads", 0)
        self.use_cache = False


def refuse_others(spec):
    """Raises NotImplementedError, with the field, for what this file does not compute."""
    stack = spec.get("decoder")
    if stack is None or spec.get("encoder") is not None:
        raise NotImplementedError("spec: has an encoder; expected a decoder alone")
    only = {
        "head.kind": (spec["head"]["kind"], "language_model"),
        "head.transform": (spec["head"]["transform"], False),
        "token_types": (spec["token_types"], 0),
        "decoder.position.rotary.scaling": (stack["position"]["rotary"]["scaling"], "none"),
        "decoder.attention.value_residual": (stack["attention"]["value_residual"], 0),
        "decoder.ffn.experts.groups": (stack["ffn"]["experts"]["groups"], 1),
        "decoder.causal": (stack["causal"], True),
        "decoder.residual": (stack["residual"], True),
        "decoder.layer_scale": (stack["layer_scale"], 0),
        "decoder.layer_groups": (stack.get("layer_groups", 0), 0),
        "decoder.ffn.inner_bias": (stack["ffn"].get("inner_bias", True), True),
        "decoder.ffn.experts.sum_bias": (stack["ffn"]["experts"].get("sum_bias", False), False),
        "embedding_width": (spec["embedding_width"] or spec["width"], spec["width"]),
    }
    for field, (value, expected) in only.items():
        if value != expected:
            raise NotImplementedError(f"{field}: {value}; expected {expected}")
    for mixer in stack["mixers"]:
        if mixer != "attention":
            raise NotImplementedError(f"decoder.mixers: {mixer}; expected attention")
    if stack["position"]["bias"] not in ("none", "alibi"):
        raise NotImplementedError(
            f"decoder.position.bias: {stack['position']['bias']}; expected none or alibi"
        )
    sinusoidal = stack["position"]["kind"] == "sinusoidal"
    if stack["position"]["stored"] or (sinusoidal and stack["position"]["waves"] == "spread"):
        raise NotImplementedError(
            "decoder.position.waves: spread or stored; expected neighbours or halves"
        )


class Linear(nn.Module):
    def __init__(self, inputs, outputs, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs)) if bias else None

    def forward(self, x):
        return F.linear(x, self.weight, self.bias)


class Norm(nn.Module):
    def __init__(self, spec, width):
        super().__init__()
        self.spec = spec
        self.weight = nn.Parameter(torch.empty(width))
        self.bias = (
            nn.Parameter(torch.empty(width)) if spec["bias"] and spec["kind"] != "rms" else None
        )
        self.alpha = nn.Parameter(torch.empty(1)) if spec["kind"] == "dyt" else None

    def forward(self, x):
        spec, gain = self.spec, self.weight + 1 if self.spec["unit_offset"] else self.weight
        if spec["kind"] == "dyt":
            y = torch.tanh(self.alpha * x) * gain
        elif spec["kind"] == "rms":
            y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + spec["epsilon"]) * gain
        else:
            centred = x - x.mean(-1, keepdim=True)
            variance = centred.pow(2).mean(-1, keepdim=True)
            outside = spec["epsilon_outside"]
            scale = (
                variance.sqrt() + spec["epsilon"]
                if outside
                else (variance + spec["epsilon"]).sqrt()
            )
            y = centred / scale * gain
        return y if self.bias is None else y + self.bias


def slopes(heads):
    """ALiBi's slopes (Press et al. 2022), also for numbers of heads that are no powers of two."""
    power = 2 ** math.floor(math.log2(heads))
    first = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return torch.tensor(first + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)])


class Attention(nn.Module):
    def __init__(self, spec, stack, layer):
        super().__init__()
        self.a, self.position = stack["attention"], stack["position"]
        a, width = self.a, spec["width"]
        self.heads, self.groups = a["heads"], a["kv_heads"] or a["heads"]
        self.head = a["head_width"] or width // a["heads"]
        self.value_width = a["value_width"] or self.head
        windows = a["windows"]
        self.window = windows[layer % len(windows)] if windows else 0
        self.query = Linear(width, self.heads * self.head, a["bias"])
        self.key = Linear(width, self.groups * self.head, a["bias"] and a["key_bias"])
        self.value = Linear(width, self.groups * self.value_width, a["bias"])
        self.output = Linear(self.heads * self.value_width, width, a["output_bias"])
        self.query_norm = self.key_norm = None
        if a["norm"] != "none":
            whole = a["norm"] == "all"
            self.query_norm = Norm(stack["norm"], self.heads * self.head if whole else self.head)
            self.key_norm = Norm(stack["norm"], self.groups * self.head if whole else self.head)

    def split(self, x, norm, count):
        shape = (*x.shape[:2], count, self.head)
        if norm is not None and self.a["norm"] == "all":
            return norm(x).view(shape)
        return x.view(shape) if norm is None else norm(x.view(shape))

    def rotated(self, x, positions):
        rotary = self.position["rotary"]
        R = 2 * round(self.head * rotary["share"] / 2)
        theta = rotary["local_theta"] if self.window and rotary["local_theta"] else rotary["theta"]
        rates = theta ** (-torch.arange(0, R, 2, device=x.device, dtype=torch.float32) / R)
        angle = positions[:, :, None, None] * rates
        cos, sin = angle.cos(), angle.sin()
        turned, rest = x[..., :R], x[..., R:]
        if rotary["neighbours"]:
            a, b = turned[..., 0::2], turned[..., 1::2]
            turned = torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
        else:
            a, b = turned.chunk(2, -1)
            turned = torch.cat((a * cos - b * sin, b * cos + a * sin), -1)
        return torch.cat((turned, rest), -1)

    def forward(self, x, positions, valid):
        q = self.split(self.query(x), self.query_norm, self.heads)
        k = self.split(self.key(x), self.key_norm, self.groups)
        v = self.value(x).view(*x.shape[:2], self.groups, self.value_width)
        if self.position["kind"] == "rotary":
            q, k = self.rotated(q, positions), self.rotated(k, positions)
        k, v = (t.repeat_interleave(self.heads // self.groups, 2) for t in (k, v))
        scores = torch.einsum("bthd,bshd->bhts", q, k) * (self.a["scale"] or self.head**-0.5)
        if self.a["softcap"]:
            scores = self.a["softcap"] * torch.tanh(scores / self.a["softcap"])
        steps = torch.arange(x.shape[1], device=x.device)
        distance = steps[:, None] - steps[None, :]
        if self.position["bias"] == "alibi":
            scores = scores - slopes(self.heads).to(x)[:, None, None] * distance.abs()
        seen = distance >= 0
        if self.window:
            near = (
                (distance < self.window)
                | (steps[None, :] < self.a["global"])
                | (steps[:, None] < self.a["global"])
            )
            seen = seen & near
        seen = seen[None] & valid[:, None, :] | torch.eye(
            x.shape[1], dtype=torch.bool, device=x.device
        )
        weights = scores.masked_fill(~seen[:, None], -torch.inf).softmax(-1)
        y = torch.einsum("bhts,bshd->bthd", weights, v)
        return self.output(y.flatten(2))


class Dense(nn.Module):
    def __init__(self, ffn, width, inner):
        super().__init__()
        self.f = ACTIVATIONS[ffn["activation"]]
        self.gate = Linear(width, inner, ffn["bias"]) if ffn["gated"] else None
        self.up = Linear(width, inner, ffn["bias"])
        self.down = Linear(inner, width, ffn["bias"])

    def forward(self, x):
        up = self.up(x)
        return self.down(self.f(up) if self.gate is None else self.f(self.gate(x)) * up)


class Experts(nn.Module):
    def __init__(self, ffn, width):
        super().__init__()
        self.e = e = ffn["experts"]
        inner = e["width"] or ffn["width"] or 4 * width
        self.router = Linear(width, e["count"], False)
        if e["selection_bias"]:
            self.router.selection_bias = nn.Parameter(torch.empty(e["count"]))
        self.experts = nn.ModuleList(Dense(ffn, width, inner) for _ in range(e["count"]))
        self.shared = (
            Dense(ffn, width, e["shared_width"] or e["shared"] * inner)
            if e["shared"] or e["shared_width"]
            else None
        )
        self.shared_gate = Linear(width, 1, False) if e["shared_gate"] else None

    def forward(self, x):
        e, logits = self.e, self.router(x)
        scores = logits.softmax(-1) if e["score"] == "softmax" else logits.sigmoid()
        ranked = scores + self.router.selection_bias if e["selection_bias"] else scores
        chosen = ranked.topk(e["chosen"], -1).indices
        weights = scores.gather(-1, chosen)
        if e["normalise"]:
            weights = weights / (weights.sum(-1, keepdim=True) + 1e-20)
        weights = torch.zeros_like(scores).scatter(-1, chosen, weights * e["scale"])
        y = sum(weights[..., i : i + 1] * expert(x) for i, expert in enumerate(self.experts))
        if self.shared is None:
            return y
        shared = self.shared(x)
        return y + (
            shared if self.shared_gate is None else shared * torch.sigmoid(self.shared_gate(x))
        )


class Block(nn.Module):
    def __init__(self, spec, layer):
        super().__init__()
        self.s = stack = spec["decoder"]
        width, place = spec["width"], stack["placement"]
        ffn = stack["ffn"]
        experts = ffn["experts"]["count"] and layer not in ffn["experts"]["dense_layers"]
        self.attention = Attention(spec, stack, layer)
        self.ffn = None
        if ffn["present"]:
            self.ffn = (
                Experts(ffn, width) if experts else Dense(ffn, width, ffn["width"] or 4 * width)
            )
        self.norm = nn.ModuleDict()
        for name in ("attention", "ffn") if ffn["present"] else ("attention",):
            norms = nn.ModuleDict()
            for kind in ("input", "output", "sum"):
                first = (
                    kind == "input"
                    and name == "attention"
                    and layer == 0
                    and not stack["first_norm"]
                )
                if place[kind] and not first:
                    norms[kind] = Norm(stack["norm"], width)
            self.norm[name] = norms

    def sublayer(self, name, x, f):
        norms = self.norm[name]
        y = f(norms["input"](x) if "input" in norms else x)
        return norms["output"](y) if "output" in norms else y

    def added(self, name, x, y):
        total = self.s["residual_scale"] * x + y
        return self.norm[name]["sum"](total) if "sum" in self.norm[name] else total

    def forward(self, x, positions, valid):
        mixed = self.sublayer("attention", x, lambda h: self.attention(h, positions, valid))
        if self.ffn is None:
            return self.added("attention", x, mixed)
        if self.s["parallel"]:
            return x + mixed + self.sublayer("ffn", x, self.ffn)
        x = self.added("attention", x, mixed)
        return self.added("ffn", x, self.sublayer("ffn", x, self.ffn))


def waves(positions, width, kind):
    rates = 10000 ** (
        -torch.arange(0, width, 2, device=positions.device, dtype=torch.float32) / width
    )
    angle = positions[..., None] * rates
    pair = torch.stack((angle.sin(), angle.cos()), -1).flatten(-2)
    return pair if kind == "neighbours" else torch.cat((angle.sin(), angle.cos()), -1)


class FoveaForCausalLM(PreTrainedModel, GenerationMixin):
    config_class = FoveaConfig
    base_model_prefix = ""

    def __init__(self, config):
        super().__init__(config)
        self.spec = spec = config.spec
        refuse_others(spec)
        stack, width = spec["decoder"], spec["width"]
        position = stack["position"]
        self.embedding = nn.ParameterDict({"token": torch.empty(spec["vocabulary"], width)})
        self.decoder = nn.ModuleDict({str(i): Block(spec, i) for i in range(stack["layers"])})
        if position["kind"] == "learned":
            table = torch.empty(spec["context"] + position["offset"], width)
            self.decoder.register_parameter("position", nn.Parameter(table))
        norms = nn.ModuleDict()
        if stack["embedding_norm"]:
            norms["embedding"] = Norm(stack["norm"], width)
        if stack["final_norm"]:
            norms["final"] = Norm(stack["norm"], width)
        self.decoder["norm"] = norms
        head = spec["head"]
        self.head = nn.Module()
        if not head["tied"]:
            self.head.output = Linear(width, spec["vocabulary"], head["bias"])
        elif head["bias"]:
            self.head.output = nn.ParameterDict({"bias": torch.empty(spec["vocabulary"])})
        self.post_init()

    def get_input_embeddings(self):
        return None

    def prepare_inputs_for_generation(self, input_ids, attention_mask=None, **others):
        return {
            "input_ids": input_ids[:, -self.spec["context"] :],
            "attention_mask": attention_mask,
        }

    def hidden(self, input_ids, valid):
        spec, stack = self.spec, self.spec["decoder"]
        position = stack["position"]
        positions = (valid.long().cumsum(-1) - 1).clamp(min=0)
        x = self.embedding["token"][input_ids]
        if spec["scaled_embedding"]:
            x = x * spec["width"] ** 0.5
        if position["kind"] == "learned":
            x = x + self.decoder.position[positions + position["offset"]]
        if position["kind"] == "sinusoidal":
            x = x + waves(
                (positions + position["offset"]).float(), spec["width"], position["waves"]
            )
        norms = self.decoder["norm"]
        if "embedding" in norms:
            x = norms["embedding"](x)
        for layer in range(stack["layers"]):
            x = self.decoder[str(layer)](x, positions, valid)
        return norms["final"](x) if "final" in norms else x

    def forward(self, input_ids, attention_mask=None, labels=None, **others):
        valid = (
            torch.ones_like(input_ids)
            if attention_mask is None
            else attention_mask[:, -input_ids.shape[1] :]
        )
        x, head = self.hidden(input_ids, valid.bool()), self.spec["head"]
        if head["scaled"]:
            x = x * self.spec["width"] ** -0.5
        if head["tied"]:
            logits = F.linear(
                x, self.embedding["token"], self.head.output["bias"] if head["bias"] else None
            )
        else:
            logits = self.head.output(x)
        if head["softcap"]:
            logits = head["softcap"] * torch.tanh(logits / head["softcap"])
        loss = None
        if labels is not None:
            loss = F.cross_entropy(logits[:, :-1].flatten(0, 1).float(), labels[:, 1:].flatten())
        return CausalLMOutput(loss=loss, logits=logits)
