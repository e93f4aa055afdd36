#pragma once

#include <string>
#include <vector>

#include "fovea/infer/metrics.h"

namespace fovea::infer {

// How BLEU divides a text into words, by the names of sacrebleu: 13a (mteval-v13a), zh (each
// Chinese character is a word, the rest as in 13a), char (each character is a word), none (words
// are separated by spaces). sacrebleu's ja-mecab and ko-mecab need MeCab's dictionaries.
enum class BleuTokenizer { mteval_13a, zh, characters, none };

// Returns the metrics of existing translations: those of evaluation_task("pairs"), with this
// tokenizer, and chrF2++, TER, ROUGE-1 and ROUGE-2.
std::vector<Metric> translation_metrics(BleuTokenizer tokenizer);

// Returns these metrics with one reference per translation: BLEU (Papineni et al. 2002: cased,
// exponential smoothing), chrF2 and chrF2++ (Popovic 2015, 2017) and TER (Snover et al. 2006:
// uncased) as computed by sacrebleu, and the mean ROUGE-1, ROUGE-2 and ROUGE-L of the lines (Lin
// 2004: uncased, without stemming) as computed by rouge-score. Throws InvalidArgument if the lists
// differ in length.
MetricValues score_translations(const std::vector<std::string>& hypotheses,
                                const std::vector<std::string>& references,
                                BleuTokenizer tokenizer);

}  // namespace fovea::infer
