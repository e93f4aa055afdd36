#!/usr/bin/env python3
"""Writes tests/goldens/translation_tokenizers: a directory in the layout of translation models (two SentencePiece models and one
vocab.json) and the results of transformers' MarianTokenizer for some texts.

Needs sentencepiece and transformers; the tests do not. Without them, it prints a message and leaves the goldens unchanged."""
import io
import sys

from harness import GOLDENS, quiet, write_json, write_lines

try:
    import sentencepiece
    from transformers import MarianTokenizer
except ImportError:
    sys.exit("make_translation_tokenizers: skipped, sentencepiece or transformers is not installed")

FOLDER = GOLDENS / "translation_tokenizers"
ENGLISH = """The old house stands at the edge of the village, where the road turns to the sea.
Every morning a woman opens the window and looks at the water. She says that the sea is never the same.
The children run along the road, they shout and laugh, and the dog runs after them.
In the evening there is a light in the window; the fishermen see it from far away.
When the wind comes from the west, the waves are higher than the wall of the harbour.
Nobody knows who built the house, and nobody has asked for a long time. It's cheap: 25 coins!""".splitlines()
GERMAN = """Das alte Haus steht am Rand des Dorfes, wo die Straße zum Meer abbiegt.
Jeden Morgen öffnet eine Frau das Fenster und schaut auf das Wasser. Sie sagt, das Meer sei nie dasselbe.
Die Kinder laufen die Straße entlang, sie rufen und lachen, und der Hund läuft ihnen nach.
Am Abend brennt ein Licht im Fenster; die Fischer sehen es von weitem.
Wenn der Wind von Westen kommt, sind die Wellen höher als die Mauer des Hafens.
Niemand weiß, wer das Haus gebaut hat, und lange hat niemand gefragt. Es ist billig: 25 Münzen!""".splitlines()
TEXTS = ["The house at the sea.", "Das Haus am Meer, höher als die Mauer.", "", " ", "  two   spaces  ", "25 fishermen & a 日本 dog",
         ">>deu<< The wind comes.", "the sea</s> is", "x<pad>y", "Straßen, Größe; ÖL!", "qqq ZZZ ###",
         "tab\tand\nline", "<unk> the", "über the über", "the >>deu<< sea", ">>deu<<>>nld<< the sea >>deu<<", " >>deu<< wind", "a >> b << c"]


def train(lines, size):
    model = io.BytesIO()
    # The identity: the tables of a real normalisation take 200 KB, and other goldens test them.
    sentencepiece.SentencePieceTrainer.train(sentence_iterator=iter(lines), model_writer=model, vocab_size=size, character_coverage=1.0,
                                             normalization_rule_name="identity", num_threads=1, minloglevel=2)
    return model.getvalue()


def pieces_of(model):
    processor = sentencepiece.SentencePieceProcessor(model_proto=model)
    return [processor.id_to_piece(i) for i in range(processor.get_piece_size())][3:]


def case(tokenizer, text):
    result = {"text": text, "source": tokenizer(text).input_ids, "target": tokenizer(text_target=text).input_ids}
    result["decoded"] = tokenizer.decode(result["target"], skip_special_tokens=True, clean_up_tokenization_spaces=False)
    return result


def main():
    FOLDER.mkdir(parents=True, exist_ok=True)
    source, target = train(ENGLISH, 95), train(GERMAN, 98)
    # As in these models, the ids cover the pieces of both languages, in a different order, and some pieces are missing.
    both = list(dict.fromkeys(pieces_of(target) + pieces_of(source)))
    kept = [piece for i, piece in enumerate(both) if i % 17 != 5]
    tokens = ["</s>", "<unk>", *kept, ">>deu<<", ">>nld<<", "<pad>"]
    (FOLDER / "source.spm").write_bytes(source)
    (FOLDER / "target.spm").write_bytes(target)
    write_json(FOLDER / "vocab.json", {token: i for i, token in enumerate(tokens)}, ensure_ascii=False, indent=1)
    config = {"source_lang": "eng", "target_lang": "deu", "tokenizer_class": "MarianTokenizer", "model_max_length": 512}
    write_json(FOLDER / "tokenizer_config.json", config, indent=1)
    quiet()
    tokenizer = MarianTokenizer.from_pretrained(FOLDER)
    cases = [case(tokenizer, text) for text in TEXTS + ENGLISH + GERMAN]
    write_lines(FOLDER / "cases.json", cases, '{"cases": [\n  ', "\n]}\n", ",\n  ", ensure_ascii=False)
    print(f"{len(cases)} cases")


if __name__ == "__main__":
    main()
