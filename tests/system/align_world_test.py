"""The small world of ./run align: its data and its true reward."""
import json
import pathlib
import random
import sys
import unittest

from support import FoveaTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools/demos"))
import align_world as world  # noqa: E402


class AlignWorld(FoveaTest):
    def test_the_true_reward_counts_manners(self):
        draw = random.Random(1)
        for manners, reward in (([0] * 6, 1), ([1] * 6, 0), ([2] * 6, -1), ([0, 1, 2, 0, 0, 0], 0.5)):
            text = world.answer(draw, "How is the barn of Ben?", manners)
            self.assertEqual(world.true_reward(text), reward, text)
        for text in ("", "Thank you.", "Hello Hello Hello", world.answer(draw, "How is the barn of Ben?", [0] * 6) + " Thanks."):
            self.assertEqual(world.true_reward(text), -1, text)

    def test_the_judge_prefers_better_answers_and_errs(self):
        world.write_world(self.folder / "world", 3)

        def records(name):
            return [json.loads(line) for line in (self.folder / "world" / name).read_text().splitlines()]

        differences = [world.true_reward(pair["chosen"]) - world.true_reward(pair["rejected"]) for pair in records("pairs.jsonl")]
        for places, right in ((1, 0.88), (2, 0.98)):  # sigmoid(CARE * places)
            judged = [each > 0 for each in differences if round(abs(each) * len(world.MANNERS)) == places]
            self.assertAlmostEqual(sum(judged) / len(judged), right, delta=0.03)
        seen = {record["prompt"] for name in ("pairs.jsonl", "prompts.jsonl") for record in records(name)}
        self.assertFalse(seen & {record["prompt"] for record in records("held_out.jsonl")})


if __name__ == "__main__":
    unittest.main()
