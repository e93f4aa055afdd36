"""Options from the environment and from configuration files, and the names of models."""
import json
import os
import shutil
import unittest

from support import FoveaTest, fovea


class Sources(FoveaTest):
    def said(self, *options, env=None):
        return json.loads(self.ok(fovea("generate", self.model(), "-p", "The ", "--json", "--seed", 3, *options, env=env)).stdout)

    def dumped(self, *arguments, env=None):
        return json.loads(self.ok(fovea(*arguments, "--dump-config", env=env)).stdout)

    def test_the_command_line_precedes_the_environment_and_a_file(self):
        both = {"FOVEA_PREDICT": "5", "FOVEA_CONFIG": str(self.file("options.yaml", "generate:\n  predict: 7\n  top-k: 1\n"))}
        self.assertEqual(self.said("-n", 3, env=both)["tokens"], 3)
        self.assertEqual(self.said(env=both)["tokens"], 5)
        self.assertEqual(self.said(env={"FOVEA_CONFIG": both["FOVEA_CONFIG"]})["tokens"], 7)
        self.assertEqual(self.said("--config", both["FOVEA_CONFIG"])["ids"], self.said("-n", 7, "--greedy")["ids"])
        self.assertEqual(self.said()["tokens"], 256)

    def test_a_model_and_flags_are_options_too(self):
        env = {"FOVEA_MODEL": str(self.model()), "FOVEA_ECHO": "true", "FOVEA_GREEDY": "0", "FOVEA_PREDICT": "4"}
        self.assertTrue(self.ok(fovea("generate", "-p", "The ", env=env)).stdout.startswith(b"The "))
        self.assertFalse(self.ok(fovea("generate", "-p", "The ", env={**env, "FOVEA_ECHO": "0"})).stdout.startswith(b"The "))

    def test_a_dumped_configuration_gives_the_same_result(self):
        options = ["-n", 9, "--temperature", "0.7", "--stop", "~~", "--stop", "x,y", "--ignore-eos", "--top-p", "0.9"]
        config = self.dumped("generate", self.model(), "-p", "The ", "--seed", 3, "--json", *options)
        self.assertEqual(config["generate"]["stop"], ["~~", "x,y"])
        self.assertEqual((config["generate"]["predict"], config["generate"]["ignore_eos"]), (9, True))
        path = self.file("options.json", json.dumps(config))
        again = json.loads(self.ok(fovea("generate", "--config", path)).stdout)
        self.assertEqual(again["ids"], self.said(*options)["ids"])
        self.assertEqual(self.dumped("generate", "--config", path), config)

    def test_every_verb_has_the_options(self):
        for verb, table in json.loads(fovea("--list-options").stdout).items():
            names = {option["name"] for option in table}
            self.assertTrue({"--config", "--dump-config"} <= names, verb)

    def test_a_file_may_hold_several_verbs(self):
        path = self.file("all.yaml", "# for all\ngenerate: {predict: 4, top_k: 1}\nchat:\n  system: 'Be kind: always.'\ntrain:\n  steps: 3\n")
        self.assertEqual(self.said("--config", path)["tokens"], 4)
        self.assertEqual(self.dumped("chat", "--config", path), {"chat": {"system": "Be kind: always."}})
        self.assertEqual(self.dumped("train", "--config", path)["train"]["steps"], 3)
        self.assertEqual(self.dumped("embed", "--config", path), {"embed": {}})

    def test_training_reads_yaml_and_the_environment(self):
        path = self.file("run.yaml", "width: 96\ncontext: 64\ndecoder:\n  layers: 3\n  attention: {heads: 4}\ntrain:\n  steps: 77\n  batch: 5\n  freeze: [0-1]\n")
        config = self.dumped("train", "--config", path, env={"FOVEA_BATCH": "6"})
        self.assertEqual((config["width"], config["train"]["steps"], config["train"]["batch"], config["train"]["freeze"]), (96, 77, 6, ["0-1"]))
        self.ok(fovea("plan", path))
        self.assertEqual(self.dumped("train", "--config", path, "--batch", "7", env={"FOVEA_BATCH": "6"})["train"]["batch"], 7)

    def test_errors_name_the_source(self):
        model = self.model()

        def refused(content, *mentions, name="options.yaml"):
            self.refused(fovea("generate", model, "-p", "a", "--config", self.file(name, content)), 2, *mentions)

        self.refused(fovea("generate", model, "-p", "a", env={"FOVEA_TEMPERATURE": "warm"}), 2, 'FOVEA_TEMPERATURE: "warm" is not a number; expected 0 to 100')
        refused("generate:\n  temperature: warm\n", 'options.yaml: generate.temperature: "warm" is not a number')
        refused("generate:\n  temperatur: 1\n", "generate.temperatur: unknown key; did you mean temperature?")
        refused("generate: 3\n", '"generate" is not an object')
        refused("temperature: 1\n", "temperature: not the name of a verb; expected \"generate\" with options")
        refused("generate:\n  top_k: 1\n  top_k: 2\n", "options.yaml:3: \"top_k\" is repeated")
        refused("generate:\n\ttop_k: 1\n", "options.yaml:2:", "expected YAML or JSON")
        refused("a: &x 1\nb: *x\n", "options.yaml:2: an alias")
        refused("a: !!int 3\n", "options.yaml:1: a tag")
        refused("--- {}\n--- {}\n", "a second document")
        refused("- 1\n", "not an object")
        refused("", "not an object")
        refused("a: " + "[" * 200, "nested deeper than 64 levels")
        refused('{"generate": {"top_k": 1,}}', "options.json", name="options.json")
        refused("generate:\n  help: true\n", "generate.help: unknown key")
        self.refused(fovea("generate", model, "--config", self.folder / "none.yaml"), 2, "none.yaml: cannot be read")


class Models(FoveaTest):
    def cached(self, name):
        """Puts the model into a cache as huggingface_hub lays it out. Returns the environment for it."""
        home = self.folder / "hub home"
        folder = home / "hub" / ("models--" + name.replace("/", "--"))
        snapshot = folder / "snapshots" / ("0123abcd" * 5)
        (folder / "blobs").mkdir(parents=True)
        snapshot.mkdir(parents=True)
        for i, file in enumerate(sorted(self.model().glob("*.*"))):
            if file.is_file():
                shutil.copy(file, folder / "blobs" / str(i))
                (snapshot / file.name).symlink_to(f"../../blobs/{i}")
        (folder / "refs").mkdir()
        (folder / "refs" / "main").write_text("0123abcd" * 5)
        return {"HF_HOME": str(home)}

    def test_a_name_of_the_hub_is_found_in_the_cache(self):
        env = self.cached("someone/small")
        command = ("-p", "The ", "-n", "8", "--greedy")
        expected = self.ok(fovea("generate", self.model(), *command)).stdout
        self.assertEqual(self.ok(fovea("generate", "someone/small", *command, env=env)).stdout, expected)
        self.assertEqual(self.ok(fovea("generate", self.model(), *command, "--draft", "someone/small", env=env)).stdout, expected)
        self.ok(fovea("plan", "someone/small", env=env))
        self.ok(fovea("tokenize", "someone/small", input=b"The", env=env))
        hub = {"HF_HOME": "/none", "HF_HUB_CACHE": env["HF_HOME"] + "/hub"}
        self.ok(fovea("generate", "someone/small", *command, env=hub))

    def test_a_folder_has_precedence(self):
        env = self.cached("someone/small")
        (self.folder / "someone" / "small").mkdir(parents=True)
        self.refused(fovea("generate", "someone/small", "-p", "a", env=env, cwd=self.folder), 2, "someone/small: has no config.json")

    def test_a_missing_model_has_one_text(self):
        env = {"HF_HOME": str(self.folder)}
        hint = "someone/none: is not on this disk; to fetch it from the Hugging Face Hub, expected 'fovea pull someone/none' before, or --yes"
        for command in (["generate", "someone/none", "-p", "a"], ["chat", "someone/none"], ["eval", "someone/none", self.text], ["serve", "someone/none"],
                        ["trace", "someone/none", "--text", "a", "--list"], ["embed", "someone/none", self.text],
                        ["translate", "someone/none", self.text], ["convert", "someone/none", self.folder / "out"], ["inspect", "someone/none", "a"],
                        ["tokenize", "someone/none", self.text], ["classify", "someone/none", self.text], ["bench", "someone/none"],
                        ["rerank", "someone/none", "--query", "a", self.text], ["train", self.text, "--from", "someone/none", "--out", self.folder / "out"]):
            with self.subTest(command[0]):
                self.refused(fovea(*command, env=env), 2, hint)
        self.refused(fovea("plan", "someone/none", env=env), 2, "someone/none: is missing; expected a model's directory with config.json in it, or a .gguf "
                     "file (to fetch it from the Hugging Face Hub: fovea pull someone/none)")
        self.refused(fovea("generate", "none.gguf", "-p", "a", env=env), 2, "none.gguf: is missing; expected a model's directory with config.json in it, or a .gguf file")


class Version(FoveaTest):
    def test_the_version_names_cpu_and_libraries(self):
        lines = self.ok(fovea("--version")).stdout.decode().splitlines()
        self.assertRegex(lines[0], r"^fovea \d+\.\d+\.\d+( \(commit [0-9a-f]{12}\))?$")
        self.assertRegex(lines[2], r"^libraries: fmt \d.*, Highway \d.*, PCRE2 \d.*, libyaml \d")
        self.assertEqual(self.ok(fovea("--version", env={"FOVEA_ISA": "avx2"})).stdout.decode().splitlines()[1], "CPU: avx2")


if __name__ == "__main__":
    unittest.main()
