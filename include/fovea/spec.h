#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fovea {

enum class Position { none, learned };
enum class NormKind { layer, rms };
enum class ActivationKind { relu, gelu, gelu_tanh, silu, tanh, quick_gelu, relu_squared, sigmoid };

// Which of a sublayer's three norms are there:
//   y = sum_norm(x + output_norm(sublayer(input_norm(x))))
// Pre-norm: input. Post-norm (the original Transformer): sum.
struct Placement {
  bool input = true, output = false, sum = false;
};

struct NormSpec {
  NormKind kind = NormKind::layer;
  float epsilon = 1e-5f;
  bool bias = true;  // LayerNorm only
};

struct AttentionSpec {
  int64_t heads = 0;
  int64_t kv_heads = 0;    // = heads: MHA; fewer: GQA; 1: MQA. 0 = heads
  int64_t head_width = 0;  // 0 = width / heads
  int64_t window = 0;      // a query sees this many keys, itself included; 0 = all
  bool bias = true;        // of query, key and value
  bool output_bias = true;
};

struct FeedForwardSpec {
  ActivationKind activation = ActivationKind::gelu_tanh;
  bool gated = false;  // down(f(gate(x)) * up(x)) instead of down(f(up(x)))
  int64_t width = 0;   // 0 = 4 * width
  bool bias = true;
};

struct StackSpec {
  int64_t layers = 0;
  NormSpec norm;
  Placement placement;
  bool parallel = false;  // attention and feed-forward side by side: y = x + attention(x) + ffn(x)
  bool final_norm = true;
  AttentionSpec attention;
  FeedForwardSpec ffn;
};

struct DropoutSpec {
  float embedding = 0, attention = 0, residual = 0;
};

// A model as a value: plain data, every variant a field. Illegal combinations are refused by
// validated(), by name.
struct Spec {
  int64_t vocabulary = 0;  // 0 = from the tokenizer
  int64_t context = 0;     // most tokens in one sequence
  int64_t width = 0;
  Position position = Position::learned;
  StackSpec decoder;      // causal
  bool tied_head = true;  // logits = final norm * embedding^T
  DropoutSpec dropout;
  // Of the normal distribution that weights begin with; projections into the residual stream have
  // this / sqrt(2 * layers) (Radford et al. 2019).
  float init_deviation = 0.02f;
};

// Visits every field of a Spec, for JSON, the command line and comparison: `path` is its place in
// spec.json, `flag` its option ("--layers"), `help` one line.
class SpecVisitor {
 public:
  virtual ~SpecVisitor() = default;
  virtual void integer(const char* path, const char* flag, const char* help, int64_t& value,
                       int64_t least, int64_t most) = 0;
  virtual void number(const char* path, const char* flag, const char* help, float& value,
                      float least, float most) = 0;
  virtual void boolean(const char* path, const char* flag, const char* help, bool& value) = 0;
  // value is an index into `names`.
  virtual void choice(const char* path, const char* flag, const char* help, int& value,
                      const std::vector<std::string>& names) = 0;
};
void visit(Spec& spec, SpecVisitor& visitor);

std::vector<std::string> preset_names();  // tiny, nano, baby, gpt2
Spec preset(const std::string& name);     // InvalidArgument names the nearest preset

// Absent keys keep their defaults, unknown ones are refused; `name` is the file's, for errors.
Spec read_spec(const std::string& json, const std::string& name);
std::string write_spec(const Spec& spec);  // pretty JSON

// Fills what is 0 = derived and checks the whole; InvalidArgument names the field, its value and
// what is allowed.
Spec validated(Spec spec);

}  // namespace fovea
