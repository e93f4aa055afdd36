"""config.json with values that are impossible, unknown or deeply nested."""
import json
import unittest

from hostile import CONFIG, TOKENIZER, HostileTest

# JSON texts, since json.dumps() cannot write 1e400.
WRONG_NUMBERS = ["-1", "0", "0.5", "2147483648", "9223372036854775808", "1e12", "1e400", "NaN", '"x"', "true", "[]", "{}"]
WRONG_SWITCHES = ["-1", "2", '"x"', "[]", "{}"]
WRONG_NAMES = ["5", "true", "[]", "{}", '"nonesuch"', '""']
SIZES = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads", "num_key_value_heads", "head_dim",
         "max_position_embeddings"]
NEEDED = ["vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads"]
# Keys of this and other families, with values that would change the arithmetic: the error names the key.
FEATURES = {"sliding_window": 4, "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0, "query_pre_attn_scalar": 8,
            "layer_types": ["sliding_attention"], "use_sliding_window": True, "num_local_experts": 4, "num_experts_per_tok": 2,
            "quantization_config": {"bits": 4, "quant_method": "gptq"}, "is_encoder_decoder": True, "is_decoder": True,
            "add_cross_attention": True, "position_embedding_type": "relative_key", "embedding_multiplier": 12.0, "logits_scaling": 8.0,
            "attention_multiplier": 0.1, "residual_multiplier": 0.2, "use_qk_norm": True, "no_rope_layers": [1], "rotary_dim": 4,
            "use_alibi": True, "alibi": True, "parallel_attn": True, "pruned_heads": {"0": [1]}, "head_dim_v": 4, "kv_lora_rank": 4,
            "something_of_tomorrow": 1}


class HostileConfig(HostileTest):
    def with_text(self, key, text):
        """Returns the valid config with this text as the value of a key."""
        return json.dumps({**CONFIG, key: "\1"}).replace('"\\u0001"', text)

    def each(self, keys, texts, pattern):
        for key in keys:
            for text in texts:
                with self.subTest(key=key, value=text):
                    self.write("config.json", self.with_text(key, text))
                    self.refused(pattern.format(key=key))

    def test_invalid_sizes_are_refused(self):
        # The error names the key, or the position in a file that is not valid JSON.
        self.each(SIZES, WRONG_NUMBERS, r"config\.json: .*({key}|byte|number)")

    def test_huge_sizes_are_refused(self):
        self.each([key for key in SIZES if key != "max_position_embeddings"], ["16777216"], r"(config\.json|model): .*expected")

    def test_inconsistent_sizes_are_refused(self):
        for change in ({"num_attention_heads": 3, "head_dim": None}, {"num_key_value_heads": 3}, {"num_key_value_heads": 8}, {"head_dim": 3},
                       {"vocab_size": 7}, {"vocab_size": 9}, {"hidden_size": 16}, {"num_hidden_layers": 2}):
            with self.subTest(change):
                self.write("config.json", {**CONFIG, **change})
                self.refused("expected")

    def test_missing_keys_are_named(self):
        for key in CONFIG:
            for config in ({k: v for k, v in CONFIG.items() if k != key}, {**CONFIG, key: None}):
                with self.subTest(key=key):
                    self.write("config.json", config)
                    if key in NEEDED or key == "model_type":
                        self.refused(rf"config\.json: .*{key}")
                    else:  # the default applies, which need not match the weights
                        code, message, _ = self.run_limited()
                        self.assertIn(code, (0, 2), message)

    def test_invalid_flags_and_names_are_refused(self):
        self.each(["attention_bias", "mlp_bias", "tie_word_embeddings"], WRONG_SWITCHES, r"config\.json: .*{key}")
        self.each(["hidden_act", "model_type"], WRONG_NAMES, r"config\.json: .*{key}")
        self.each(["architectures"], ['["nonesuch"]', '["BertForMaskedLM"]'], r"config\.json: architecture .*expected LlamaForCausalLM")

    def test_invalid_numbers_are_refused(self):
        self.each(["rms_norm_eps", "rope_theta", "attention_dropout"], ["-1", '"x"', "true", "[]", "1e400", "NaN", "1e300"],
                  r"config\.json: .*({key}|byte|number|theta)")

    def test_invalid_rotary_positions_are_refused(self):
        for scaling in ({"rope_type": "nonesuch", "factor": 2.0}, {"rope_type": 5}, {"rope_type": "linear", "factor": -1.0},
                        {"rope_type": "linear", "factor": 0}, {"rope_type": "linear", "factor": "x"}, {"rope_type": "linear", "sideways": 1},
                        {"rope_type": "llama3", "factor": 2.0, "low_freq_factor": 4.0, "high_freq_factor": 1.0},
                        {"rope_type": "longrope", "short_factor": [1.0]},
                        {"rope_type": "longrope", "short_factor": "x", "long_factor": [1.0]},
                        {"rope_type": "longrope", "short_factor": [1.0], "long_factor": [1.0], "original_max_position_embeddings": 1},
                        {"rope_type": "longrope", "short_factor": [0.0], "long_factor": [1.0]}, {"rope_type": "dynamic", "factor": 0.5},
                        {"rope_type": "dynamic", "factor": 1e30}, {"rope_theta": 0.0}, 5, "x", []):
            for key in ("rope_scaling", "rope_parameters"):
                with self.subTest(scaling=scaling, key=key):
                    self.write("config.json", {**CONFIG, key: scaling})
                    self.refused(r"config\.json: ")

    def test_unsupported_features_are_refused(self):
        for key, value in FEATURES.items():
            with self.subTest(key):
                self.write("config.json", {**CONFIG, key: value})
                self.refused(rf"config\.json: {key} ")

    def test_keys_without_effect_are_accepted(self):
        self.write("config.json", {**CONFIG, "use_cache": False, "bos_token_id": 5, "transformers_version": "9.9", "_name_or_path": "/etc/passwd",
                                   "is_encoder_decoder": False, "task_specific_params": {"a": [1]}, "pretraining_tp": 2, "sliding_window": None})
        self.accepted()

    def test_invalid_json_is_refused(self):
        for name in ("config.json", "generation_config.json", "tokenizer.json", "tokenizer_config.json"):
            good = (self.model / name).read_bytes() if (self.model / name).exists() else None
            for text in (b"", b"{", b"\xff\xfe{}", b"\0" * 64, b'{"a": NaN}', b'{"a": 1e400}', b'{"a": "\\ud800"}', b'{"a" 1}', b"{} x",
                         b"[" * 100_000, b'{"a":' * 100_000, b'{"a": 1, "a": 2}'):
                with self.subTest(name=name, text=text[:30]):
                    self.write(name, text)
                    self.refused(name.replace(".", r"\."), stack=256 << 10)
            (self.model / name).unlink()
            if good is not None:
                self.write(name, good)

    def test_a_tokenizer_larger_than_the_embedding_is_refused(self):
        vocabulary = {f"w{i}": i for i in range(1, 20)} | {"?": 0}
        self.write("tokenizer.json", {**TOKENIZER, "model": {**TOKENIZER["model"], "vocab": vocabulary}})
        self.refused("", "trace", self.model, "--text", "w19 w18", "--out", self.folder / "out")


if __name__ == "__main__":
    unittest.main()
