#!/usr/bin/env python3
"""Aligns a small random Llama by DPO (sigmoid, IPO, hinge), KTO, ORPO, SimPO, GRPO and PPO with TRL and with `fovea train`, and compares the updates
of the weights after some steps.

Usage: compare_trl.py [--fovea PROGRAM] [--steps N] [METHOD...]. Needs: pip install torch transformers trl datasets. Each step uses all of the
data, so that their order does not matter. TRL reads the answers that fovea has written for GRPO and PPO from a snapshot. The last release of
TRL with PPO is 1.12; its value model reads the states of the policy here, as in fovea, and all answers have the maximum length, since TRL gives the
reward of a shorter one to the token after its last. TRL's ORPO also trains the
prompt; here it trains the answers only, as the paper does. TRL's GRPO multiplies the divergence by the ratio unless it is told otherwise, as here. Exits with 1 if an update differs by more than 1e-3 of its length."""
import argparse
import json
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

os.environ.update(TRL_EXPERIMENTAL_SILENCE="1", TRANSFORMERS_VERBOSITY="error")
sys.path.append(str(pathlib.Path(__file__).resolve().parents[1] / "goldens"))
from harness import add_program, one_thread  # noqa: E402
import torch
import transformers
import trl
from datasets import Dataset
from torch import nn
from safetensors.torch import load_file
from tokenizers import AddedToken, Tokenizer, models, pre_tokenizers
from trl.experimental.cpo import CPOConfig, CPOTrainer
from trl.experimental.orpo import ORPOConfig, ORPOTrainer

try:
    from trl.experimental.ppo import PPOConfig, PPOTrainer, ppo_trainer
except ImportError:
    PPOTrainer = None

WORDS = [f"w{i}" for i in range(60)]
MARKS = ["<pad>", "</s>", "<unk>", "<user>", "<assistant>"]
TEMPLATE = ("{% for m in messages %}{{ '<' + m['role'] + '> ' + m['content'] + ' </s> ' }}{% endfor %}"
            "{% if add_generation_prompt %}{{ '<assistant> ' }}{% endif %}")
RATE, RECORDS, TOLERANCE = 1e-3, 8, 1e-3
PROMPTS, ANSWERS, ANSWER_TOKENS, KL, REWARD = 4, 4, 8, 0.04, r"w[0-9]\b"
PPO_TOKENS = 6


def make_model(folder):
    tokenizer = Tokenizer(models.WordLevel({word: i for i, word in enumerate(MARKS + WORDS)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer.add_special_tokens([AddedToken(mark, special=True, normalized=False, lstrip=True, rstrip=True) for mark in MARKS])
    fast = transformers.PreTrainedTokenizerFast(tokenizer_object=tokenizer, pad_token="<pad>", eos_token="</s>", unk_token="<unk>")
    fast.chat_template = TEMPLATE
    fast.save_pretrained(folder)
    torch.manual_seed(3)
    config = transformers.LlamaConfig(vocab_size=len(MARKS + WORDS), hidden_size=32, intermediate_size=64, num_hidden_layers=2, num_attention_heads=4,
                                      num_key_value_heads=2, max_position_embeddings=64, initializer_range=0.1, bos_token_id=None, eos_token_id=1,
                                      pad_token_id=0, tie_word_embeddings=False)
    transformers.LlamaForCausalLM(config).save_pretrained(folder)


def make_records(same_length=False):
    generator = random.Random(4)

    def text():
        return " ".join(generator.choice(WORDS) for _ in range(6 if same_length else generator.randint(4, 9)))

    def message(role):
        return [{"role": role, "content": text()}]

    return [{"prompt": message("user"), "chosen": message("assistant"), "rejected": message("assistant")} for _ in range(RECORDS)]


def judged(records):
    """Returns single answers: every second one is desirable."""
    return [{"prompt": record["prompt"], "completion": record["rejected" if i % 2 else "chosen"], "label": i % 2 == 0}
            for i, record in enumerate(records)]


class OrpoOfAnswers(ORPOTrainer):
    def concatenated_forward(self, model, batch):
        found = list(super().concatenated_forward(model, batch))
        found[4] = -found[0].mean()  # the mean log-probability of the chosen answers' tokens
        return tuple(found)


def shared(folder, steps, count):
    return dict(output_dir=str(folder / "trl"), max_steps=steps, per_device_train_batch_size=count, gradient_accumulation_steps=1,
                learning_rate=RATE, lr_scheduler_type="constant", warmup_steps=0, weight_decay=0.0, adam_beta1=0.9, adam_beta2=0.999,
                adam_epsilon=1e-8, max_grad_norm=0.0, bf16=False, use_cpu=True, gradient_checkpointing=False, report_to="none",
                save_strategy="no", logging_steps=1, seed=1, disable_tqdm=True)


def ppo_trainer_of(model, tokenizer, folder, steps, written):
    """Returns a trainer that takes its steps on the generated answers, all in one batch."""
    answers = {prompt: each[0][0] for prompt, each in written.items()}
    value_model = transformers.LlamaForSequenceClassification(model.config)
    value_model.model = model.model
    value_model.score = nn.Linear(model.config.hidden_size, 1)
    nn.init.zeros_(value_model.score.weight)
    nn.init.zeros_(value_model.score.bias)
    judge, values_of = nn.Linear(1, 1), ppo_trainer.get_reward

    def batch_generation(policy, queries, _size, pad, _config):
        texts = torch.tensor([[*query, *answers[tuple(query)]] for query in queries.tolist()])
        logits = ppo_trainer.forward(policy, texts, pad).logits
        return texts, logits[:, queries.shape[1] - 1:-1]

    def get_reward(asked, texts, pad, length):
        if asked is not judge:
            return values_of(asked, texts, pad, length)
        scores = [float(re.search(REWARD, tokenizer.decode(text[length:])) is not None) for text in texts.tolist()]
        return None, torch.tensor(scores), None

    ppo_trainer.batch_generation, ppo_trainer.get_reward = batch_generation, get_reward
    options = shared(folder, steps, len(answers))
    del options["max_steps"]
    config = PPOConfig(**options, num_ppo_epochs=steps, num_mini_batches=1, total_episodes=len(answers), response_length=PPO_TOKENS,
                       num_sample_generations=0, temperature=1.0, kl_coef=0.05, vf_coef=0.1, gamma=1.0, lam=0.95, cliprange=0.2, cliprange_value=0.2)
    return PPOTrainer(args=config, processing_class=tokenizer, model=model, ref_model=None, reward_model=judge, value_model=value_model,
                      train_dataset=Dataset.from_list([{"input_ids": list(prompt)} for prompt in answers]))


def trainer_of(method, folder, steps, records, written):
    model = transformers.AutoModelForCausalLM.from_pretrained(folder / "model", dtype=torch.float32)
    tokenizer = transformers.AutoTokenizer.from_pretrained(folder / "model")
    if method == "ppo":
        return ppo_trainer_of(model, tokenizer, folder, steps, written)
    options = shared(folder, steps, RECORDS)
    given = dict(model=model, processing_class=tokenizer, train_dataset=Dataset.from_list(judged(records) if method == "kto" else records))
    if method in ("dpo", "ipo", "hinge"):
        loss = {"dpo": "sigmoid"}.get(method, method)
        return trl.DPOTrainer(args=trl.DPOConfig(**options, beta=0.1, loss_type=loss, disable_dropout=True), **given)
    if method == "kto":
        return trl.KTOTrainer(args=trl.KTOConfig(**options, beta=0.1, desirable_weight=1.2, undesirable_weight=1.0), **given)
    if method == "orpo":
        return OrpoOfAnswers(args=ORPOConfig(**options, beta=0.1, max_length=64), **given)
    if method == "simpo":
        return CPOTrainer(args=CPOConfig(**options, beta=2.0, simpo_gamma=0.5, loss_type="simpo", cpo_alpha=0.0, max_length=64), **given)
    prompts = list(dict.fromkeys(written))  # rendered, in order
    texts = {prompt: tokenizer.decode(prompt) for prompt in prompts}

    def rollout(asked, trainer):
        found = {"prompt_ids": [], "completion_ids": [], "logprobs": []}
        met = {prompt: 0 for prompt in prompts}
        for text in asked:
            prompt = next(p for p in prompts if texts[p] == text)
            answer, old = written[prompt][met[prompt] % ANSWERS]
            met[prompt] += 1
            found["prompt_ids"].append(list(prompt))
            found["completion_ids"].append(answer)
            found["logprobs"].append(old)
        return found

    def reward(completions, **_):
        return [float(re.search(REWARD, completion) is not None) for completion in completions]

    options["per_device_train_batch_size"] = PROMPTS * ANSWERS
    config = trl.GRPOConfig(**options, num_generations=ANSWERS, max_completion_length=ANSWER_TOKENS, num_iterations=steps, beta=KL,
                            loss_type="grpo", epsilon=0.2, temperature=1.0, scale_rewards="group", disable_dropout=True,
                            use_bias_correction_kl=False)
    given["train_dataset"] = Dataset.from_list([{"prompt": text} for text in texts.values()])
    return trl.GRPOTrainer(args=config, reward_funcs=reward, rollout_func=rollout, **given)


def align(program, method, folder, steps, records, seed=5):
    """Trains with fovea."""
    data = folder / "data.jsonl"
    made = judged(records) if method == "kto" else records
    if method in ("grpo", "ppo"):
        made = [{"prompt": record["prompt"]} for record in (records[:PROMPTS] if method == "grpo" else records)]
    data.write_text("".join(json.dumps(record) + "\n" for record in made))
    chosen = {"dpo": ["--objective", "dpo", "--beta", "0.1"], "ipo": ["--objective", "dpo", "--preference-loss", "ipo", "--beta", "0.1"],
              "hinge": ["--objective", "dpo", "--preference-loss", "hinge", "--beta", "0.1"],
              "kto": ["--objective", "kto", "--beta", "0.1", "--desirable-weight", "1.2"],
              "orpo": ["--objective", "orpo", "--orpo-lambda", "0.1"], "simpo": ["--objective", "simpo", "--beta", "2", "--simpo-gamma", "0.5"],
              "grpo": ["--objective", "grpo", "--prompts", str(PROMPTS), "--generations", str(ANSWERS), "--answer-tokens", str(ANSWER_TOKENS),
                       "--batch-epochs", str(steps), "--kl-weight", str(KL), "--reward", f"regex:{REWARD}"],
              "ppo": ["--objective", "ppo", "--prompts", str(RECORDS), "--generations", "1", "--answer-tokens", str(PPO_TOKENS), "--batch-epochs",
                      str(steps), "--reward", f"regex:{REWARD}"]}[method]
    batch = PROMPTS * ANSWERS if method == "grpo" else RECORDS
    out = folder / "out"
    subprocess.run([program, "train", data, *chosen, "--from", folder / "model", "--out", out, "--steps", str(steps), "--batch", str(batch), "--lr",
                    str(RATE), "--schedule", "constant", "--warmup", "0", "--weight-decay", "0", "--beta2", "0.999", "--clip", "0", "--validation",
                    "0", "--sample-every", "0", "--save-every", "1", "--keep", str(steps + 1), "--dtype", "fp32", "--seed", str(seed)],
                   check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    return out


def answers_in(out, records):
    """Returns the answers and their log-probabilities by the ids of their prompt."""
    state = load_file(out / "checkpoint-1/state.safetensors")
    ids, old, found, at, number = state["answers.ids"].tolist(), state["answers.old"].tolist(), {}, 0, 0
    for length, start in zip(state["answers.lengths"].tolist(), state["answers.prompts"].tolist()):
        text = ids[at:at + length]
        found.setdefault(tuple(text[:start]), []).append((text[start:], old[number:number + length - start]))
        at, number = at + length, number + length - start
    return found


def align_by_ppo(program, folder, steps, records):
    """Trains with answers of the maximum length without the token that TRL takes as padding."""
    for seed in range(100):
        out = align(program, "ppo", folder, steps, records, seed)
        written = answers_in(out, records)
        answers = [answer for each in written.values() for answer, _ in each]
        if all(len(answer) == PPO_TOKENS and not {0, 1} & set(answer) for answer in answers):
            return out, written
        shutil.rmtree(out)
    raise SystemExit("ppo: no seed gives answers that suit the comparison")


def weights(folder):
    return {name: tensor.double() for path in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(path).items()}


def difference(before, ours, theirs):
    moved = sum(((theirs[name] - before[name]) ** 2).sum() for name in before)
    apart = sum(((ours[name] - theirs[name]) ** 2).sum() for name in before)
    return float((apart / moved) ** 0.5)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--steps", type=int, default=20)
    add_program(parser)
    options = parser.parse_args()
    one_thread()
    worst = 0.0
    print(f"TRL {trl.__version__}, transformers {transformers.__version__}, torch {torch.__version__}")
    for method in options.methods or ["dpo", "ipo", "hinge", "kto", "orpo", "simpo", "grpo", "ppo"]:
        if method == "ppo" and PPOTrainer is None:
            print("ppo: not compared, since this release of TRL has none; 1.12 is the last one that has it")
            continue
        with tempfile.TemporaryDirectory() as holder:
            folder = pathlib.Path(holder)
            make_model(folder / "model")
            records = make_records(same_length=method == "ppo")
            if method == "ppo":
                out, written = align_by_ppo(options.fovea, folder, options.steps, records)
            else:
                out = align(options.fovea, method, folder, options.steps, records)
                written = answers_in(out, records) if method == "grpo" else {}
            trainer = trainer_of(method, folder, options.steps, records, written)
            trainer.remove_callback(transformers.PrinterCallback)
            trainer.train()
            (trainer.model.policy if method == "ppo" else trainer.model).save_pretrained(folder / "theirs")
            apart = difference(weights(folder / "model"), weights(out), weights(folder / "theirs"))
            losses = [line["loss"] for line in map(json.loads, (out / "log.jsonl").read_text().splitlines()) if "loss" in line]
            theirs = [line["loss"] for line in trainer.state.log_history if "loss" in line]
            worst = max(worst, apart)
            of_trl = f", TRL {theirs[0]:.6f} -> {theirs[-1]:.6f}" if theirs else ""
            print(f"{method}: update differs by {apart:.1e}; loss {losses[0]:.6f} -> {losses[-1]:.6f}{of_trl}", flush=True)
    return 1 if worst > TOLERANCE else 0


if __name__ == "__main__":
    sys.exit(main())
