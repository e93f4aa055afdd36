"""What the scripts that make goldens share, and those of tools/compare too: the places of the tree, the program, tiny models with large
random weights, small tokenizers, images, and the forms in which goldens are written.

Each script make_NAME.py writes what its description names, in tests/goldens, from any working directory. It needs a Python with the
packages that the description names; the versions are those with which the committed goldens were made. The tests read only the goldens."""
import json
import os
import pathlib
import sys
import warnings

os.environ.setdefault("HF_HUB_OFFLINE", "1")  # read when a package is imported, so this module is imported first
ROOT = pathlib.Path(__file__).resolve().parents[2]
GOLDENS = ROOT / "tests/goldens"
PROGRAM = os.environ.get("FOVEA_BIN", str(ROOT / "build/release/fovea"))
sys.path.append(str(ROOT / "tests/system"))  # synthetic_audio, recordings and other modules that tests share with these scripts


def add_program(parser):
    """Adds the option --fovea: the program that is compared."""
    parser.add_argument("--fovea", default=PROGRAM, help="default: $FOVEA_BIN, or build/release/fovea")


def quiet():
    """Hides warnings and progress of the packages."""
    warnings.simplefilter("ignore")
    import transformers
    transformers.utils.logging.set_verbosity_error()
    transformers.utils.logging.disable_progress_bar()


def one_thread():
    """Makes torch compute with one thread: the order of a sum must not depend on the machine."""
    import torch
    torch.set_num_threads(1)


# Models

def shaken(model, scale, seed=None):
    """Returns the model with weights that are large enough for every term of the computation to affect the output."""
    import torch
    if seed is not None:
        torch.manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * scale)
    return model


def greedy(logits_of, ids, count):
    """Returns the rows of ids with `count` tokens more, each of which has the largest logit."""
    import torch
    for _ in range(count):
        ids = torch.cat([ids, logits_of(ids)[:, -1].argmax(-1, keepdim=True)], 1)
    return ids


def adamw_steps(parameters, loss_of, count, rate):
    """Takes steps of PyTorch's AdamW, which decays matrices only, and returns their losses."""
    import torch
    parameters = list(parameters)
    optimizer = torch.optim.AdamW([{"params": [p for p in parameters if p.dim() == 2], "weight_decay": 0.1},
                                   {"params": [p for p in parameters if p.dim() != 2], "weight_decay": 0.0}],
                                  lr=rate, betas=(0.9, 0.999), eps=1e-8, foreach=False)
    losses = []
    for _ in range(count):
        optimizer.zero_grad()
        loss = loss_of()
        loss.backward()
        losses.append(loss.detach())
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimizer.step()
    return torch.stack(losses)


def copies(named):
    """Returns copies of named tensors, such as a model's named_parameters(), which later steps do not change."""
    return {name: value.detach().clone() for name, value in named}


# Tokenizers and images

def byte_characters():
    """Returns the character by which byte-level tokenizers write each byte (GPT-2)."""
    plain = [*range(33, 127), *range(161, 173), *range(174, 256)]
    others = [byte for byte in range(256) if byte not in plain]
    return {**{byte: chr(byte) for byte in plain}, **{byte: chr(256 + i) for i, byte in enumerate(others)}}


def word_pieces(pieces, ends=True):
    """Returns a tokenizer like BERT's with these pieces after the five special tokens; `ends` adds [CLS] and [SEP] to texts."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    vocabulary = {word: i for i, word in enumerate(["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *pieces])}
    tokenizer = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    tokenizer.normalizer, tokenizer.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    if ends:
        tokenizer.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B:1 [SEP]:1",
                                                                 special_tokens=[("[CLS]", 2), ("[SEP]", 3)])
    return tokenizer


def image(name):
    """Returns an image of tests/goldens/images, as the image processors of transformers read it."""
    from PIL import Image
    from transformers.image_transforms import convert_to_rgb
    return Image.fromarray(convert_to_rgb(Image.open(GOLDENS / "images" / name), return_numpy=True))


# Files

def write_json(path, value, **form):
    path.write_text(json.dumps(value, **form) + "\n", encoding="utf-8")


def write_lines(path, values, begin="[\n", end="\n]\n", between=",\n", **form):
    """Writes a list with a line for each element; the rest of the file is in `begin` and `end`."""
    path.write_text(begin + between.join(json.dumps(value, **form) for value in values) + end, encoding="utf-8")


def write_records(path, records):
    """Writes JSON lines."""
    write_lines(path, records, "", "\n", "\n", ensure_ascii=False)


def write_tensors(path, found):
    from safetensors.torch import save_file
    save_file({name: value.detach().contiguous().clone() for name, value in found.items()}, path)


def rounded(tensor):
    """Returns all numbers of a tensor, with 9 digits."""
    return [float(f"{value:.9g}") for value in tensor.detach().flatten().tolist()]


def remove(folder, *names):
    """Removes files that a package writes and no test reads."""
    for name in names:
        (folder / name).unlink(missing_ok=True)


def report(path, *more):
    """Prints the size of a file, or of all files of a folder."""
    files = [path] if path.is_file() else [each for each in path.rglob("*") if each.is_file()]
    print(f"{path.relative_to(ROOT)}: {sum(each.stat().st_size for each in files)} bytes", *more)
