"""Several processes that mpirun starts train together: the weights, the moments and the snapshots have the same bits for every number
of processes, also if that number changes between two parts of a run."""
import json
import shutil
import subprocess
import unittest

from chats_train_test import chat
from ranks_test import ENVIRONMENT, MPI, command_of, errors_in
from support import ROOT, SMALL, FoveaTest, digests, fovea, text_of

RANKS = (2, 3, 4, 8)
ENCODER = ["--preset", "bert-base", "--encoder-layers", 1, "--encoder-heads", 2, "--width", 32, "--context", 32]


@unittest.skipUnless(MPI, "no mpirun here, or a build without MPI")
class TrainRanks(FoveaTest):
    def on_ranks(self, ranks, *arguments, **more):
        if ranks == 1:
            return fovea(*arguments)
        return subprocess.run(command_of(ranks, *arguments), stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              timeout=300, env={**ENVIRONMENT, "OMP_NUM_THREADS": "1"}, check=False, **more)

    def trained(self, ranks, name, *arguments):
        out = self.folder / f"{name}-{ranks}"
        self.ok(self.on_ranks(ranks, "train", *arguments, "--out", out))
        return out

    def check_bits(self, name, *arguments, ranks=RANKS):
        """Returns the folder of the run in one process."""
        alone = self.trained(1, name, *arguments)
        self.assertTrue(digests(alone))
        for count in ranks:
            self.assertEqual(digests(self.trained(count, name, *arguments)), digests(alone), f"{name} on {count} ranks")
        return alone

    def check_evaluation(self, *arguments):
        alone = self.ok(fovea("eval", *arguments, "--json")).stdout
        for ranks in (2, 3):
            shared = self.ok(self.on_ranks(ranks, "eval", *arguments, "--json"))
            self.assertEqual(shared.stdout, alone, f"{arguments} on {ranks} ranks")
            self.assertNotIn(b"error", shared.stderr)

    def losses(self, out):
        lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        return [(line["step"], line[key]) for line in lines for key in ("loss", "grad_norm", "eval_loss") if key in line]

    def test_a_text_is_learnt_with_the_same_bits(self):
        arguments = (self.text, *SMALL, "--steps", 6, "--evaluate-every", 3, "--save-every", 4)
        alone = self.check_bits("text", *arguments)
        for ranks in RANKS:
            self.assertEqual(self.losses(self.folder / f"text-{ranks}"), self.losses(alone))
        self.check_evaluation(alone, self.text)
        self.check_evaluation(alone, self.text, "--context", 24, "--limit", 5)

    def test_a_mixture_of_texts_is_learnt_with_the_same_bits(self):
        other = self.file("other.txt", text_of(9000, 3).upper())
        data = (f"{self.text}:0.5", f"{other}:3")
        alone = self.check_bits("mixture", *data, *SMALL, "--steps", 6, "--evaluate-every", 3, "--save-every", 4, ranks=(2, 3))
        on_file = self.check_bits("file", *data, *SMALL, "--steps", 6, "--evaluate-every", 3, "--save-every", 4, "--token-cache", 0, ranks=(2,))
        self.assertEqual(digests(on_file), digests(alone))
        self.assertTrue((on_file / "tokens.bin").exists())

    def test_precisions_and_odd_batches_keep_the_bits(self):
        small = ("--steps", 3, "--sample-every", 0, "--layers", 1, "--heads", 2, "--width", 32, "--context", 16, "--preset", "tiny")
        self.check_bits("bf16", self.text, *small, "--dtype", "bf16", "--batch", 5, ranks=(2, 3))
        self.check_bits("fp32", self.text, *small, "--dtype", "fp32", "--batch", 6, "--accumulate", 3, ranks=(2, 4))
        self.check_bits("one", self.text, *small, "--batch", 1, ranks=(2,))
        self.check_bits("muon", self.text, *small, "--batch", 4, "--optimizer", "muon", "--average", 2, ranks=(3,))

    def test_other_objectives_of_text_keep_the_bits(self):
        small = ("--steps", 3, "--batch", 4, "--dropout", "0.1")
        masked = self.check_bits("masked", self.text, *ENCODER, "--head", "language_model", "--tokenizer", "wordpiece:120", *small, ranks=(2, 3))
        self.check_evaluation(masked, self.text)
        self.check_evaluation(masked, self.text, "--one-by-one", "--limit", 2)
        self.check_bits("spans", self.text, "--preset", "t5-small", "--layers", 1, "--encoder-layers", 1, "--heads", 2, "--encoder-heads", 2,
                        "--head-width", 8, "--encoder-head-width", 8, "--width", 16, "--ffn-width", 16, "--encoder-ffn-width", 16,
                        "--context", 32, *small, ranks=(2, 3))

    def test_chats_with_images_keep_the_bits(self):
        folder = ROOT / "tests/goldens/image_text/llava"
        self.check_bits("images", folder / "chats.jsonl", "--from", folder, "--validation", 0, "--steps", 3, "--batch", 3, "--dtype", "fp32",
                        ranks=(2, 3))

    def test_a_run_continues_on_another_number_of_ranks(self):
        arguments = (self.text, *SMALL, "--save-every", 2, "--keep", 9)
        whole = self.trained(1, "whole", *arguments, "--steps", 8)
        parts = self.folder / "parts"
        for steps, ranks in ((2, 3), (4, 1), (6, 4), (8, 2)):
            self.ok(self.on_ranks(ranks, "train", *arguments, "--steps", 8, "--out", parts))
            for later in range(steps + 2, 10, 2):  # as if the run had been stopped here
                shutil.rmtree(parts / f"checkpoint-{later}", ignore_errors=True)
        self.assertEqual(digests(parts), digests(whole))

    def test_adapters_for_conversations_keep_the_bits(self):
        chats = self.file("chats.jsonl", "".join(chat(f"What is {i}?", "a fox " * (i % 5 + 1)) + "\n" for i in range(40)))
        self.check_bits("chats", chats, "--from", self.chatml_base(), "--chat-template", "chatml", "--batch", 4, "--steps", 4,
                        "--lora", 4, "--lora-dropout", "0.1", "--sample-every", 0)

    def test_a_student_keeps_the_bits(self):
        teacher = self.trained(1, "teacher", self.text, *SMALL, "--steps", 4)
        folders = []
        for ranks in (1, 2, 3):
            out = self.folder / f"student-{ranks}"
            student = ("tiny", self.text, "--layers", 1, "--heads", 2, "--width", 16, "--context", 16, "--batch", 6, "--accumulate", 2, "--steps", 4)
            self.ok(self.on_ranks(ranks, "distil", teacher, *student, "--sample-every", 0, "--out", out))
            folders.append({name: digest for name, digest in digests(out).items() if not name.startswith("teacher")})
        self.assertTrue(folders[0])
        self.assertEqual(folders[1:], folders[:1] * 2)

    def test_a_student_that_writes_answers_keeps_the_bits(self):
        chats = self.file("chats.jsonl", "".join(chat(f"What is {i}?", "a fox " * (i % 5 + 1)) + "\n" for i in range(40)))
        base, folders, losses = self.chatml_base(), [], []
        for ranks in (1, 2, 3):
            out = self.folder / f"student-{ranks}"
            self.ok(self.on_ranks(ranks, "distil", base, base, chats, "--chat-template", "chatml", "--on-policy", "0.6", "--answer-tokens", 12,
                                  "--batch", 3, "--accumulate", 2, "--steps", 6, "--sample-every", 0, "--learning-rate", "0.001", "--out", out))
            folders.append({name: digest for name, digest in digests(out).items() if not name.startswith("teacher")})
            losses.append(self.losses(out))
        self.assertTrue(folders[0])
        self.assertEqual(folders[1:], folders[:1] * 2)
        self.assertEqual(losses[1:], losses[:1] * 2)
        self.assertIn("answer_tokens", (self.folder / "student-1/log.jsonl").read_text())

    def test_labels_keep_the_bits(self):
        labels = self.file("labels.tsv", "".join(f"{' '.join(text_of(20 + i % 7, i).split())}\t{'ab'[i % 2]}\n" for i in range(60)))
        alone = self.check_bits("labels", "--labels", labels, *ENCODER, "--batch", 12, "--steps", 4, "--dropout", "0.1")
        self.check_evaluation(alone, "--labels", labels)

    def test_translators_keep_the_bits(self):
        source = self.file("train.de", "".join(f"{' '.join(text_of(10 + i % 9, i).split())}\n" for i in range(60)))
        target = self.file("train.en", "".join(f"{' '.join(text_of(12 + i % 5, i + 99).split())}\n" for i in range(60)))
        alone = self.check_bits("pairs", "--preset", "translate-tiny", "--layers", 1, "--encoder-layers", 1, "--pairs", source, target, "--steps", 4,
                        "--evaluate-every", 2, "--tokenizer", "bpe:270", "--accumulate", 2, ranks=(2, 3, 8))
        self.assertTrue(any("bleu" in line for line in (alone / "log.jsonl").read_text().splitlines()))
        self.check_evaluation(alone, "--pairs", source, target, "--beams", 2)

    def test_experts_share_whole_passes(self):
        self.check_bits("experts", self.text, "--preset", "mixtral-8x7b", "--layers", 1, "--heads", 2, "--kv-heads", 2, "--width", 32, "--context",
                        32, "--tokenizer", "bpe:300", "--batch", 4, "--accumulate", 3, "--steps", 3, "--sample-every", 0, ranks=(2, 3))

    def test_preferences_keep_the_bits(self):
        pairs = self.file("pairs.jsonl", "".join(json.dumps({
            "prompt": [{"role": "user", "content": f"What is {i}?"}], "chosen": [{"role": "assistant", "content": "a fox " * (i % 4 + 1)}],
            "rejected": [{"role": "assistant", "content": "an eye " * (i % 3 + 1)}]}) + "\n" for i in range(30)))
        dpo = (pairs, "--from", self.chatml_base(), "--objective", "dpo", "--chat-template", "chatml", "--steps", 3, "--sample-every", 0)
        alone = self.check_bits("dpo", *dpo, "--batch", 8)
        self.assertEqual(self.losses(self.folder / "dpo-3"), self.losses(alone))
        self.check_bits("kto", *dpo, "--objective", "kto", "--batch", 4, ranks=(2,))
        reward = self.check_bits("reward", *dpo, "--objective", "reward", "--batch", 6, ranks=(2, 3))
        self.check_evaluation(reward, pairs)

    def test_an_embedder_keeps_the_bits(self):
        pairs = self.file("pairs.tsv", "".join(f"{' '.join(text_of(30 + i % 50, i).split())}\t{' '.join(text_of(40, i + 50).split())}\n"
                                               for i in range(600)))  # a step has several groups of passes
        model = ROOT / "tests/goldens/sentence_model"
        folders = []
        shards = ("--shard", "optimizer")
        for ranks, more in ((1, ()), *((ranks, ()) for ranks in RANKS), (2, shards), (3, shards)):
            out = self.folder / f"embedder-{ranks}-{len(more)}"
            self.ok(self.on_ranks(ranks, "embed", model, "--train", pairs, "--batch", 300, "--out", out, *more))
            folders.append(digests(out))
        self.assertTrue(folders[0])
        for found in folders[1:]:
            self.assertEqual(found, folders[0])

    def test_each_loss_of_an_embedder_keeps_the_bits(self):
        rows = self.file("triplets.tsv", "query\tpositive\tnegative\tscores\n" + "".join(
            f"the fox {i}\tthe eye {i % 7}\tlight {' falls' * (i % 5)}\t[{i % 4}, -{i % 3}]\n" for i in range(24)))
        for loss, more in (("kl", ()), ("angle", ()), ("gist", ("--guide", ROOT / "tests/goldens/embedder_losses/model"))):
            folders = []
            for ranks in (1, 3):
                out = self.folder / f"{loss}-{ranks}"
                self.ok(self.on_ranks(ranks, "embed", ROOT / "tests/goldens/sentence_model", "--train", rows, "--batch", 12, "--loss", loss, *more,
                                      "--learning-rate", "0.001", "--out", out))
                folders.append(digests(out))
            self.assertTrue(folders[0])
            self.assertEqual(folders[1], folders[0], loss)

    def test_models_that_search_keep_the_bits(self):
        rows = self.file("lists.tsv", "query\tpositive\tnegative\tscores\n" + "".join(
            f"the fox {i}\tthe eye {i % 7}\tlight {' falls' * (i % 5)}\t[{i % 4}, -{i % 3}]\n" for i in range(24)))
        for model, loss in (("sparse_model", "ranking"), ("multi_vector_model", "kl"), ("cross_encoder", "ranking"), ("cross_encoder", "lambda")):
            folders = []
            for ranks in (1, 3):
                out = self.folder / f"{model}-{loss}-{ranks}"
                self.ok(self.on_ranks(ranks, "embed", ROOT / "tests/goldens" / model, "--train", rows, "--batch", 12, "--loss", loss,
                                      "--learning-rate", "0.001", "--out", out))
                folders.append(digests(out))
            self.assertTrue(folders[0])
            self.assertEqual(folders[1], folders[0], f"{model} {loss}")

    def test_shards_of_the_optimizer_keep_the_bits(self):
        small = (self.text, *SMALL, "--batch", 5)
        for name, more in (("adamw", ()), ("muon", ("--optimizer", "muon")), ("adafactor", ("--optimizer", "adafactor")),
                           ("8bit", ("--moments", "8bit"))):
            alone = self.trained(1, name, *small, *more, "--steps", 4, "--save-every", 2)
            for ranks in (2, 3, 8) if name == "adamw" else (3,):
                shared = self.trained(ranks, name, *small, *more, "--steps", 4, "--save-every", 2, "--shard", "optimizer")
                self.assertEqual(digests(shared), digests(alone), f"{name} on {ranks} ranks")
                self.assertEqual(self.losses(shared), self.losses(alone))

    def test_shards_continue_on_another_number_of_ranks(self):
        arguments = (self.text, *SMALL, "--save-every", 2, "--keep", 9)
        whole = self.trained(1, "whole", *arguments, "--steps", 8)
        parts = self.folder / "parts"
        for steps, ranks in ((2, 3), (4, 1), (6, 4), (8, 2)):
            self.ok(self.on_ranks(ranks, "train", *arguments, "--steps", 8, *(("--shard", "optimizer") if ranks > 1 else ()), "--out", parts))
            for later in range(steps + 2, 10, 2):
                shutil.rmtree(parts / f"checkpoint-{later}", ignore_errors=True)
        self.assertEqual(digests(parts), digests(whole))

    def test_rounded_gradients_lead_to_nearly_the_same_losses(self):
        arguments = (self.text, *SMALL, "--steps", 30, "--evaluate-every", 10, "--batch", 4)
        alone = self.losses(self.trained(1, "exact", *arguments))
        for more in ((), ("--shard", "optimizer")):
            rounded = self.losses(self.trained(2, f"rounded{len(more)}", *arguments, "--gradients", "bf16", *more))
            self.assertEqual([step for step, _ in rounded], [step for step, _ in alone])
            self.assertNotEqual(rounded, alone)
            self.assertAlmostEqual(rounded[-1][1], alone[-1][1], delta=0.03 * alone[-1][1])

    def test_local_steps_lower_the_loss_and_continue_with_the_same_bits(self):
        arguments = (self.text, *SMALL, "--steps", 40, "--evaluate-every", 10, "--save-every", 10, "--keep", 9, "--batch", 4, "--sync-every", 5)
        whole = self.trained(2, "whole", *arguments)
        losses = [loss for _, loss in self.losses(whole)]
        self.assertLess(losses[-1], 0.9 * losses[0])
        parts = self.folder / "parts"
        shutil.copytree(whole, parts)
        for step in (20, 30, 40):
            shutil.rmtree(parts / f"checkpoint-{step}")
        self.ok(self.on_ranks(2, "train", *arguments, "--out", parts))
        self.assertEqual(digests(parts), digests(whole))
        self.refused_once(self.on_ranks(3, "train", *arguments, "--out", parts), "processes was 2 and is 3")
        self.refused_once(self.on_ranks(1, "train", *arguments, "--out", self.folder / "one"), "--sync-every", "one process")
        self.refused_once(self.on_ranks(2, "train", *arguments, "--shard", "optimizer", "--out", self.folder / "both"), "--shard")

    def test_evaluations_between_local_steps_wait_for_the_next_outer_step(self):
        out = self.trained(2, "waits", self.text, *SMALL, "--steps", 12, "--evaluate-every", 4, "--save-every", 0, "--sync-every", 5)
        lines = [json.loads(line) for line in (out / "log.jsonl").read_text().splitlines()]
        self.assertEqual([line["step"] for line in lines if "eval_loss" in line], [5, 10, 12])

    def test_answers_are_written_and_learnt_with_the_same_bits(self):
        self.ok(fovea("tokenize", "--train", "bpe", "--vocab-size", 257, self.text, "--out", self.folder / "tokenizer"))
        base = self.trained(1, "base", self.text, "--preset", "tiny", "--layers", 1, "--heads", 2, "--width", 16, "--batch", 1, "--context", 32,
                            "--tokenizer", self.folder / "tokenizer", "--steps", 2, "--sample-tokens", 0, "--seed", 7)
        prompts = self.file("prompts.jsonl", "".join(json.dumps({"prompt": f"{i}+1=", "answer": str(i + 1)}) + "\n" for i in range(9)))
        options = (prompts, "--from", base, "--prompts", 3, "--generations", 3, "--answer-tokens", 6, "--batch", 2, "--steps", 4, "--batch-epochs", 2,
                   "--validation", "0.25", "--kl-weight", "0.1", "--save-every", 2)
        for objective in ("grpo", "ppo"):
            alone = self.check_bits(objective, *options, "--objective", objective, "--reward", "exact", "0.5*regex:[0-9]", ranks=(2, 3, 4))
            self.assertEqual(self.losses(self.folder / f"{objective}-3"), self.losses(alone))
        # A program judges on rank 0 only.
        marks = self.folder / "marks"
        program = (*options, "--objective", "grpo", "--reward-command", f"echo once >> '{marks}'; while read line; do echo 1; done")
        alone = self.trained(1, "program", *program)
        calls = marks.read_text().count("once")
        self.assertEqual(digests(self.trained(3, "program", *program)), digests(alone))
        self.assertEqual(marks.read_text().count("once"), 2 * calls)

    def test_what_cannot_be_shared_is_refused_by_name(self):
        result = self.on_ranks(2, "train", self.text, "--out", self.folder / "electra", *ENCODER, "--objective", "replaced_tokens", "--steps", 2)
        self.refused_once(result, "--objective", "cannot be trained on 2 ranks")
        result = self.on_ranks(2, "eval", self.folder, "--sts", self.text)
        self.refused_once(result, "eval: cannot run on the 2 ranks")

    def refused_once(self, result, *mentions):
        told = errors_in(result.stderr.decode(errors="replace"))
        self.assertEqual(len(told), 1, result.stderr.decode(errors="replace"))
        self.assertNotEqual(result.returncode, 0)
        for mention in mentions:
            self.assertIn(mention, told[0])


if __name__ == "__main__":
    unittest.main()
