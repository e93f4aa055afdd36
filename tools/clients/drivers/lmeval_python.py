"""lm-evaluation-harness on tiny tasks: log-probabilities of prompts as token ids and as texts, and chats.

Needs MODEL_DIR for the tokenizer, as lm-eval sends token ids and counts the context's tokens itself."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

from steps import URL, finish, same, script, step

CHOICES = """task: tiny_choices
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: multiple_choice
doc_to_text: "{{question}}"
doc_to_choice: "{{choices}}"
doc_to_target: answer
metric_list: [{metric: acc}, {metric: acc_norm}]
"""
PERPLEXITY = """task: tiny_text
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: loglikelihood_rolling
doc_to_text: ""
doc_to_target: "{{question}}"
metric_list: [{metric: word_perplexity}]
"""
CHAT = """task: tiny_chat
dataset_path: json
dataset_kwargs: {data_files: {test: DATA}}
test_split: test
output_type: generate_until
doc_to_text: "{{question}}"
doc_to_target: "PLAIN"
generation_kwargs: {until: ["<stop>"], max_gen_toks: 64, temperature: 0}
metric_list: [{metric: exact_match}]
""".replace("PLAIN", script.PLAIN)
ROWS = [{"question": "The sky is", "choices": ["blue", "loud"], "answer": 0}, {"question": "Two and two are", "choices": ["five", "four"], "answer": 1}]


def evaluate(tasks, kind="local-completions", path="/v1/completions", arguments="", more=()):
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
        for name, text in (("tiny_choices", CHOICES), ("tiny_text", PERPLEXITY), ("tiny_chat", CHAT)):
            (folder / (name + ".yaml")).write_text(text.replace("DATA", str(folder / "rows.jsonl")))
        common = f"model={script.MODEL},base_url={URL}{path},tokenizer={os.environ['MODEL_DIR']},num_concurrent=2,max_retries=1,max_length=2048"
        p = subprocess.run([sys.executable, "-m", "lm_eval", "--model", kind, "--model_args", common + arguments, "--tasks", tasks, "--include_path", str(folder),
                            "--output_path", str(folder / "out"), *more],
                           env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_HUB_DISABLE_TELEMETRY": "1",
                                "HF_HOME": str(folder / "hf"), "DO_NOT_TRACK": "1"}, capture_output=True, text=True, timeout=240)
        found = list(folder.glob("out/**/results*.json"))
        if p.returncode != 0 or not found:
            raise AssertionError(f"exit code {p.returncode}: {p.stderr.strip()[-280:]}")
        return json.loads(found[0].read_text())["results"]


BOTH = "tiny_choices,tiny_text"
scores = {}


@step
def token_ids():
    scores.update(evaluate(BOTH))
    assert 0 <= scores["tiny_choices"]["acc,none"] <= 1 and scores["tiny_text"]["word_perplexity,none"] > 0, scores


@step
def texts():
    """Texts score as their token ids do."""
    scores["of texts"] = evaluate(BOTH, arguments=",tokenized_requests=False")
    same(scores["of texts"]["tiny_choices"]["acc,none"], scores["tiny_choices"]["acc,none"])


@step
def texts_with_end():
    """A text's perplexity begins with the end token by its name, which is one token to most servers."""
    ratio = scores["of texts"]["tiny_text"]["word_perplexity,none"] / scores["tiny_text"]["word_perplexity,none"]
    assert abs(ratio - 1) < 1e-3, f"the perplexity of texts is {ratio:.3g} times that of token ids"


@step
def chat():
    same(evaluate("tiny_chat", "local-chat-completions", "/v1/chat/completions", more=["--apply_chat_template"])["tiny_chat"]["exact_match,none"], 1.0)


finish()
