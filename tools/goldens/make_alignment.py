#!/usr/bin/env python3
"""Writes tests/goldens/alignment: pairs of answers of the tiny Llama of tests/goldens/fine_tuning, and 20 steps of PyTorch's AdamW on them by
DPO, and by GRPO and PPO as if the model had written the answers and each chosen one had the reward 1.

    python3 tools/goldens/make_alignment.py      (needs: pip install torch transformers jinja2)

expected.safetensors contains the ids, the marks of the answers' tokens and the lengths of the texts (chosen and rejected in turn), and for
each run the losses and the final weights."""
import shutil

from harness import GOLDENS, adamw_steps, copies, one_thread, report, write_records, write_tensors
import torch
from make_fine_tuning import CONVERSATIONS, FOLDER as MODEL, opened
from transformers import AutoTokenizer

FOLDER = GOLDENS / "alignment"
STEPS, RATE, BETA = 20, 1e-3, 0.1
CLIP, KL, LAMBDA, CLIP_VALUE, VALUE_WEIGHT = 0.2, 0.04, 0.95, 0.2, 0.1


def pairs():
    """Returns records: the last answer of a conversation is preferred to that of the next one."""
    found = []
    for i, talk in enumerate(CONVERSATIONS):
        other = CONVERSATIONS[(i + 1) % len(CONVERSATIONS)][-1][1]
        prompt = [{"role": role, "content": text} for role, text in talk[:-1]]
        found.append({"prompt": prompt, "chosen": [{"role": "assistant", "content": talk[-1][1]}],
                      "rejected": [{"role": "assistant", "content": other}]})
    return found


def texts_of(records):
    """Returns the ids of each text and which of them belong to the answer."""
    tokenizer = AutoTokenizer.from_pretrained(MODEL / "model")

    def rendered(messages):
        made = tokenizer.apply_chat_template(messages, return_assistant_tokens_mask=True, return_dict=True)
        return made["input_ids"], made["assistant_masks"]

    ids, marks = [], []
    for record in records:
        before = sum(rendered(record["prompt"])[1])  # tokens of earlier answers
        for answer in ("chosen", "rejected"):
            tokens, mask = rendered(record["prompt"] + record[answer])
            earlier, own = 0, []
            for mark in mask:
                own.append(int(mark and earlier >= before))
                earlier += mark
            ids.append(tokens)
            marks.append(own)
    return ids, marks


class Batch:
    """All texts, padded on the right; `marks` are of the tokens that are predicted."""

    def __init__(self, ids, marks):
        longest = max(map(len, ids))
        self.ids, self.valid, self.marks = (torch.zeros(len(ids), longest, dtype=torch.long) for _ in range(3))
        for row, (tokens, own) in enumerate(zip(ids, marks)):
            self.ids[row, :len(tokens)] = torch.tensor(tokens)
            self.valid[row, :len(tokens)] = 1
            self.marks[row, :len(tokens)] = torch.tensor(own)
        self.marks = self.marks[:, 1:].bool()

    def read(self, model):
        """Returns the log-probability of each token after the first, and the states before them."""
        made = model(input_ids=self.ids, attention_mask=self.valid, output_hidden_states=True)
        log_p = torch.log_softmax(made.logits[:, :-1].float(), -1).gather(-1, self.ids[:, 1:, None])[..., 0]
        return log_p, made.hidden_states[-1][:, :-1]


def dpo_loss(batch, model, reference):
    sums = (batch.read(model)[0] * batch.marks).sum(1) - reference
    return -torch.nn.functional.logsigmoid(BETA * (sums[0::2] - sums[1::2])).mean()


def clipped(log_p, old, advantages):
    ratio = torch.exp(log_p - old)
    return -torch.min(ratio * advantages, ratio.clamp(1 - CLIP, 1 + CLIP) * advantages)


def grpo_loss(batch, model, old):
    log_p = batch.read(model)[0]
    rewards = torch.tensor([1.0, 0.0]).repeat(len(batch.ids) // 2)
    groups = rewards.view(-1, 2)
    advantages = ((groups - groups.mean(1, keepdim=True)) / (groups.std(1, keepdim=True) + 1e-4)).view(-1, 1)
    d = old - log_p
    losses = clipped(log_p, old, advantages) + KL * (torch.exp(d) - d - 1)
    return ((losses * batch.marks).sum(1) / batch.marks.sum(1)).mean()


def ppo_targets(batch):
    """Returns advantages and returns: values and divergences are 0 when the answers are written."""
    advantages = torch.zeros(batch.marks.shape)
    for row, marks in enumerate(batch.marks):
        reward, places = 1.0 - row % 2, marks.nonzero()[:, 0].tolist()
        for after, place in enumerate(reversed(places)):
            advantages[row, place] = reward * LAMBDA ** after
    returns = advantages.clone()
    all_of = advantages[batch.marks]
    return (advantages - all_of.mean()) / torch.sqrt(all_of.var() + 1e-8), returns


def ppo_loss(batch, model, head, old, targets):
    log_p, states = batch.read(model)
    advantages, returns = targets
    values = head(states)[..., 0]
    worst = torch.max((values - returns) ** 2, (values.clamp(-CLIP_VALUE, CLIP_VALUE) - returns) ** 2)
    return clipped(log_p, old, advantages)[batch.marks].mean() + VALUE_WEIGHT * 0.5 * worst[batch.marks].mean()


def main():
    one_thread()
    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    records = pairs()
    write_records(FOLDER / "pairs.jsonl", records)
    ids, marks = texts_of(records)
    batch = Batch(ids, marks)
    with torch.no_grad():
        old = batch.read(opened())[0]
    found = {"ids": torch.tensor(sum(ids, [])), "mask": torch.tensor(sum(marks, [])), "lengths": torch.tensor(list(map(len, ids)))}
    for run in ("dpo", "grpo", "ppo"):
        model, head = opened(), torch.nn.Linear(32, 1)
        torch.nn.init.zeros_(head.weight)
        torch.nn.init.zeros_(head.bias)
        parameters = list(model.parameters()) + (list(head.parameters()) if run == "ppo" else [])
        reference, targets = (old * batch.marks).sum(1), ppo_targets(batch)
        loss_of = {"dpo": lambda: dpo_loss(batch, model, reference), "grpo": lambda: grpo_loss(batch, model, old),
                   "ppo": lambda: ppo_loss(batch, model, head, old, targets)}[run]
        found[f"{run}.losses"] = adamw_steps(parameters, loss_of, STEPS, RATE)
        found |= copies((f"{run}.{name}", p) for name, p in model.named_parameters())
        if run == "ppo":
            found |= copies((f"ppo.value_head.{name}", p) for name, p in head.named_parameters())
        print(run, found[f"{run}.losses"][[0, 1, -1]].tolist())
    write_tensors(FOLDER / "expected.safetensors", found)
    report(FOLDER)


if __name__ == "__main__":
    main()
