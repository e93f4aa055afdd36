#!/usr/bin/env python3
"""Computes small calculations from the literature on Transformers in NumPy (float64) and writes them to
tests/goldens/worked_examples.json, with which tests/parity/worked_examples_test.cc compares fovea. Needs NumPy.

Formulas: Vaswani et al. 2017 (attention, sinusoids, block), Ba et al. 2016 (LayerNorm), Zhang and Sennrich 2019 (RMSNorm), Hendrycks and
Gimpel 2016 (GELU), Su et al. 2021 (rotary), Press et al. 2022 (ALiBi), Kaplan et al. 2020 (6 N D, power laws)."""
import math

from harness import GOLDENS, write_lines
import numpy as np

EXAMPLES = []
TOKENS = np.array([[1, 0, 1, 0], [0, 1, 0, 1], [1, 1, 0, 0]], float)
QUERIES = np.array([[1, 0, 1], [0, 1, 0]], float)
KEYS = np.array([[1, 1, 0], [0, 1, 1], [1, 0, 1]], float)
VALUES = np.array([[1, 2], [3, 0], [0, 1]], float)


def array(value):
    """Returns shape and row-major data; text stays text."""
    if isinstance(value, str):
        return {"text": value}
    if isinstance(value, dict):
        return value
    value = np.asarray(value)
    return {"shape": list(value.shape), "data": value.reshape(-1).tolist()}


def example(name, inputs=None, parameters=None, **expected):
    EXAMPLES.append({"id": name, "inputs": {k: array(v) for k, v in (inputs or {}).items()}, "parameters": parameters or {},
                     "expected": {k: array(v) for k, v in expected.items()}})


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def attend(q, k, v, scale, mask=0.0):
    """`mask` is added to the scores; -inf masks a key."""
    weights = softmax(q @ k.T * scale + mask)
    return weights, weights @ v


def causal_mask(n):
    return np.where(np.arange(n)[None] > np.arange(n)[:, None], -np.inf, 0.0)


def layer_norm(x, epsilon, outside=False):
    centred = x - x.mean(-1, keepdims=True)
    variance = (centred ** 2).mean(-1, keepdims=True)
    return centred / (np.sqrt(variance) + epsilon if outside else np.sqrt(variance + epsilon))


def gelu_tanh(x):
    return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x ** 3)))


def waves(rows, width):
    angles = np.arange(rows)[:, None] * 10000.0 ** (-np.arange(0, width, 2) / width)
    table = np.empty((rows, width))
    table[:, 0::2], table[:, 1::2] = np.sin(angles), np.cos(angles)
    return table


def heads(x, wq, wk, wv, wo, count, mask=0.0):
    """Matrices are [C, C]; head h uses the columns h * D to (h + 1) * D - 1."""
    d = wq.shape[1] // count
    parts = [attend(*(x @ w[:, h * d:(h + 1) * d] for w in (wq, wk, wv)), 1 / math.sqrt(d), mask)[1] for h in range(count)]
    return np.concatenate(parts, -1) @ wo


def by_hand():
    scores = TOKENS @ TOKENS.T
    weights, output = attend(TOKENS, TOKENS, TOKENS, 0.5)
    x = {"X": TOKENS}
    example("s000.attn3.scores", x, scores=scores)
    example("s000.attn3.scaled", x, {"scale": 0.5}, scaled=scores / 2)
    example("s000.attn3.weights.rows01", x, {"rows": [0, 1]}, weights=weights[:2])
    example("s000.attn3.weights.row2", x, {"rows": [2]}, weights=weights[2:])
    example("s000.attn3.weights.full", x, weights=weights, row_sums=weights.sum(-1))
    example("s000.attn3.output.rows01", x, {"rows": [0, 1]}, output=output[:2])
    example("s000.attn3.output.row2", x, {"rows": [2]}, output=output[2:])
    example("s000.attn3.output.full", x, output=output)
    example("s000.blend.7030", {"weights": [0.7, 0.3]}, weight_sum=[0.7 + 0.3])
    order = [2, 0, 1]
    moved = attend(TOKENS[order], TOKENS[order], TOKENS[order], 0.5)
    example("s00x.perm", x, {"perm": order}, weights=moved[0], output=moved[1])
    seen = attend(TOKENS, TOKENS, TOKENS, 0.5, causal_mask(3))
    example("d.s000.attn3.causal", x, weights=seen[0], output=seen[1])
    padding = np.array([0, 0, 1])
    seen = attend(TOKENS, TOKENS, TOKENS, 0.5, np.where(padding, -np.inf, 0.0)[None])
    example("d.s000.attn3.padding", x, {"key_padding": padding.tolist()}, weights=seen[0], output=seen[1])


def two_queries():
    qkv = {"Q": QUERIES, "K": KEYS, "V": VALUES}
    root = math.sqrt(3)
    weights, output = attend(QUERIES, KEYS, VALUES, 1 / root)
    example("s004.attn2x3", qkv, scores_scaled=QUERIES @ KEYS.T / root, weights=weights, row_sums=weights.sum(-1), output=output)
    blocked = np.array([[0, 0, 1], [0, 1, 1]])
    weights, output = attend(QUERIES, KEYS, VALUES, 1 / root, np.where(blocked, -np.inf, 0.0))
    example("d.s004.attn2x3.boolmask", {**qkv, "mask": blocked}, weights=weights, output=output)
    divisors = [root, 1.0, 0.1]
    example("d.s004.divisor", qkv, {"divisors": divisors}, weights=[attend(QUERIES, KEYS, VALUES, 1 / d)[0] for d in divisors])


def softmaxes():
    row = np.array([1, 0, 0.5])
    example("s000.softmax.row0", {"x": row}, exp=np.exp(row), sum=[np.exp(row).sum()], softmax=softmax(row))
    for name, x in (("s003.softmax.100", [100, 101, 102]), ("s003.softmax.1000", [1000, 1001, 1002]),
                    ("d.softmax.scaled10", [1000, 1010, 1020])):
        example(name, {"x": np.array(x, float)}, softmax=softmax(np.array(x, float)))
    example("s001.code.unstable_softmax", {"scaled_scores": [1000.0, 0.0]}, softmax=softmax(np.array([1000.0, 0.0])))
    multipliers, norms = [1, 10, 100], []
    for m in multipliers:
        p = softmax(m * np.array([1.0, 2.0, 3.0]))
        norms.append(np.linalg.norm(np.diag(p) - np.outer(p, p)))
    example("d.softmax.saturation.jacobian", {"x": [1.0, 2.0, 3.0]}, {"multipliers": multipliers}, jacobian_fro=norms)
    logits, temperatures = np.array([2, 1, 0.5, -1]), [0.25, 0.5, 1.0, 2.0, 10.0]
    example("d.temperature", {"logits": logits}, {"T": temperatures}, probs=[softmax(logits / t) for t in temperatures])
    widths = np.array([4, 64, 512])
    example("s004.variance", {"d_k": widths}, {"samples": 20000}, variance_raw={**array(widths), "rel_tol": 0.05},
            variance_scaled={**array([1, 1, 1]), "rel_tol": 0.05})


def masks_and_biases():
    example("s003.causal.4", {"n": 4}, {"fill": -1e9}, mask=np.where(np.isinf(causal_mask(4)), -1e9, 0.0))
    scores = np.array([0.5, 1, 2])
    example("d.mask.fully_masked", {"scores": scores}, double_additive=softmax(scores - 1e9),
            float32_additive=softmax((scores - 1e9).astype(np.float32)), minus_infinity="not a number, unless it is defined")
    distance = -0.5 * np.abs(np.arange(4)[None] - np.arange(4)[:, None])
    example("s000.alibi", {"n": 4}, {"m": 0.5}, bias=distance,
            attn3_weights_no_mask=attend(TOKENS, TOKENS, TOKENS, 0.5, distance[:3, :3])[0])
    example("d.alibi.slopes", {"H": 8}, slopes=[2.0 ** -(h + 1) for h in range(8)])
    tokens, padding = attend(TOKENS, TOKENS, TOKENS, 0.5)[1], np.array([0, 0, 1])
    real = tokens[padding == 0]
    example("d.pooling", {"tokens": tokens, "pad_mask": padding}, cls=tokens[0], mean_all=tokens.mean(0),
            mean_excluding_pad=real.mean(0), max_all=tokens.max(0), max_excluding_pad=real.max(0), last_all=tokens[-1],
            last_non_pad=real[-1])


def norms_and_activations():
    x, epsilon = np.array([1.0, 2.0, 3.0]), 1e-5
    y = layer_norm(x, epsilon)
    eps = {"eps": epsilon}
    example("s003.layernorm.123", {"x": x}, eps, mean=[x.mean()], var=[x.var()], std=[math.sqrt(x.var() + epsilon)], y=y,
            y_mean=[y.mean()], y_var=[y.var()])
    example("s000.layernorm.variant", {"x": x}, eps, y_std_plus_eps=layer_norm(x, epsilon, True), y_sqrt_var_plus_eps=y,
            y_eps0=layer_norm(x, 0))
    example("d.layernorm.tiny", {"x": x / 1000}, eps, y_std_plus_eps=layer_norm(x / 1000, epsilon, True),
            y_sqrt_var_plus_eps=layer_norm(x / 1000, epsilon))
    x = np.random.default_rng(1).integers(-8, 9, (2, 3, 4)) / 4
    x[1, 1] = 0.75  # a constant row
    example("d.layernorm.2x3x4", {"x": x}, eps, y=layer_norm(x, epsilon))
    example("d.rmsnorm.2x3x4", {"x": x}, eps, y=x / np.sqrt((x ** 2).mean(-1, keepdims=True) + epsilon))
    example("s003.ln.keepdims", {"x_shape": [2, 3, 4]}, mean_no_keep=x.mean(-1).shape,
            mean_keep=x.mean(-1, keepdims=True).shape, centered=(x - x.mean(-1, keepdims=True)).shape)
    x = np.array([-3, -1, -0.5, 0, 0.5, 1, 2, 3])
    erf = np.array([math.erf(v / math.sqrt(2)) for v in x])
    example("s000.gelu", {"x": x}, gelu_tanh=gelu_tanh(x), gelu_erf=0.5 * x * (1 + erf), relu=np.maximum(x, 0),
            silu=x / (1 + np.exp(-x)))


def positions():
    example("s003.pe.4x4", {"seq_len": 4, "d_model": 4}, pe=waves(4, 4))
    example("d.pe.6x8", {"seq_len": 6, "d_model": 8}, pe=waves(6, 8))
    rows, dims = [1, 50, 100, 1000], [0, 1, 2, 3, 254, 255, 256, 257, 510, 511]
    example("d.pe.512.samples", {"positions": rows, "dims": dims, "d_model": 512}, pe=waves(1001, 512)[np.ix_(rows, dims)])
    example("s003.pe.properties", {"seq_len": 512, "d_model": 64}, abs_max_le=[1.0],
            distinct_rows=[len(np.unique(waves(512, 64), axis=0))])
    shift = np.zeros((8, 8))
    for j in range(4):
        angle = 7 * 10000.0 ** (-2 * j / 8)
        shift[2 * j:2 * j + 2, 2 * j:2 * j + 2] = [[math.cos(angle), math.sin(angle)], [-math.sin(angle), math.cos(angle)]]
    example("s00x.pe.shift", {"k": 7, "d_model": 8}, M=shift)
    turn = 2 * math.pi
    example("s004.pe.wavelength", {"d_model": 512}, first=[turn], last_exact=[turn * 10000.0 ** (510 / 512)], limit=[turn * 1e4])
    example("s002.pe.lowfreq", fact="frequencies fall with the index of the pair")
    example("s00x.pe.added", shape_rule="(B,S,D)+(S,D)->(B,S,D)")
    q, k = np.array([0.5, -1, 0.25, 2, 1, 0, -0.5, 0.75]), np.array([1, 0.5, -0.25, 1, 0.5, -1, 2, 0.25])

    def turned(x, position):
        z = (x[0::2] + 1j * x[1::2]) * np.exp(1j * position * 10000.0 ** (-np.arange(0, 8, 2) / 8))
        return np.stack([z.real, z.imag], -1).reshape(-1)

    pairs = [[5, 2], [15, 12], [105, 102], [2, 5], [0, 0]]
    example("s00x.rope.relative", {"q": q, "k": k}, {"pairs_mn": pairs}, dots=[turned(q, m) @ turned(k, n) for m, n in pairs],
            rope_q_at_5=turned(q, 5))


def blocks():
    draw = np.random.default_rng(2)
    x = draw.normal(size=(3, 8))
    wq, wk, wv = (draw.normal(size=(4, 8, 2)) * 0.5 for _ in range(3))
    wo, w1, w2 = draw.normal(size=(8, 8)) * 0.5, draw.normal(size=(8, 32)) * 0.5, draw.normal(size=(32, 8)) * 0.5
    fused = [np.concatenate(list(w), -1) for w in (wq, wk, wv)]
    y = heads(x, *fused, wo, 4)
    inputs = {"X": x, "W_Q": wq, "W_K": wk, "W_V": wv, "W_O": wo}
    example("s000.mha.3x8", inputs, output_shape=y.shape, output=y)

    def post_norm(outside):
        h = layer_norm(x + y, 1e-5, outside)
        return layer_norm(h + gelu_tanh(h @ w1) @ w2, 1e-5, outside)

    example("s000.block.3x8", {**inputs, "W1": w1, "W2": w2}, {"eps": 1e-5}, output_shape=y.shape,
            output_std_plus_eps=post_norm(True), output_sqrt_var_plus_eps=post_norm(False))
    x = draw.integers(-7, 8, (4, 8)) / 8
    wq, wk, wv, wo = (draw.integers(-4, 5, (8, 8)) / 8 for _ in range(4))
    w1, w2 = draw.integers(-4, 5, (8, 16)) / 8, draw.integers(-4, 5, (16, 8)) / 8
    inputs = {"X": x, "W_q": wq, "W_k": wk, "W_v": wv, "W_o": wo, "W_1": w1, "W_2": w2}

    def pre_norm(mask):
        h = x + heads(layer_norm(x, 1e-5), wq, wk, wv, wo, 2, mask)
        return h + np.maximum(layer_norm(h, 1e-5) @ w1, 0) @ w2

    example("d.s001.preLN.block", inputs, {"eps": 1e-5}, output=pre_norm(0.0), output_causal=pre_norm(causal_mask(4)))
    placed = x + waves(4, 8)
    h = layer_norm(placed + heads(placed, wq, wk, wv, wo, 2), 1e-5)
    example("d.s003.postLN.block", inputs, {"eps": 1e-5}, output=layer_norm(h + np.maximum(h @ w1, 0) @ w2, 1e-5))
    example("d.kvcache.property", inputs, mha_causal=heads(x, wq, wk, wv, wo, 2, causal_mask(4)))
    wq, wk, wv = (draw.integers(-5, 6, (4, n)) / 10 for n in (2, 2, 3))
    weights, output = attend(TOKENS @ wq, TOKENS @ wk, TOKENS @ wv, 1 / math.sqrt(2))
    example("d.s001.selfattn", {"X": TOKENS, "W_q": wq, "W_k": wk, "W_v": wv}, weights=weights, output=output)
    columns = np.arange(24.0).reshape(3, 8)
    example("d.split_heads", {"X": columns}, {"num_heads": 4, "d_k": 2}, heads=columns.reshape(3, 4, 2).swapaxes(0, 1))


def shapes():
    b, t, c, h, d = 32, 100, 512, 8, 64
    example("s003.shapes.mha", {"batch": b, "seq": t, "d_model": c, "num_heads": h, "d_k": d}, input=[b, t, c],
            project_q=[b, t, c], reshape_heads=[b, t, h, d], transpose=[b, h, t, d], scores=[b, h, t, t], attn_times_v=[b, h, t, d],
            merge_heads=[b, t, c], output_projection=[b, t, c])
    example("s003.shapes.sdpa", scores="(B,Sq,dk)x(B,dk,Sk)->(B,Sq,Sk)", output="(B,Sq,Sk)x(B,Sk,dv)->(B,Sq,dv)",
            single_head="(B,Sq,D),(B,Sk,D)->(B,Sq,dv)")
    example("s003.code.bug4d", fact="no")


def sizes():
    example("s000.scale.64", {"d_k": 64}, sqrt=math.sqrt(64))
    example("s003.sqrt512", {"d_k": 512}, sqrt=math.sqrt(512))
    example("s000.headdim.768", {"d_model": 768, "h": 12}, d_k=64, concat=768, W_O_rows=768, W_O_cols=768)
    example("s004.headdim.512", {"d_model": 512, "h": 8}, d_k=64, d_v=64, sqrt_d_k=8.0, concat=512)
    example("s000.ffn.4x.bert", {"d_model": 768, "ratio": 4}, d_ff=4 * 768)
    example("s003.ffn.4x.base", {"d_model": 512, "ratio": 4}, d_ff=4 * 512)
    example("s002.gpt3.heads", {"heads": 96, "layers": 96}, total=96 * 96)
    example("s001.pairs", {"n": [1000, 100000]}, pairs_1k=1000 ** 2, pairs_100k=100000 ** 2)
    n, window = 100, 16
    example("d.window.pairs", {"n": n, "window": window}, full=n * n, causal=n * (n + 1) // 2,
            causal_window=sum(min(i + 1, window) for i in range(n)))
    cost = {f"at_n{n}_d512": {"info": {"recurrent": n * 512 ** 2, "self_attention": n * n * 512}} for n in (512, 100, 1000)}
    example("s004.complexity", recurrent={"info": {"cost": "n*d^2", "sequential": "n", "path": "n"}},
            self_attention={"info": {"cost": "n^2*d", "sequential": "1", "path": "1"}}, crossover="n = d", **cost)
    example("s000.mha.cost", {"d_model": [512, 768], "h": [8, 12]}, per_projection=[512 ** 2, 768 ** 2])
    d, f = 512, 2048
    bare = 4 * d * d + 2 * d * f
    example("s003.params.base_layer", {"d_model": d, "d_ff": f, "num_heads": 8}, attention=4 * d * d, ffn1=d * f, ffn2=f * d,
            total=bare, total_with_biases_and_norms=bare + 4 * d + f + d + 4 * d)
    example("s003.config.base", d_model=512, d_ff=2048, num_heads=8, d_k=64, d_v=64, num_layers_encoder=6, num_layers_decoder=6)
    vocabularies = [65, 128, 256]
    params = np.array([3 * 12 * 64 ** 2 + 2 * 64 * v for v in vocabularies])
    example("s001.tiny", {"d_model": 64, "num_heads": 4, "blocks": 3, "d_ff": 256, "context": 64}, {"V": vocabularies},
            params_no_norm=params, params_with_affine_norm=params + 3 * 4 * 64, generated_length="one more than asked for")


def bert(layers, d):
    layer = 12 * d * d + 13 * d  # matrices; biases 4 + 4 + 1, norms 4
    return layers * layer + (30522 + 512 + 2) * d + 2 * d + d * d + d


def gpt(layers, d, context):
    return layers * (12 * d * d + 13 * d) + (50257 + context) * d + 2 * d


def llama_70b():
    d, f, layers = 8192, 28672, 80
    return layers * (2 * d * d + 2 * d * 1024 + 3 * d * f + 2 * d) + 2 * 32000 * d + d


def published():
    for name, layers, heads_, d, year, exact in (
            ("bert_base", 12, 12, 768, 2018, bert(12, 768)), ("bert_large", 24, 16, 1024, 2018, bert(24, 1024)),
            ("gpt2_xl", 48, 25, 1600, 2019, gpt(48, 1600, 1024)), ("gpt3", 96, 96, 12288, 2020, gpt(96, 12288, 2048)),
            ("llama2_70b", 80, 64, 8192, 2023, llama_70b()), ("gpt4", 120, 96, 12288, 2023, None)):
        expected = {"head_dim": d // heads_, "params_12Ld2": 12 * layers * d * d}
        if exact:
            expected["params_exact"] = exact
        example(f"s000.model.{name}", {"layers": layers, "heads": heads_, "d_model": d, "year": year}, **expected)
    example("s000.params.formula", formula="12 L d^2 + V d", bert_base_12Ld2_plus_Vd=12 * 12 * 768 ** 2 + 30522 * 768,
            gpt3_12Ld2_plus_Vd=12 * 96 * 12288 ** 2 + 50257 * 12288)
    example("s000.flops.6nd", {"N": 175e9, "D": 300e9}, flops_nominal=6 * 175e9 * 300e9,
            flops_exact_N=6 * gpt(96, 12288, 2048) * 300e9)
    speed, price = 28e12, 1.5  # of a V100, as estimated for Brown et al. 2020, and its price per hour
    hours = 3.14e23 / speed / 3600
    example("s000.cost.gpt3", {"flops": 3.14e23}, {"external_throughput_flops": speed, "external_usd_per_gpu_hour": price},
            gpu_hours=hours, usd=hours * price)
    example("s000.scaling.kaplan", loss_factor_on_doubling_N=2 ** -0.076, loss_factor_on_doubling_D=2 ** -0.095,
            loss_at_N_175e9=(8.8e13 / 175e9) ** 0.076)


def claims():
    """Adds claims that need no computation, so that the tests list each of them."""
    example("s001.gpt4.moe", {"experts": 8, "per_expert_B": 220}, total_B=8 * 220)
    example("s004.path50", {"i": 1, "j": 50}, steps=49)
    example("s000.emergence", few_shot_params=1e9, chain_of_thought_params=1e11)
    example("s00x.defaults", s000={"info": {}}, s001={"info": {}}, s003={"info": {}}, s004={"info": {}})
    example("s001.compare", speedup_training=[3, 5], long_range_tokens=1000, lstm_decay_step=50, gap_tokens_example=30)
    example("s001.translation", direction="en->fr")
    example("s00x.sentences", sentences={"info": []}, ambiguous_word={"info": []}, pronoun={"info": []})


def main():
    for work in (by_hand, two_queries, softmaxes, masks_and_biases, norms_and_activations, positions, blocks, shapes, sizes,
                 published, claims):
        work()
    write_lines(GOLDENS / "worked_examples.json", EXAMPLES, '{"examples": [\n', "\n]}\n")
    print(f"worked_examples.json: {len(EXAMPLES)} examples")


if __name__ == "__main__":
    main()
