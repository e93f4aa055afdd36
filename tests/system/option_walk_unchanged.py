"""Options that change nothing in a case of the walk, or are refused for another reason there: the reason by (verb, option) and case; * = any case."""

TRAIN = {
    "--patience": {"*": "the losses of the walk improve"},
    "--best-by": {"*": "the loss is the metric, or chooses the same evaluation"},
    "--average-of": {"*": "the last evaluations are the best ones"},
    "--too-long": {"*": "the conversations fit"},
    "--preset": {"*": "the other options do not fit the preset"},
    "--train-on": {"*": "the conversations have one answer"},
    "--length": {"*": "texts and labelled texts are shorter, or conversations longer"},
    "--objective": {"masked of a model": "the objective is that of the data"},
    "--kl-weight": {"ppo": "the value is the default", "grpo": "the value is the default"},
    "--kl-target": {"ppo": "the weight adapts after more batches"},
    "--kl-horizon": {"ppo": "the weight adapts after more batches"},
    "--evaluation-prompts": {"*": "one prompt is held out"},
    "--policy-average": {"grpo": "all answers are as long"},
    "--evaluate-every": {"grpo": "the reward is the same", "ppo": "the reward is the same"},
    "--score-clip": {"*": "rewards are smaller"},
    "--reference-free": {"*": "changes the loss with other options only"},
}
GENERATE = {
    "--adapter": {}, "--ignore-eos": {"*": "no answer ends by itself"}, "--min-tokens": {"*": "no answer ends by itself"},
    "--stop-ids": {"*": "the tokens are not written"}, "--stop": {"*": "the text is not written"}, "--seed": {"*": "without sampling, all seeds give the same text"},
    "--guess": {"*": "speed; same text"}, "--draft": {"*": "speed; same text"}, "--draft-tokens": {"*": "speed; same text"}, "--prompt-cache": {"*": "speed; same text"},
    "--greedy": {"*": "already greedy, or a beam search"}, "--mmproj": {"*": "the file is no encoder of images"}, "--image": {"*": "the model reads no pictures"},
    "--dtype": {"*": "the text may be the same"}, "--cache-dtype": {"*": "the text may be the same"}, "--mirostat": {"mirostat": "the value is the same"},
    "--beam-groups": {"groups": "the value is the same"}, "--dry-multiplier": {"*": "the text may not repeat"}, "--dry-base": {"*": "the text may not repeat"},
    "--dry-allowed-length": {"*": "the text may not repeat"}, "--dry-penalty-last-n": {"*": "the text may not repeat"},
    "--dry-sequence-breaker": {"*": "the text may not repeat"}, "--diversity-penalty": {"*": "the best text may be the same"}, "--length-penalty": {"*": "all texts are as long"},
    "--xtc-probability": {"*": "the text may be the same"}, "--echo": {},
}
UNCHANGED = {**{("train", option): reasons for option, reasons in TRAIN.items()}, **{("generate", option): reasons for option, reasons in GENERATE.items()}}
