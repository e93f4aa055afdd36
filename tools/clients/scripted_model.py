"""Makes a tiny Llama that plays the script: scripted_model.py FOLDER.

How it works. The layer's matrices are zero, so the last token alone decides the next one: its code, a row
of signs, meets one row of the head, that of the token that follows it in the script. The chat template
knows which turn it is and ends the prompt with the cue of that turn, a special token. From there each
token leads to the next, and the last one to the end. So a text is cut into pieces that no other text has.

The vocabulary has the bytes, common words and word parts, so that agents' prompts of 100 kB fit the context.
The files depend on nothing but this file and script.py, as they are needed for replays."""
import array
import json
import pathlib
import random
import re
import struct
import sys

import script

CONTEXT, WIDTH, HEADS, HIDDEN, SHARPNESS = 65536, 64, 2, 16, 60.0
END = "<|im_end|>"
PAIRS = "th he in er an re on at en nd ti es or te of ed is it al ar st to nt ng se ha as ou io le ve co me de hi ri ro ic ne ea ra ce li ch ll be ma si om ur us ec el ta la et il ct di pe no so ge ac un lo tr ho wi ut po ss su ee mo pr ad".split()
WORDS = """a about above absolute access across action actions active add added additional after again agent agents all allow allowed already also always
an and another answer any API app apply approach approval are argument arguments array as ask asked assistant at automatically available avoid back
background base based Bash bash be because been before begin behavior below best better between block boolean both branch browser but by cache call called
calls can cannot case change changes character characters check clear close code codebase command commands commit common complete complex concise config
confirm contain contains content contents context continue conversation correct could create created current data date day default define delete depend
description detail details different direct directly directories directory do documentation does done down during each edit editing either else empty enable
end ensure entire environment error errors etc even every exact example examples execute existing exists exit explain explicit explicitly fail failed false
field file files final find finish first fix follow following for format found from full function functions general generate get git give given global go good
group guidelines handle has have help here high how however human ID idea if image implement implementation important in include including independent
information input inside instead instructions int integer interactive interface into is issue it item items its job json just keep key keyword keywords kind
know language large last later leave length less level like limit line lines link list load local location logic long look low made main make makes many
match matches max maximum may me mean memory mention message messages method minimum mode model modify more most move multiple must name named names necessary
need needed needs never new next no none not note nothing null number object objects of off old on once one only open operation option optional options or
order other others otherwise out output over own page parallel parameter parameters parent part parts pass path paths pattern patterns perform permission
permissions place plan please point policy possible prefer prefix present previous process project prompt properties property provide provided public pull
question questions quick rather read reading ready real reason reasoning reference related relevant remote remove replace report repository request requested
require required requires response responses rest result results resume return returned returns review right role root rule rules run running runs safe same
sandbox save schedule schema scope script search second section security see select send sentence separate server service session set several shell short
should show simple since single size skill skills so some something source specific specified specify stage standard start started state status step steps still
stop store string strings structure style subagent such suggest summary support sure system take target task tasks team template terminal test tests text
than that the their them then there these they thing things think this those through time timeout title to together token tokens tool tools top track true try
turn two type types under understand unless until up update updates URL usage use used user users uses using valid value values verify version very view wait
want was way web well were what when where whether which while who why will window with within without word words work workflow working workspace would write
writing wrong yes you your additionalProperties enum items minLength maxLength minItems anyOf ref defs const pattern default file_path
The This You If It Use When Do Only Never Always Any Each For In Is No Not Return Returns Run Set Note Read Example Examples IMPORTANT NEVER A""".split()

TEMPLATE = """{%- set ns = namespace(result=false, cue='plain') %}
{%- for m in messages %}{% if m.role == 'tool' %}{% set ns.result = true %}{% endif %}{% endfor %}
{%- if tools %}
{{- '<|im_start|>system\\n' }}
{%- if messages[0].role == 'system' %}{{- messages[0].content + '\\n\\n' }}{% endif %}
{{- '# Tools\\n\\nYou may call functions. Their signatures are within <tools></tools>:\\n<tools>' }}
{%- for tool in tools %}{{- '\\n' }}{{- tool | tojson }}{% endfor %}
{{- '\\n</tools>\\n\\nFor a call write its name and arguments within tags:\\n<tool_call>\\n{"name": <name>, "arguments": <object>}\\n</tool_call><|im_end|>\\n' }}
{%- endif %}
{%- for m in messages %}
{%- if m.role == 'assistant' %}
{{- '<|im_start|>assistant\\n' }}
{%- if m.reasoning_content %}{{- '<think>\\n' + m.reasoning_content + '\\n</think>\\n\\n' }}{% endif %}
{%- if m.content %}{{- m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}
{%- if call.function %}{% set call = call.function %}{% endif %}
{{- '\\n<tool_call>\\n{"name": "' + call.name + '", "arguments": ' }}
{%- if call.arguments is string %}{{- call.arguments }}{% else %}{{- call.arguments | tojson }}{% endif %}
{{- '}\\n</tool_call>' }}
{%- endfor %}
{{- '<|im_end|>\\n' }}
{%- elif m.role == 'tool' %}
{{- '<|im_start|>user\\n<tool_response>\\n' + m.content + '\\n</tool_response><|im_end|>\\n' }}
{%- elif not (loop.first and tools and m.role == 'system') %}
{{- '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}
{%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
{{- '<|im_start|>assistant\\n' }}
{%- if ns.result %}{% set ns.cue = 'final' %}
{%- elif tools %}
{%- for name in NAMES %}{% for tool in tools %}
{%- if ns.cue == 'plain' and (tool.function or tool).name == name %}{% set ns.cue = name %}{% endif %}
{%- endfor %}{% endfor %}
{%- endif %}
{%- if enable_thinking is defined and not enable_thinking %}{{- '<think>\\n\\n</think>\\n\\n' }}
{%- if ns.cue in NAMES %}{% set ns.cue = ns.cue + '-quick' %}{% endif %}
{%- endif %}
{{- '<|cue-' + ns.cue + '|>' }}
{%- endif %}"""


def byte_letters():
    """The letter that stands for each byte in a byte-level vocabulary: itself where it can be seen."""
    seen = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [b for b in range(256) if b not in seen]
    return {b: chr(b) for b in seen} | {b: chr(256 + i) for i, b in enumerate(hidden)}


LETTERS = byte_letters()


def letters(text):
    return "".join(LETTERS[b] for b in text.encode())


def cut(text, used):
    """Cuts a text at words into pieces that are not in `used`, and adds them to it."""
    pieces, open_piece = [], ""
    for word in re.findall(r"\S+\s*|\s+", text):
        open_piece += word
        if open_piece not in used:
            used.add(open_piece)
            pieces.append(open_piece)
            open_piece = ""
    while open_piece:  # the end is known: it grows to the left
        open_piece = pieces.pop() + open_piece
        if open_piece not in used:
            used.add(open_piece)
            pieces.append(open_piece)
            open_piece = ""
    return pieces


def turns():
    """The text that follows each cue."""
    texts = {"plain": script.PLAIN, "final": script.FINAL}
    for name, arguments in script.CALLS.items():
        call = "<tool_call>\n" + json.dumps({"name": name, "arguments": arguments}) + "\n</tool_call>"
        texts[name] = f"<think>\n{script.REASONING}\n</think>\n\n{call}"
        texts[name + "-quick"] = call
    return {f"<|cue-{name}|>": text for name, text in texts.items()}


def make(folder):
    folder = pathlib.Path(folder)
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = {LETTERS[b]: b for b in range(256)}
    merges = []
    runs = [" " * n for n in range(2, 33)] + ["\n" * n for n in (2, 3)] + ["\n" + " " * n for n in range(1, 13)]
    for a, b in PAIRS:
        merges.append([a, b])
        vocabulary.setdefault(a + b, len(vocabulary))
    for text in runs + [form for word in WORDS for form in (word, " " + word)]:
        vocabulary.setdefault(letters(text), len(vocabulary))

    used, chains = set(), {}
    for cue, text in turns().items():
        chains[cue] = cut(text, used)
        for piece in chains[cue]:
            vocabulary.setdefault(letters(piece), len(vocabulary))
    special = {name: len(vocabulary) + i for i, name in enumerate(["<|im_start|>", END, *chains])}
    size = len(vocabulary) + len(special)

    signs = random.Random(7)
    codes = [array.array("f", [1.0 if signs.getrandbits(1) else -1.0 for _ in range(WIDTH)]) for _ in range(size)]
    head = [array.array("f", [0.0] * WIDTH) for _ in range(size)]
    for cue, pieces in chains.items():
        ids = [special[cue], *(vocabulary[letters(p)] for p in pieces), special[END]]
        for this, following in zip(ids, ids[1:]):
            for i in range(WIDTH):
                head[following][i] += codes[this][i] * SHARPNESS / WIDTH

    joined = lambda rows: array.array("f", [x for row in rows for x in row])
    fill = lambda count, value=0.0: array.array("f", [value]) * count
    each = WIDTH // HEADS
    layer = "model.layers.0."
    tensors = {"model.embed_tokens.weight": ([size, WIDTH], joined(codes)), "lm_head.weight": ([size, WIDTH], joined(head)), "model.norm.weight": ([WIDTH], fill(WIDTH, 1.0)),
               layer + "input_layernorm.weight": ([WIDTH], fill(WIDTH, 1.0)), layer + "post_attention_layernorm.weight": ([WIDTH], fill(WIDTH, 1.0)),
               layer + "self_attn.q_proj.weight": ([WIDTH, WIDTH], fill(WIDTH * WIDTH)), layer + "self_attn.o_proj.weight": ([WIDTH, WIDTH], fill(WIDTH * WIDTH)),
               layer + "self_attn.k_proj.weight": ([each, WIDTH], fill(each * WIDTH)), layer + "self_attn.v_proj.weight": ([each, WIDTH], fill(each * WIDTH)),
               layer + "mlp.gate_proj.weight": ([HIDDEN, WIDTH], fill(HIDDEN * WIDTH)), layer + "mlp.up_proj.weight": ([HIDDEN, WIDTH], fill(HIDDEN * WIDTH)),
               layer + "mlp.down_proj.weight": ([WIDTH, HIDDEN], fill(HIDDEN * WIDTH))}
    table, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (shape, values) in tensors.items():
        table[name] = {"dtype": "F32", "shape": shape, "data_offsets": [at, at + 4 * len(values)]}
        at += 4 * len(values)
    text = json.dumps(table).encode()
    text += b" " * (-len(text) % 8)
    with open(folder / "model.safetensors", "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for _, values in tensors.values():
            if sys.byteorder == "big":
                values.byteswap()
            values.tofile(out)

    def save(name, value):
        (folder / name).write_text(json.dumps(value, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

    save("config.json", {"architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": size, "hidden_size": WIDTH, "intermediate_size": HIDDEN,
                         "num_hidden_layers": 1, "num_attention_heads": HEADS, "num_key_value_heads": 1, "head_dim": each, "max_position_embeddings": CONTEXT,
                         "rms_norm_eps": 1e-6, "rope_theta": 1000000.0, "hidden_act": "silu", "tie_word_embeddings": False, "attention_bias": False, "mlp_bias": False,
                         "bos_token_id": None, "eos_token_id": special[END], "torch_dtype": "float32"})
    split = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    save("tokenizer.json", {"version": "1.0", "truncation": None, "padding": None, "normalizer": None, "pre_tokenizer": split, "post_processor": None,
                            "decoder": {**split, "use_regex": False},
                            "added_tokens": [{"id": i, "content": name, "single_word": False, "lstrip": False, "rstrip": False, "normalized": False, "special": True}
                                             for name, i in special.items()],
                            "model": {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None, "end_of_word_suffix": None, "fuse_unk": False,
                                      "byte_fallback": False, "ignore_merges": True, "vocab": vocabulary, "merges": merges}})
    save("tokenizer_config.json", {"tokenizer_class": "PreTrainedTokenizerFast", "eos_token": END, "pad_token": END, "model_max_length": CONTEXT,
                                   "clean_up_tokenization_spaces": False, "chat_template": TEMPLATE.replace("NAMES", json.dumps(list(script.CALLS)))})
    save("generation_config.json", {"eos_token_id": special[END], "do_sample": False})


if __name__ == "__main__":
    make(sys.argv[1])
