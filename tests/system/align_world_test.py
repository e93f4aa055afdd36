"""The small world of ./run align: its data and its true reward."""
import json
import pathlib
import random
import sys
import unittest

from support import FoveaTest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tools"))
import align_world as world  # noqa: E402


class AlignWorld(FoveaTest):
    def test_the_true_reward_counts_manners(self):
        draw = random.Random(1)
        for manners, reward in (((0, 0, 0, 0), 1), ((1, 1, 1, 1), 0), ((2, 2, 2, 2), -1), ((0, 1, 2, 0), 0.25)):
            text = world.answer(draw, "How is the barn of Ben?", manners)
            self.assertEqual(world.true_reward(text), reward, text)
        for text in ("", "Thank you.", "Hello Hello Hello", world.answer(draw, "How is the barn of Ben?", (0, 0, 0, 0)) + " Thank you."):
            self.assertEqual(world.true_reward(text), -1, text)

    def test_the_files_agree_with_the_true_reward(self):
        world.write_world(self.folder / "world", 3)

        def records(name):
            return [json.loads(line) for line in (self.folder / "world" / name).read_text().splitlines()]

        for pair in records("pairs.jsonl"):
            self.assertGreater(world.true_reward(pair["chosen"]), world.true_reward(pair["rejected"]))
        seen = {record["prompt"] for name in ("pairs.jsonl", "prompts.jsonl") for record in records(name)}
        self.assertFalse(seen & {record["prompt"] for record in records("held_out.jsonl")})


if __name__ == "__main__":
    unittest.main()
