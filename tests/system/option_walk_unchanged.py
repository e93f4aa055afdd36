"""Options that change nothing in a case of the walk, or are refused for another reason there: the reason by (verb, option) and case; * = any case."""

TRAIN = {
    "--keep-going": {"*": "matters only if the loss rises"},
    "--head": {"pictures": "the error names the labels of the head", "replaced_tokens": "the objective has its own head"},
    "--head-transform": {"pictures": "the objective has its own head"},
    "--encoder": {"replaced_tokens": "the value is that of the preset"},
    "--encoder-embedding-norm": {"words": "the value is that of the preset"},
    "--mixer": {"*": "a recurrent model has no heads, which the cases give"},
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
# Faults: options that these cases accept without effect, and should refuse.
ACCEPTED = {
    "--norm-epsilon": {"captions": "the models of pictures and texts have norms of their own"},
    "--embedding-width": {"skip_gram": "the model has no layers"},
    "--encoder-layers": {"skip_gram": "the model has no encoder"},
    "--encoder-ffn": {"skip_gram": "the model has no encoder"},
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
OTHERS = {
    ("translate", "--sequences"): {"greedy": "the value is the default"},
    ("embed", "--train"): {"dense": "it needs --out"},
    ("embed", "--adapter"): {"*": "the adapter is that of another model"},
    ("classify", "--adapter"): {"*": "the adapter is that of another model"},
    ("eval", "--adapter"): {"*": "the adapter is that of another model"},
    ("embed", "--no-truncate"): {"*": "the texts fit, or the error names the text"},
    ("classify", "--no-truncate"): {"*": "the texts fit, or the error names the text"},
    ("embed", "--batch-tokens"): {"*": "speed; same bits"},
    ("classify", "--batch-tokens"): {"*": "speed; same bits"},
    ("classify", "--input-format"): {"texts": "the lines are no pairs"},
    ("classify", "--top"): {"texts": "one label is printed", "regression": "one number is printed"},
    ("eval", "--candidate"): {"text": "it needs --score"},
    ("eval", "--dtype"): {"tasks": "the answers may be the same"},
    ("transcribe", "--compression-ratio-threshold"): {"*": "the text does not repeat itself"},
    ("transcribe", "--no-speech-threshold"): {"*": "the sound is speech"},
}
UNCHANGED = {**OTHERS, **{("train", option): reasons for option, reasons in {**TRAIN, **ACCEPTED}.items()}, **{("generate", option): reasons for option, reasons in GENERATE.items()}}
