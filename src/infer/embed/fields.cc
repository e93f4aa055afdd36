#include "fovea/infer/embed.h"

namespace fovea::infer {
namespace {

constexpr int64_t kMostBatchTokens = 1 << 24;

}  // namespace

void visit(EmbedOptions& o, OptionVisitor& v) {
  v.text({"prompt_name", "prepend the model's prompt of this name to each text"}, o.prompt_name);
  const Field prompt = {"prompt", "prepend this text to each text"};
  v.optional(prompt, o.prompt, [&](std::string& value) { v.text(prompt, value); });
  v.integer({"dimensions", "keep the first N elements of each vector; 0 = all"}, o.dimensions, 0,
            1 << 20);
  const Field normalise = {"normalise", "normalise vectors to unit length"};
  v.optional(normalise, o.normalise, [&](bool& value) { v.boolean(normalise, value); });
  v.boolean({"truncate", "truncate texts with too many tokens; false = refuse them"}, o.truncate);
  v.integer({"batch_tokens", "maximum tokens per batch; 0 = the fastest number"}, o.batch_tokens, 0,
            kMostBatchTokens);
}

void visit(RerankOptions& o, OptionVisitor& v) {
  v.boolean({"raw", "return the model's raw score, without its activation"}, o.raw);
  v.boolean({"truncate", "truncate texts with too many tokens; false = refuse them"}, o.truncate);
  v.integer({"batch_tokens", "maximum tokens per batch; 0 = the fastest number"}, o.batch_tokens, 0,
            kMostBatchTokens);
}

}  // namespace fovea::infer
