#include "grammar/empty_nodes.h"

namespace fovea::text {
namespace {

// Propagates from the nodes that are certainly empty to those that contain or call them.
class EmptyNodes {
 public:
  explicit EmptyNodes(const std::vector<Syntax>& rules) : callers_(rules.size()) {
    for (size_t i = 0; i < rules.size(); ++i) add(*rules[i], kNone, i);
    while (!found_.empty()) {
      const Node& node = nodes_[found_.back()];
      found_.pop_back();
      node.syntax->empty = true;
      if (node.parent != kNone) {
        return_empty(node.parent);
      } else {
        for (const size_t caller : callers_[node.rule]) return_empty(caller);
      }
    }
  }

 private:
  static constexpr size_t kNone = static_cast<size_t>(-1);
  struct Node {
    SyntaxNode* syntax;
    size_t parent;   // kNone: the body of a rule
    size_t rule;     // that contains the node
    size_t missing;  // parts that must be empty before the node is; 0 = it is
  };

  void add(SyntaxNode& syntax, size_t parent, size_t rule) {
    const size_t number = nodes_.size();
    nodes_.push_back({&syntax, parent, rule, missing(syntax)});
    if (nodes_.back().missing == 0) found_.push_back(number);
    if (syntax.kind == SyntaxNode::rule) callers_[syntax.index].push_back(number);
    for (const Syntax& part : syntax.parts) add(*part, number, rule);
  }

  static size_t missing(const SyntaxNode& node) {
    if (node.kind == SyntaxNode::sequence) return node.parts.size();
    return node.kind == SyntaxNode::repetition && node.least == 0 ? 0 : 1;
  }

  void return_empty(size_t number) {
    if (nodes_[number].missing > 0 && --nodes_[number].missing == 0) found_.push_back(number);
  }

  std::vector<Node> nodes_;
  std::vector<size_t> found_;                 // empty nodes that are not yet propagated
  std::vector<std::vector<size_t>> callers_;  // by rule: the nodes that call it
};

}  // namespace

void find_empty_nodes(std::vector<Syntax>& rules) { EmptyNodes of(rules); }

}  // namespace fovea::text
