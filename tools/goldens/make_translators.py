#!/usr/bin/env python3
"""Writes tests/goldens/translators: tiny random translators of many languages (NLLB, M2M-100, mBART-50) and models that summarise
(PEGASUS, BART), each with the files that its tokenizer class of transformers reads, the ids of some sources, and the texts of beam
searches. Needs torch, transformers and sentencepiece."""
import io
import json
import shutil

from harness import GOLDENS, one_thread, quiet, shaken, write_json
import sentencepiece
import torch
import transformers

quiet()
one_thread()
FOLDER = GOLDENS / "translators"
TEXTS = ["the sea and the sun", "a small dog sleeps", "Wind und Sonne am Meer, am Dorf"]
LINES = TEXTS + ["the dog and the cat sleep at sea", "der Hund und die Katze", "un chien dort au soleil", "sun, sea and sand!"]
SIZES = dict(d_model=16, encoder_layers=1, decoder_layers=1, encoder_attention_heads=2, decoder_attention_heads=2, encoder_ffn_dim=24,
             decoder_ffn_dim=24, max_position_embeddings=64, dropout=0.0)
MOST = 12  # tokens of a translation


def pieces(kind, **more):
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(LINES * 3), model_writer=model, model_type=kind, vocab_size=70,
                                             hard_vocab_limit=False, normalization_rule_name="identity", minloglevel=2, **more)
    return model.getvalue()


def folder_of(name):
    folder = FOLDER / name
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def texts_of(tokenizer, model, ids, most=None, **options):
    """The texts, ids and scores of all beams. Ids from `most` on are not in the texts: languages that decode() would write."""
    with torch.no_grad():
        out = model.generate(torch.tensor([ids]), num_return_sequences=3, return_dict_in_generate=True, output_scores=True, **options)
    ends = (tokenizer.eos_token_id, tokenizer.pad_token_id)
    found = []
    for row, score in zip(out.sequences.tolist(), out.sequences_scores):
        row = row[1:]
        while row and row[-1] in ends:
            row.pop()
        written = [i for i in row if most is None or i < most]
        found.append({"ids": row, "text": tokenizer.decode(written, skip_special_tokens=True), "score": float(score)})
    return found


def translations(tokenizer, model, directions, token_of, most=None):
    cases = []
    for source, target in directions:
        tokenizer.src_lang = source
        for text in TEXTS:
            ids = tokenizer(text)["input_ids"]
            found = texts_of(tokenizer, model, ids, most, num_beams=4, max_new_tokens=MOST, min_new_tokens=3, forced_bos_token_id=token_of(target))
            cases.append({"source": source, "target": target, "text": text, "ids": ids, "best": found})
    return cases


def save(model, folder):
    model.half().float().save_pretrained(folder)


def nllb():
    folder = folder_of("nllb")
    (folder / "sentencepiece.bpe.model").write_bytes(pieces("bpe"))
    with_pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    texts = [with_pieces.id_to_piece(i) for i in range(with_pieces.get_piece_size())][3:]
    (folder / "sentencepiece.bpe.model").unlink()
    vocabulary = {text: i for i, text in enumerate(["<s>", "<pad>", "</s>", "<unk>"] + texts)}
    merges = [(a, b) for _, a, b in sorted((vocabulary[text], text[:cut], text[cut:]) for text in vocabulary for cut in range(1, len(text))
                                           if text not in ("<s>", "</s>") and text[:cut] in vocabulary and text[cut:] in vocabulary)]
    codes = ["deu_Latn", "eng_Latn", "fra_Latn", "zho_Hans", "zho_Hant", "ace_Arab", "ace_Latn"]
    tokenizer = transformers.NllbTokenizer(vocab=vocabulary, merges=merges, extra_special_tokens=codes, src_lang="eng_Latn")
    tokenizer.save_pretrained(folder)
    torch.manual_seed(1)
    model = shaken(transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
        vocab_size=len(tokenizer), scale_embedding=True, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, **SIZES)), 0.4)
    save(model, folder)
    cases = translations(tokenizer, model, [("eng_Latn", "deu_Latn"), ("deu_Latn", "zho_Hant")], tokenizer.convert_tokens_to_ids)
    legacy = transformers.NllbTokenizer.from_pretrained(folder, legacy_behaviour=True)
    legacy.src_lang = "fra_Latn"
    return {"cases": cases, "legacy": {"source": "fra_Latn", "text": TEXTS[0], "ids": legacy(TEXTS[0])["input_ids"]}}


def m2m_100():
    folder = folder_of("m2m_100")
    (folder / "sentencepiece.bpe.model").write_bytes(pieces("bpe"))
    with_pieces = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    texts = sorted(with_pieces.id_to_piece(i) for i in range(3, with_pieces.get_piece_size()))
    write_json(folder / "vocab.json", {text: i for i, text in enumerate(["<s>", "<pad>", "</s>", "<unk>"] + texts)})
    tokenizer = transformers.M2M100Tokenizer(str(folder / "vocab.json"), str(folder / "sentencepiece.bpe.model"))
    torch.manual_seed(2)
    model = shaken(transformers.M2M100ForConditionalGeneration(transformers.M2M100Config(
        vocab_size=len(texts) + 4 + 100 + 8, scale_embedding=True, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        **SIZES)), 0.4)
    model.generation_config.early_stopping = True
    model.generation_config.num_beams = 4
    save(model, folder)
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "M2M100Tokenizer", "language_codes": "m2m100",
                                                              "num_madeup_words": 8, "src_lang": None, "tgt_lang": None}) + "\n")
    return {"cases": translations(tokenizer, model, [("en", "de"), ("zh", "fr")], tokenizer.get_lang_id, len(texts) + 4)}


def mbart50():
    folder = folder_of("mbart50")
    (folder / "sentencepiece.bpe.model").write_bytes(pieces("unigram"))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "MBart50Tokenizer", "src_lang": None, "tgt_lang": None}) + "\n")
    slow = sentencepiece.SentencePieceProcessor(model_file=str(folder / "sentencepiece.bpe.model"))
    tokenizer = transformers.MBart50Tokenizer(vocab=[(slow.id_to_piece(i), slow.get_score(i)) for i in range(slow.get_piece_size())])
    torch.manual_seed(3)
    model = shaken(transformers.MBartForConditionalGeneration(transformers.MBartConfig(
        vocab_size=len(tokenizer), scale_embedding=True, pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2,
        forced_eos_token_id=2, **SIZES)), 0.4)
    model.generation_config.early_stopping = True
    model.generation_config.num_beams = 4
    save(model, folder)
    return {"cases": translations(tokenizer, model, [("en_XX", "de_DE"), ("zh_CN", "pt_XX")], tokenizer.convert_tokens_to_ids)}


def summaries(tokenizer, model):
    cases = []
    for text in [" ".join(TEXTS), " ".join(LINES)]:
        ids = tokenizer(text)["input_ids"]
        cases.append({"text": text, "ids": ids, "best": texts_of(tokenizer, model, ids)})
    return {"cases": cases}


def pegasus():
    folder = folder_of("pegasus")
    (folder / "spiece.model").write_bytes(pieces("unigram", pad_id=0, eos_id=1, unk_id=2, bos_id=-1))
    (folder / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": "PegasusTokenizer"}) + "\n")
    slow = sentencepiece.SentencePieceProcessor(model_file=str(folder / "spiece.model"))
    table = [("<pad>", 0.0), ("</s>", 0.0), ("<mask_1>", 0.0), ("<mask_2>", 0.0)] + [(f"<unk_{i}>", -100.0) for i in range(2, 103)]
    table += [(slow.id_to_piece(i), slow.get_score(i)) for i in range(2, slow.get_piece_size())]
    tokenizer = transformers.PegasusTokenizer(vocab=table)
    torch.manual_seed(4)
    model = shaken(transformers.PegasusForConditionalGeneration(transformers.PegasusConfig(
        vocab_size=len(tokenizer), scale_embedding=True, pad_token_id=0, bos_token_id=None, eos_token_id=1, decoder_start_token_id=0,
        forced_eos_token_id=1, **{**SIZES, "max_position_embeddings": 256})), 0.4)
    generation = model.generation_config
    generation.num_beams, generation.length_penalty, generation.max_length, generation.early_stopping = 4, 0.8, 24, True
    generation.no_repeat_ngram_size, generation.min_length, generation.forced_eos_token_id = 3, 6, 1
    save(model, folder)
    return summaries(tokenizer, model)


def bart():
    folder = folder_of("bart")
    texts = ["<s>", "<pad>", "</s>", "<unk>"] + sorted(tokenizers_alphabet()) + ["<mask>"]
    tokenizer = transformers.BartTokenizer(vocab={text: i for i, text in enumerate(texts)}, merges=[])
    tokenizer.save_pretrained(folder)
    torch.manual_seed(5)
    model = shaken(transformers.BartForConditionalGeneration(transformers.BartConfig(
        vocab_size=len(tokenizer), pad_token_id=1, bos_token_id=0, eos_token_id=2, decoder_start_token_id=2, forced_bos_token_id=0,
        forced_eos_token_id=2, **{**SIZES, "max_position_embeddings": 256})), 0.4)
    generation = model.generation_config
    generation.num_beams, generation.length_penalty, generation.max_length, generation.early_stopping = 4, 2.0, 30, True
    generation.no_repeat_ngram_size, generation.min_length = 3, 10
    generation.forced_bos_token_id, generation.forced_eos_token_id = 0, 2
    save(model, folder)
    return summaries(tokenizer, model)


def tokenizers_alphabet():
    import tokenizers
    return tokenizers.pre_tokenizers.ByteLevel.alphabet()


if __name__ == "__main__":
    import sys
    chosen = sys.argv[1:] or ["nllb", "m2m_100", "mbart50", "pegasus", "bart"]
    for name in chosen:
        write_json(FOLDER / name / "expected.json", globals()[name]())
