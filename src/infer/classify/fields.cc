#include "fovea/infer/classify.h"

namespace fovea::infer {

void visit(ClassifyOptions& o, OptionVisitor& v) {
  v.boolean({"raw", "return the model's raw scores, without softmax or sigmoid"}, o.raw);
  v.texts({"labels", "candidate labels for a model of natural language inference"}, o.labels);
  v.text({"hypothesis", "text that states a label, with {} in its place"}, o.hypothesis);
  v.boolean({"multi_label", "several of the candidate labels may apply to a text"}, o.multi_label);
  v.choice({"joining", "how the labels of tokens become those of entities"}, o.joining,
           {"none", "simple", "first", "average", "max", "words"});
  v.integer({"top", "number of best results; 0 = the task's usual number"}, o.top, 0, 1'000'000);
  v.integer({"answer_tokens", "maximum tokens of an answer"}, o.answer_tokens, 1, 100'000);
  v.boolean({"null_answer", "allow the empty answer: the context has no answer"}, o.null_answer);
  v.integer({"window",
             "tokens of a window in which a long text is read; 0 = at most 384 for "
             "answers, the model's maximum for entities"},
            o.window, 0, 1 << 24);
  v.integer({"overlap", "tokens that consecutive windows have in common"}, o.overlap, 0, 1 << 24);
  v.boolean({"truncate", "truncate texts with too many tokens; false = refuse them"}, o.truncate);
  v.integer({"batch_tokens", "maximum tokens per batch; 0 = the fastest number"}, o.batch_tokens, 0,
            1 << 24);
}

}  // namespace fovea::infer
