#!/usr/bin/env python3
"""Writes docs/claims.md from lab/results/*.json, which `fovea lab` and `fovea plan` make, from tests/goldens/worked_examples.json and from the
families in src/model/families. With --check, it writes nothing and exits with 1 if the page differs."""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE, RESULTS = ROOT / "docs/claims.md", ROOT / "lab/results"
TEXT = " --data bible.txt"

# Each claim with the experiments that test it, or the reason why none does.
CLAIMS = [
    ("CLM-01", "A Transformer trains 3 to 5 times faster than an RNN or LSTM", ["operations", "speed", "quality"]),
    ("CLM-02", "An LSTM's signal is much weaker by step 50", ["recall", "gradient-distance"]),
    ("CLM-03", "Scaling by sqrt(d_k) keeps the variance of scores at 1", ["score-variance"]),
    ("CLM-04", "Unscaled scores saturate the softmax; its gradient vanishes", ["saturation"]),
    ("CLM-05", "Many heads cost about as much as one wide head", ["wide-head"]),
    ("CLM-06", "Batched heads are faster than a loop over heads", ["head-loop"]),
    ("CLM-07", "Pre-norm is more stable at depth; post-norm is slightly better when tuned", ["norm-placement"]),
    ("CLM-08", "Residual connections are needed for depth", ["residuals"]),
    ("CLM-09", "Mean pooling beats the first token; an untuned first token is worse than word vectors", ["pooling"]),
    ("CLM-10", "Sinusoids extrapolate to unseen lengths", ["extrapolation"]),
    ("CLM-11", "ALiBi generalises to longer sequences without fine-tuning", ["extrapolation"]),
    ("CLM-12", "The dot product of rotary positions depends on the distance only", ["rotary-distance"]),
    ("CLM-13", "Attention is cheaper than recurrence only for n < d", ["operations", "crossover"]),
    ("CLM-14", "A tiny model learns the structure of a language in minutes on 1 MB", ["small-model"]),
    ("CLM-15", "Attention is equally strong at any distance", ["recall"]),
    ("CLM-16", "100,000 tokens are infeasible with full attention", ["long-context"]),
    ("CLM-17", "Loss follows a power law of size; doubling gives diminishing but steady gains", ["scaling"]),
    ("CLM-18", "GPT-3 took 3.14e23 FLOPs and 4.6 million dollars", None),
    ("CLM-19", "Abilities emerge at scale", ["emergence"]),
    ("CLM-20", "The specialisation of heads emerges by itself", ["induction", "head-removal"]),
    ("CLM-21", "Feed-forward layers store facts", ["neurons"]),
    ("CLM-22", "Layer norm makes training stable and less sensitive to the learning rate", ["norm"]),
    ("CLM-23", "The weights of causally masked keys are exactly zero", ["masked-weights"]),
    ("CLM-24", "Models scale up to trillions of parameters", None),
]
FURTHER = ["leaking-mask", "leaking-mask-short", "no-positions", "worked-steps"]

# The numbers that the five texts print and that are wrong: id of the worked example, what it is, the text, as printed.
WRONG = [
    ("s000.attn3.weights.row2", "attention weights of token 2", "S0", "0.307, 0.307, 0.387"),
    ("s000.attn3.weights.full", "the whole matrix of weights; its last row", "S0", "0.307, 0.307, 0.387"),
    ("s000.attn3.output.rows01", "outputs of tokens 0 and 1; the first element", "S0", "0.813"),
    ("s000.attn3.output.row2", "output of token 2", "S0", "0.694, 0.694, 0.307, 0.307"),
    ("s000.attn3.output.full", "the whole output; its last row", "S0", "0.694, 0.694, 0.307, 0.307"),
    ("s004.path50", "steps of a recurrence from word 1 to word 50", "S4", "50"),
    ("s003.softmax.100", "softmax of 100, 101, 102", "S3", "0, 0.27, 0.73"),
    ("s003.softmax.1000", "softmax of 1000, 1001, 1002", "S3", "0, 0, 1"),
    ("s002.pe.lowfreq", "which elements of sinusoids have low frequencies", "S2", "the even ones"),
    ("s003.code.bug4d", "whether the attention and multi-head functions work together", "S3", "yes"),
    ("s001.code.unstable_softmax", "softmax of 1000, 0 by its code", "S1", "NaN"),
]


def result(name):
    path = RESULTS / f"{name}.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else None


def command_of(found):
    """Returns the command that made a result."""
    name = found["experiment"]
    return f"fovea lab {name}{' --long' if found['form'] == 'full' else ''}{TEXT if name in TEXT_EXPERIMENTS else ''}"


def command(name, found):
    return f"`{command_of(found or {'experiment': name, 'form': 'brief'})}`"


def reads_text():
    """Returns the experiments that train on text."""
    names = set()
    for path in (ROOT / "contrib/lab/experiments").glob("*.cc"):
        source = path.read_text(encoding="utf-8")
        if ".reads_text = true" in source:
            names.add(re.search(r'\.name = "([^"]+)"', source)[1])
    return names


TEXT_EXPERIMENTS = reads_text()


def claim_rows(code, text, experiments):
    for name in experiments:
        found = result(name)
        if found is None:
            yield f"| {code} | {text or name.replace('-', ' ')} | not run | | {command(name, None)} |"
            continue
        own = [c for c in found["conclusions"] if code in c["claim"]]
        for conclusion in own or found["conclusions"]:
            verdict, _, numbers = conclusion["sentence"].partition(" (")
            about = text if text and code in conclusion["claim"] and len(experiments) == len(own) == 1 else conclusion["claim"].removeprefix(code + ": ")
            yield f"| {code} | {about} | **{verdict}** | {numbers.removesuffix(')')} | {command(name, found)} |"


def notes():
    """What happened to the rule or the form of an experiment after its first runs, from the result files."""
    for name in names():
        if (found := result(name)) and "history" in found:
            yield f"- `{name}`: {found['history']}"


def cost_of_gpt3():
    found = result("plan-gpt3")
    line = "`fovea plan gpt3 --tokens 300B --speed 28T --price 1.5`"
    if found is None:
        return f"| CLM-18 | {CLAIMS[17][1]} | not run | | {line} |"
    t = found["training"]
    return (f"| CLM-18 | {CLAIMS[17][1]} | **held** for the FLOPs; the price depends on assumptions | 6 N D = {t['rule_flops']:.4g}, every product "
            f"{t['flops']:.4g} FLOPs, {t['cost'] / 1e6:.2f} million dollars at 28 TFLOP/s and 1.50 dollars an hour | {line} |")


def trillions():
    return (f"| CLM-24 | {CLAIMS[23][1]} | cannot be tested here | a training of 1e12 parameters on 2e13 tokens takes 1.2e26 FLOPs: centuries of "
            "thousands of such machines; it takes a cluster of accelerators, whose price `fovea plan` estimates | `fovea plan --budget 1.2e26` |")


def convolutions():
    return ("| | Attention can replace convolutions for images | untested | fovea has no convolutional network to compare with; "
            "[images.md](images.md#digits) has results of a ViT alone | |")


def claims_table():
    yield "| | claim | verdict | what decided | command |"
    yield "|---|---|---|---|---|"
    for code, text, experiments in CLAIMS:
        if code == "CLM-18":
            yield cost_of_gpt3()
        elif code == "CLM-24":
            yield trillions()
        else:
            yield from claim_rows(code, text, experiments)
    for name in FURTHER:
        yield from claim_rows("", "", [name])
    yield convolutions()


def expected(example):
    """Returns the right numbers of a worked example as text."""
    if "fact" in example["expected"]:
        return example["expected"]["fact"]["text"]
    value = next(iter(example["expected"].values()))
    rows = value["data"] if isinstance(value["data"], list) else [value["data"]]
    width = value["shape"][-1] if value["shape"] else 1
    count = 1 if example["id"].endswith("rows01") else width
    last = rows[:count] if example["id"].endswith("rows01") else rows[-count:]
    return ", ".join(f"{x:.6g}" for x in last)


def wrong_table():
    examples = {e["id"]: e for e in json.loads((ROOT / "tests/goldens/worked_examples.json").read_text(encoding="utf-8"))["examples"]}
    yield "| text | number | as printed | right |"
    yield "|---|---|---|---|"
    for name, what, text, printed in WRONG:
        yield f"| {text} | {what} | {printed} | {expected(examples[name])} |"


def mean_of(name, series, x):
    found = result(name)
    for point in found["points"] if found else []:
        if point["series"] == series and (x is None or point["x"] == x):
            return point["mean"]
    return None


def cell(value, form="{:.3g}"):
    return "not run" if value is None else form.format(value)


def comparison_table():
    """Recurrence against attention (RNN-05), with every cell from our runs."""
    arms = ["attention", "rnn", "gru", "lstm"]
    yield "| | attention | RNN | GRU | LSTM |"
    yield "|---|---|---|---|---|"
    rows = [("thousands of operations per token of training, 64 tokens", "operations: training", 64), ("the same, 256 tokens", "operations: training", 256),
            ("microseconds per token of training, 64 tokens", "speed", 64), ("the same, 256 tokens", "speed", 256),
            ("loss on text after equal steps, nats per character", "quality", 64),
            ("log10 of the gradient at distance 50, relative to distance 1", "gradient-distance", 50),
            ("thousands of operations per token of one mixer, forward, 256 tokens", "operations: mixer", 256),
            ("microseconds per token of one mixer, forward, 256 tokens", "crossover", 256),
            ("accuracy of recall at distance 48", "recall", 48)]
    for title, name, x in rows:
        name, _, what = name.partition(": ")
        form = "{:,.0f}" if what == "training" else "{:.3g}"
        cells = [cell(mean_of(name, f"{arm}: {what}" if what else arm, x), form) if name != "recall" or arm in ("attention", "lstm") else "not measured" for arm in arms]
        yield f"| {title} | {' | '.join(cells)} |"


PAPERS = re.compile(r"\(([A-Z][\w\-' ]*?(?:et al\.|Team)[ \w,]*?\d{4}[^)]*)\)")


def families_table():
    """A row for each family: what its source says about positions, norms and the paper."""
    yield "| family | positions | norm | place of norms | paper |"
    yield "|---|---|---|---|---|"
    for row in json.loads((RESULTS / "families.json").read_text(encoding="utf-8")) if (RESULTS / "families.json").exists() else []:
        source = (ROOT / row["source"]).read_text(encoding="utf-8").replace("\n// ", " ")
        paper = PAPERS.search(source)
        yield f"| `{row['family']}` | {row['positions']} | {row['norm']} | {row['place']} | {paper[1] if paper else ''} |"


def page():
    machines = sorted({f"{r['machine']['cpu']} ({r['machine']['isa']})" for r in map(result, names()) if r and "machine" in r})
    yield "# Claims and verdicts"
    yield ""
    yield "<!-- written by tools/docs/write_claims.py -->"
    yield ""
    yield "Five texts that explain Transformers (S0 to S4) make 24 claims about speed and quality. This page tests each of them by an experiment of"
    yield "[`fovea lab`](lab.md), whose rule was written before its runs. A verdict is that of the rule and applies to the models and data of the"
    yield "experiment. It is *undecided* if the intervals over the seeds reach over the limit of the rule or overlap: such a result refutes nothing."
    yield "All numbers come from the files in `lab/results/`, written by `run_experiment()`, which the command calls; each has the text and the"
    yield "hash of its rule, and is void if the rule of the program is another one (`fovea lab judge`). `tools/records/judge_results.py` writes the verdicts"
    yield "into these files, and `tools/docs/write_claims.py` writes this page. Experiments that measure times (speed, crossover, wide-head, head-loop, long-context) ran alone."
    yield "The short forms use one learning rate; the long forms, which tune it for each side, were not run unless the command says `--long`."
    yield ""
    yield f"Machines: {', '.join(machines)}. The text is the first 1.1 MB of the King James Bible (`./run demo` makes the file)."
    yield ""
    yield "## Claims"
    yield ""
    yield from claims_table()
    yield ""
    yield "The verdict *undecided* is newer than these runs: it replaces *did not hold* where intervals overlap, and no other verdict became *held*."
    yield "What else changed after first runs:"
    yield ""
    yield from notes()
    yield ""
    yield "## Recurrence and attention"
    yield ""
    yield "At equal numbers of parameters, from the same files. Attention computes all positions at once, a recurrence one after the other."
    yield ""
    yield from comparison_table()
    yield ""
    yield "## Numbers that are wrong in the texts"
    yield ""
    yield "`tests/parity/worked_examples_test.cc` checks that fovea computes the right ones, which `tools/goldens/make_worked_examples.py` computes in NumPy."
    yield ""
    yield from wrong_table()
    yield ""
    yield "## Families"
    yield ""
    yield "Positions and norms as a converted model of each family has them (`tools/records/write_families.py`), papers from the sources."
    yield ""
    yield from families_table()


def names():
    return sorted(p.stem for p in RESULTS.glob("*.json") if p.stem not in ("families", "plan-gpt3"))


def main():
    text = "\n".join(page()) + "\n"
    if "--check" in sys.argv[1:]:
        sys.exit(0 if PAGE.exists() and PAGE.read_text(encoding="utf-8") == text else "docs/claims.md differs; run tools/docs/write_claims.py")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
