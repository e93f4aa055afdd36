#!/bin/sh
# Trains the model of `fovea learn` and writes its files to apps/inspector/course_model: about twenty minutes on two cores.
#
#     tools/data/make_course_model.sh [PROGRAM]
#
# The text is that of tools/data/write_course_text.py, whose words are ours. The tokenizer is trained on the same words without
# punctuation, which then never joins a word. The seeds are fixed; weights are stored in bf16.
set -e
fovea=${1:-build/release/fovea}
root=$(cd "$(dirname "$0")/../.." && pwd)
place=$(mktemp -d)
trap 'rm -rf "$place"' EXIT
python3 "$root/tools/data/write_course_text.py" > "$place/course.txt"
python3 "$root/tools/data/write_course_text.py" --words > "$place/words.txt"
"$fovea" tokenize --train bpe "$place/words.txt" --vocab-size 320 --characters --special-token "<|endoftext|>" -o "$place/tokenizer"
"$fovea" train "$place/course.txt" --out "$place/run" --tokenizer "$place/tokenizer" --width 96 --layers 3 --heads 4 --context 128 \
  --batch 12 --steps 4000 --position rotary --save-every 500 --keep 9 --seed 7
# Then on lists of random tokens too, so that it copies any tokens.
python3 "$root/tools/data/write_course_text.py" --tokens "$place/tokenizer/tokenizer.json" > "$place/tokens.txt"
"$fovea" train "$place/tokens.txt" --out "$place/last" --from "$place/run" --length 128 --batch 12 --steps 1250 --schedule constant --learning-rate 0.002 --seed 7
rm -rf "$root/apps/inspector/course_model"
"$fovea" convert "$place/last" "$root/apps/inspector/course_model" --dtype bf16
