// Linear attention token by token, in its recurrent form; its gradients by backpropagation through
// time.

#include <cmath>
#include <vector>

#include "kernels/reference/number.h"
#include "kernels/reference/reference.h"

namespace fovea::reference {
namespace {

using State = std::vector<double>;  // [D, V] of one head

// The indices of one token and head in the arrays of a call and of its chunk.
struct Position {
  const LinearAttention& shape;
  int64_t row, token, head;  // `token` in its chunk

  int64_t key_head() const { return shape.key_head(head); }
  int64_t key(int64_t d) const { return (row * shape.key_heads + key_head()) * shape.width + d; }
  int64_t value(int64_t v) const { return (row * shape.heads + head) * shape.value_width + v; }
  int64_t gate() const { return row * shape.heads + head; }
  int64_t kept_key(int64_t d) const {
    return (key_head() * shape.width + d) * kChunkTokens + token;
  }
  int64_t kept_value(int64_t v) const {
    return (token * shape.heads + head) * shape.padded_values() + v;
  }
  int64_t kept_decay() const { return token * shape.heads + head; }
};

In read(Out x) { return {x.data, x.dtype}; }

int64_t in_state(const LinearAttention& shape, int64_t head, int64_t d, int64_t v) {
  return (head * shape.width + d) * shape.padded_values() + v;
}

State load_state(const LinearChunk& chunk, const LinearAttention& shape, int64_t head) {
  State state;
  for (int64_t d = 0; d < shape.width; ++d)
    for (int64_t v = 0; v < shape.value_width; ++v)
      state.push_back(get(read(chunk.state), in_state(shape, head, d, v)));
  return state;
}

void store_state(const LinearChunk& chunk, const LinearAttention& shape, int64_t head,
                 const State& state) {
  for (int64_t d = 0; d < shape.width; ++d)
    for (int64_t v = 0; v < shape.padded_values(); ++v)
      put(chunk.state, in_state(shape, head, d, v),
          v < shape.value_width ? state[static_cast<size_t>(d * shape.value_width + v)] : 0);
}

// S = decay S + k u^T for a kept token of a chunk; the decay is that of this token alone.
void advance(State& state, const LinearChunk& chunk, const Position& p) {
  const double before = p.token > 0 ? get(read(chunk.decays), p.kept_decay() - p.shape.heads) : 0;
  const double decay = std::exp(get(read(chunk.decays), p.kept_decay()) - before);
  for (int64_t d = 0; d < p.shape.width; ++d)
    for (int64_t v = 0; v < p.shape.value_width; ++v) {
      double& s = state[static_cast<size_t>(d * p.shape.value_width + v)];
      s = decay * s +
          get(read(chunk.keys), p.kept_key(d)) * get(read(chunk.values), p.kept_value(v));
    }
}

// The sum over d of S[d, v] x[begin + d].
double across(const State& state, const LinearAttention& shape, In x, int64_t begin, int64_t v) {
  double sum = 0;
  for (int64_t d = 0; d < shape.width; ++d)
    sum += state[static_cast<size_t>(d * shape.value_width + v)] * get(x, begin + d);
  return sum;
}

// The state after the first `tokens` tokens of a chunk.
State state_within(const LinearChunk& chunk, const LinearAttention& shape, int64_t head,
                   int64_t tokens) {
  State state = load_state(chunk, shape, head);
  for (int64_t token = 0; token < tokens; ++token) advance(state, chunk, {shape, 0, token, head});
  return state;
}

void attend(Out y, In q, In k, In v, In beta, In decay, const LinearText& text,
            const LinearAttention& shape, int64_t head) {
  each_piece(text, [&](const LinearPiece& piece) {
    const LinearChunk& chunk = text.chunks[piece.chunk];
    if (piece.begin == 0)
      store_state(chunk, shape, head,
                  piece.chunk == 0
                      ? State(static_cast<size_t>(shape.width * shape.value_width))
                      : state_within(text.chunks[piece.chunk - 1], shape, head, kChunkTokens));
    State state = state_within(chunk, shape, head, piece.begin);
    for (int64_t i = 0; i < piece.count; ++i) {
      const Position p{shape, piece.row + i, piece.begin + i, head};
      const double before = p.token > 0 ? get(read(chunk.decays), p.kept_decay() - shape.heads) : 0;
      put(chunk.decays, p.kept_decay(), before + get(decay, p.gate()));
      for (int64_t d = 0; d < shape.width; ++d) put(chunk.keys, p.kept_key(d), get(k, p.key(d)));
      const double a = std::exp(get(decay, p.gate()));
      for (int64_t j = 0; j < shape.padded_values(); ++j) {
        double u = 0;
        if (j < shape.value_width) {
          u = get(v, p.value(j));
          if (shape.delta) u -= a * across(state, shape, k, p.key(0), j);
          u *= get(beta, p.gate());
        }
        put(chunk.values, p.kept_value(j), u);
      }
      advance(state, chunk, p);
      for (int64_t j = 0; j < shape.value_width; ++j)
        put(y, p.value(j), shape.scale * across(state, shape, q, p.key(0), j));
    }
  });
}

// The gradients of one head, added to those of its key head.
struct HeadGradients {
  std::vector<double>&dq, &dk;  // [rows, G, D]
};

// The tokens of one head of a text, with the states before them.
struct Past {
  std::vector<State> states;
  std::vector<Position> positions;
  std::vector<const LinearChunk*> chunks;
};

Past past_of(const LinearText& text, const LinearAttention& shape, int64_t head) {
  Past past;
  each_piece(text, [&](const LinearPiece& piece) {
    const LinearChunk& chunk = text.chunks[piece.chunk];
    State state = load_state(chunk, shape, head);
    for (int64_t i = 0; i < piece.count; ++i) {
      past.positions.push_back({shape, piece.row + i, i, head});
      past.chunks.push_back(&chunk);
      past.states.push_back(state);
      advance(state, chunk, past.positions.back());
    }
  });
  return past;
}

void attend_backward(const LinearGradients& d, const HeadGradients& sums, In dy, In q, In v,
                     In beta, const LinearText& text, const LinearAttention& shape, int64_t head) {
  const int64_t D = shape.width, V = shape.value_width;
  const auto [states, positions, chunks] = past_of(text, shape, head);
  State dS(static_cast<size_t>(D * V));
  for (size_t t = positions.size(); t-- > 0;) {
    const Position& p = positions[t];
    const LinearChunk& chunk = *chunks[t];
    const State& before = states[t];
    const double sum = get(read(chunk.decays), p.kept_decay());
    const double a =
        std::exp(sum - (p.token > 0 ? get(read(chunk.decays), p.kept_decay() - shape.heads) : 0));
    const auto key = [&](int64_t i) { return get(read(chunk.keys), p.kept_key(i)); };
    const auto u = [&](int64_t j) { return get(read(chunk.values), p.kept_value(j)); };
    const auto at = [&](const State& s, int64_t i, int64_t j) {
      return s[static_cast<size_t>(i * V + j)];
    };
    // S_t = a S + k u^T,  y = S_t^T (scale q)
    for (int64_t i = 0; i < D; ++i) {
      const double qi = shape.scale * get(q, p.key(i));
      for (int64_t j = 0; j < V; ++j) {
        const double g = get(dy, p.value(j)), s = a * at(before, i, j) + key(i) * u(j);
        sums.dq[static_cast<size_t>(p.key(i))] += shape.scale * g * s;
        dS[static_cast<size_t>(i * V + j)] += qi * g;
      }
    }
    std::vector<double> dr(static_cast<size_t>(V));  // of u / beta
    const double b = get(beta, p.gate());
    double dbeta = 0, da = 0;
    for (int64_t j = 0; j < V; ++j) {
      double du = 0, past = 0;
      for (int64_t i = 0; i < D; ++i) {
        du += at(dS, i, j) * key(i);
        past += at(before, i, j) * key(i);
      }
      const double r = get(v, p.value(j)) - (shape.delta ? a * past : 0);
      dbeta += du * r;
      dr[static_cast<size_t>(j)] = b * du;
      if (shape.delta) da -= b * du * past;
      put(d.dv, p.value(j), b * du);
    }
    put(d.dbeta, p.gate(), dbeta);
    for (int64_t i = 0; i < D; ++i) {
      double dk = 0;
      for (int64_t j = 0; j < V; ++j) {
        const double x = dr[static_cast<size_t>(j)], s = at(before, i, j);
        double& g = dS[static_cast<size_t>(i * V + j)];
        dk += g * u(j) - (shape.delta ? a * x * s : 0);
        da += g * s;
        g = a * (g - (shape.delta ? key(i) * x : 0));
      }
      sums.dk[static_cast<size_t>(p.key(i))] += dk;
    }
    put(d.ddecay, p.gate(), a * da);
  }
}

}  // namespace

void linear_attention(Out y, In q, In k, In v, In beta, In decay, std::span<const LinearText> texts,
                      const LinearAttention& shape) {
  for (const LinearText& text : texts)
    for (int64_t head = 0; head < shape.heads; ++head)
      attend(y, q, k, v, beta, decay, text, shape, head);
}

void linear_attention_backward(const LinearGradients& d, In dy, In q, In v, In beta,
                               std::span<const LinearText> texts, const LinearAttention& shape) {
  int64_t rows = 0;
  for (const LinearText& text : texts) rows = std::max(rows, text.row + text.tokens);
  std::vector<double> dq(static_cast<size_t>(rows * shape.key_heads * shape.width)), dk(dq.size());
  for (const LinearText& text : texts)
    for (int64_t head = 0; head < shape.heads; ++head)
      attend_backward(d, {dq, dk}, dy, q, v, beta, text, shape, head);
  for (const LinearText& text : texts) {
    const int64_t width = shape.key_heads * shape.width;
    for (int64_t i = text.row * width; i < (text.row + text.tokens) * width; ++i) {
      put(d.dq, i, dq[static_cast<size_t>(i)]);
      put(d.dk, i, dk[static_cast<size_t>(i)]);
    }
  }
}

namespace {

// Returns x of token t of a text; a negative token is one before the text's rows.
double earlier(In x, const ConvText& text, const CausalConv& shape, int64_t t, int64_t c) {
  if (t >= 0) return get(x, (text.row + t) * shape.width + c);
  return text.before.data == nullptr ? 0
                                     : get(text.before, (t + shape.kernel - 1) * shape.width + c);
}

}  // namespace

void causal_conv(Out y, In x, In weight, In bias, std::span<const ConvText> texts,
                 const CausalConv& shape) {
  for (const ConvText& text : texts)
    for (int64_t t = 0; t < text.tokens; ++t)
      for (int64_t c = 0; c < shape.width; ++c) {
        double sum = bias.data == nullptr ? 0 : get(bias, c);
        for (int64_t j = 0; j < shape.kernel; ++j)
          sum += get(weight, c * shape.kernel + j) *
                 earlier(x, text, shape, t - shape.kernel + 1 + j, c);
        put(y, (text.row + t) * shape.width + c, sum);
      }
}

void causal_conv_backward(Out dx, Out products, In dy, In x, In weight,
                          std::span<const ConvText> texts, const CausalConv& shape) {
  const int64_t K = shape.kernel;
  for (const ConvText& text : texts)
    for (int64_t t = 0; t < text.tokens; ++t)
      for (int64_t c = 0; c < shape.width; ++c) {
        const int64_t at = (text.row + t) * shape.width + c;
        double sum = 0;
        for (int64_t j = 0; j < K; ++j) {
          put(products, at * K + j, get(dy, at) * earlier(x, text, shape, t - K + 1 + j, c));
          const int64_t later = t + K - 1 - j;  // the token that reads this one by weight j
          if (later < text.tokens)
            sum += get(weight, c * K + j) * get(dy, (text.row + later) * shape.width + c);
        }
        put(dx, at, sum);
      }
}

}  // namespace fovea::reference
