#include "safetensors/state_pickle.h"

#include <cstring>
#include <deque>
#include <unordered_map>

#include "base/error.h"
#include "fovea/core/excerpt.h"

namespace fovea {
namespace {

enum class Kind { mark, none, boolean, integer, text, name, tuple, dictionary, storage, tensor };

struct Value {
  Kind kind = Kind::none;
  int64_t number = 0;         // of an integer or a boolean
  std::string text;           // of a text or a name
  std::vector<Value*> items;  // of a tuple; keys and values of a dictionary
  PickledTensor tensor;       // of a storage or a tensor
};

// The names that a pickle may contain.
constexpr std::string_view kDictionary = "collections.OrderedDict",
                           kTensor = "torch._utils._rebuild_tensor_v2";
struct StorageName {
  std::string_view name;
  DType dtype;
};
constexpr StorageName kStorages[] = {{"torch.FloatStorage", DType::f32},
                                     {"torch.HalfStorage", DType::f16},
                                     {"torch.BFloat16Storage", DType::bf16}};

const StorageName* storage_named(std::string_view name) {
  for (const StorageName& each : kStorages)
    if (each.name == name) return &each;
  return nullptr;
}

class StateReader {
 public:
  StateReader(std::string_view pickle, const std::string& path) : left_(pickle), path_(path) {}

  std::map<std::string, PickledTensor> read() {
    while (step(static_cast<uint8_t>(take(1)[0]))) {
    }
    const Value& all = *pop(Kind::dictionary);
    std::map<std::string, PickledTensor> found;
    for (size_t i = 0; i < all.items.size(); i += 2) {
      const Value &name = *all.items[i], &tensor = *all.items[i + 1];
      if (name.kind != Kind::text || tensor.kind != Kind::tensor)
        unsupported("an element that is not a tensor with a name");
      found[name.text] = tensor.tensor;
    }
    return found;
  }

 private:
  [[noreturn]] void damaged(const char* what) const {
    fail(ErrorKind::BadFile, "{}: the pickle {}; expected the tensors of a state dict", path_,
         what);
  }
  [[noreturn]] void unsupported(const std::string& what) const {
    fail(ErrorKind::Unsupported, "{}: the pickle has {}; expected the tensors of a state dict",
         path_, what);
  }

  std::string_view take(size_t bytes) {
    if (bytes > left_.size()) damaged("ends too early");
    const std::string_view taken = left_.substr(0, bytes);
    left_.remove_prefix(bytes);
    return taken;
  }
  template <class T>
  T number() {
    T value;
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string line() {
    const size_t end = left_.find('\n');
    if (end == left_.npos) damaged("ends too early");
    std::string text(take(end));
    take(1);
    return text;
  }

  Value& push(Kind kind) {
    constexpr size_t kMost = 100'000;
    if (values_.size() == kMost || stack_.size() == kMost) damaged("has too many values");
    stack_.push_back(&values_.emplace_back());
    stack_.back()->kind = kind;
    return *stack_.back();
  }
  void push_number(Kind kind, int64_t value) { push(kind).number = value; }
  Value* pop() {
    if (stack_.empty()) damaged("takes a value from an empty stack");
    Value* const top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Value* pop(Kind kind) {
    Value* const top = pop();
    if (top->kind != kind) damaged("has a value of another kind than its instruction takes");
    return top;
  }
  // Returns the values above the last mark, and removes it.
  std::vector<Value*> pop_to_mark() {
    std::vector<Value*> items;
    Value* top = pop();
    for (; top->kind != Kind::mark; top = pop()) items.push_back(top);
    return {items.rbegin(), items.rend()};
  }
  std::vector<Value*> pop_some(size_t count) {
    std::vector<Value*> items(count);
    for (size_t i = count; i > 0; --i) items[i - 1] = pop();
    return items;
  }

  void push_tuple(std::vector<Value*> items) { push(Kind::tuple).items = std::move(items); }
  void keep(uint32_t index) {
    if (stack_.empty()) damaged("keeps a value of an empty stack");
    constexpr size_t kMost = 100'000;
    if (kept_.size() == kMost) damaged("has too many values");
    kept_[index] = stack_.back();
  }
  void get(uint32_t index) {
    const auto found = kept_.find(index);
    if (found == kept_.end()) damaged("refers to a value that it does not have");
    constexpr size_t kMost = 100'000;
    if (stack_.size() == kMost) damaged("has too many values");
    stack_.push_back(found->second);
  }
  void set_items(const std::vector<Value*>& items) {
    if (stack_.empty() || stack_.back()->kind != Kind::dictionary || items.size() % 2 != 0)
      damaged("sets an item of a value that is no dictionary");
    std::vector<Value*>& all = stack_.back()->items;
    constexpr size_t kMost = 200'000;
    if (all.size() + items.size() > kMost) damaged("has too many values");
    all.insert(all.end(), items.begin(), items.end());
  }

  void push_name() {
    const std::string module = line(), name = module + "." + line();
    if (name != kDictionary && name != kTensor && storage_named(name) == nullptr)
      unsupported("the name " + excerpt(name, 80));
    push(Kind::name).text = name;
  }
  // ("storage", the class, its name, the device, the number of its elements)
  void push_storage() {
    const std::vector<Value*> parts = pop(Kind::tuple)->items;
    constexpr Kind kKinds[] = {Kind::text, Kind::name, Kind::text, Kind::text, Kind::integer};
    if (!are(parts, kKinds) || parts[0]->text != "storage" ||
        storage_named(parts[1]->text) == nullptr)
      unsupported("a reference that is no storage");
    push(Kind::storage).tensor = {.storage = parts[2]->text,
                                  .dtype = storage_named(parts[1]->text)->dtype,
                                  .elements = parts[4]->number};
  }
  void call() {
    const std::vector<Value*> arguments = pop(Kind::tuple)->items;
    const std::string& name = pop(Kind::name)->text;
    if (name == kDictionary) {
      if (!arguments.empty()) unsupported("an OrderedDict with arguments");
      push(Kind::dictionary);
    } else if (name == kTensor) {
      push_tensor(arguments);
    } else {
      unsupported("a call of " + name);
    }
  }
  // (storage, offset, shape, strides, whether it wants a gradient, hooks)
  void push_tensor(const std::vector<Value*>& arguments) {
    constexpr Kind kKinds[] = {Kind::storage, Kind::integer, Kind::tuple,
                               Kind::tuple,   Kind::boolean, Kind::dictionary};
    if (!are(arguments, kKinds)) unsupported("a tensor with other arguments");
    PickledTensor tensor = arguments[0]->tensor;
    tensor.offset = arguments[1]->number;
    tensor.shape = integers_in(*arguments[2]);
    tensor.strides = integers_in(*arguments[3]);
    constexpr size_t kMostAxes = 8;
    if (tensor.shape.size() != tensor.strides.size() || tensor.shape.size() > kMostAxes)
      damaged("has a tensor with a wrong number of axes");
    push(Kind::tensor).tensor = std::move(tensor);
  }
  template <size_t N>
  static bool are(const std::vector<Value*>& values, const Kind (&kinds)[N]) {
    if (values.size() != N) return false;
    for (size_t i = 0; i < N; ++i)
      if (values[i]->kind != kinds[i]) return false;
    return true;
  }
  Shape integers_in(const Value& tuple) const {
    Shape all;
    for (const Value* item : tuple.items) {
      if (item->kind != Kind::integer || item->number < 0)
        damaged("has a tensor whose shape is not of numbers");
      all.push_back(item->number);
    }
    return all;
  }

  // Takes an instruction. Returns false at the end.
  bool step(uint8_t code) {
    switch (code) {
      case 0x80: take(1); break;  // PROTO
      case '.': return false;     // STOP
      case '(': push(Kind::mark); break;
      case ')': push_tuple({}); break;
      case 't': push_tuple(pop_to_mark()); break;
      case 0x85: push_tuple(pop_some(1)); break;
      case 0x86: push_tuple(pop_some(2)); break;
      case 0x87: push_tuple(pop_some(3)); break;
      case '}': push(Kind::dictionary); break;
      case 's': set_items(pop_some(2)); break;
      case 'u': set_items(pop_to_mark()); break;
      case 'b': pop(Kind::dictionary); break;  // BUILD: the attributes of an OrderedDict
      case 'c': push_name(); break;
      case 'R': call(); break;
      case 'Q': push_storage(); break;
      default: push_plain(code);
    }
    return true;
  }
  void push_plain(uint8_t code) {
    switch (code) {
      case 'N': push(Kind::none); break;
      case 0x88: push_number(Kind::boolean, 1); break;
      case 0x89: push_number(Kind::boolean, 0); break;
      case 'K': push_number(Kind::integer, number<uint8_t>()); break;
      case 'M': push_number(Kind::integer, number<uint16_t>()); break;
      case 'J': push_number(Kind::integer, number<int32_t>()); break;
      case 'X': {
        const std::string_view text = take(number<uint32_t>());
        push(Kind::text).text = text;
        break;
      }
      case 'q': keep(number<uint8_t>()); break;
      case 'r': keep(number<uint32_t>()); break;
      case 'h': get(number<uint8_t>()); break;
      case 'j': get(number<uint32_t>()); break;
      default: unsupported(fmt::format("the instruction {:#04x}", code));
    }
  }

  std::string_view left_;
  const std::string& path_;
  std::deque<Value> values_;  // which the others refer to
  std::vector<Value*> stack_;
  std::unordered_map<uint32_t, Value*> kept_;
};

}  // namespace

std::map<std::string, PickledTensor> tensors_in_pickle(std::string_view pickle,
                                                       const std::string& path) {
  constexpr size_t kMostBytes = 1 << 20;  // far more than the names of a few layers
  if (pickle.size() > kMostBytes)
    fail(ErrorKind::Unsupported, "{}: the pickle has {} bytes; expected at most {}", path,
         pickle.size(), kMostBytes);
  return StateReader(pickle, path).read();
}

}  // namespace fovea
