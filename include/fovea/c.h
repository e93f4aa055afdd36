// The C interface of fovea, in the shared library libfovea.so (pkg-config fovea, CMake target
// fovea::c). docs/c-api.md has examples. Valid C99 and C++.
//
// Results. A function that can fail returns a fovea_status. It leaves the error's message, one line
// of UTF-8, with its handle: fovea_model_error(model). A function without a handle, or with NULL
// instead of one, leaves it with the calling thread: fovea_error(). No exception leaves the
// library, and NULL for a required argument is an error. After an error, other results of the call
// are unspecified, but a new handle is NULL.
//
// Handles. Every handle is freed with the function of its type, which accepts NULL. Only one call
// at a time may use a handle: not several threads, and not a callback of a call with the handle.
// Any other call is refused with FOVEA_INVALID_ARGUMENT, and its message is left in fovea_error().
// fovea_xxx_share() returns a second handle of the same model, tokenizer or embedder for another
// thread. Both handles share the data and may be freed in any order.
//
// Memory. The caller owns all arguments; they are read during the call only. Pointers that a
// function returns, and those in its result, belong to the library, and callers never free them.
// They are valid until the next call with the same handle other than fovea_xxx_error(), unless the
// function's comment says otherwise.
//
// Text is UTF-8. A text with a size in bytes may contain NUL bytes; its size may also be
// FOVEA_NUL_TERMINATED. Strings without a size (paths, names, JSON) end with NUL. Texts that the
// library returns have a size and also end with NUL.
//
// Structs. Those that begin with `size` may get further fields in later versions. Set the size, or
// let fovea_xxx_options_init() do so, so that a library of another version knows which fields the
// caller has. Other structs do not change.
//
// Callbacks are called by the thread that called the function, before it returns. They must return
// normally: without longjmp, and without an exception of another language. A C++ exception ends the
// call with an error.
#ifndef FOVEA_C_H
#define FOVEA_C_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define FOVEA_API __attribute__((visibility("default")))
#else
#define FOVEA_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

// The version of this header; fovea_version() returns that of the library.
#define FOVEA_VERSION_MAJOR 0
#define FOVEA_VERSION_MINOR 2
#define FOVEA_VERSION_PATCH 0

// The size of a text that ends with NUL.
#define FOVEA_NUL_TERMINATED SIZE_MAX

typedef enum fovea_status {
  FOVEA_OK = 0,
  FOVEA_INVALID_ARGUMENT = 1,  // an invalid option, value or shape, or NULL for a required argument
  FOVEA_BAD_FILE = 2,          // a file that cannot be read or has invalid contents
  FOVEA_UNSUPPORTED = 3,       // valid, but not supported by this version or machine
  FOVEA_OUT_OF_MEMORY = 4,     // a size or memory limit would be exceeded, or memory ran out
  FOVEA_FAILED = 5,            // the run failed: disk full, non-finite loss, directory in use
  FOVEA_INTERNAL = 6           // a bug in fovea
} fovea_status;

// What a callback returns.
enum { FOVEA_STOP = 0, FOVEA_CONTINUE = 1 };

typedef struct fovea_model fovea_model;          // a Transformer with its tokenizer
typedef struct fovea_tokenizer fovea_tokenizer;  // text to token ids and back
typedef struct fovea_chat fovea_chat;            // a model with its chat template
typedef struct fovea_embedder fovea_embedder;    // texts to vectors

// ---- Library ----

FOVEA_API const char* fovea_version(void);  // "0.2.0"; valid until the process ends
// Writes the three numbers of the library's version. Each pointer may be NULL.
FOVEA_API void fovea_version_numbers(int* major, int* minor, int* patch);

// Returns the message of the calling thread's last failed call without a handle; "" if there is
// none. Valid until the thread's next such call.
FOVEA_API const char* fovea_error(void);

// Sets the number of threads that compute, for the whole process. Call it while no other function
// runs. The default is OMP_NUM_THREADS, otherwise the number of available CPUs.
FOVEA_API fovea_status fovea_set_threads(int count);
FOVEA_API int fovea_threads(void);

// ---- Models ----

// Precision of the weights in memory. FULL is required for gradients; the others are packed for
// fast inference: STORED keeps the file's precision, the rest convert to the named format.
enum {
  FOVEA_WEIGHTS_FULL = 0,
  FOVEA_WEIGHTS_STORED = 1,
  FOVEA_WEIGHTS_FP32 = 2,
  FOVEA_WEIGHTS_BF16 = 3,
  FOVEA_WEIGHTS_INT8 = 4,
  FOVEA_WEIGHTS_INT4 = 5
};
// Precision of cached keys and values. AUTOMATIC: fp32 for fp32 weights, else bf16.
enum {
  FOVEA_CACHE_AUTOMATIC = 0,
  FOVEA_CACHE_FP32 = 1,
  FOVEA_CACHE_BF16 = 2,
  FOVEA_CACHE_INT8 = 3
};

typedef struct fovea_model_options {
  size_t size;
  int32_t precision;        // FOVEA_WEIGHTS_...; default FULL
  int32_t cache_precision;  // FOVEA_CACHE_...; default AUTOMATIC
} fovea_model_options;
FOVEA_API fovea_status fovea_model_options_init(fovea_model_options* options, size_t size);

// Opens a Hugging Face directory or a .gguf file. `options` may be NULL for the defaults.
FOVEA_API fovea_status fovea_model_open(const char* path, const fovea_model_options* options,
                                        fovea_model** model);
FOVEA_API fovea_status fovea_model_share(fovea_model* model, fovea_model** other);
FOVEA_API void fovea_model_free(fovea_model* model);
// Returns the message of the last failed call with this handle; "" if there is none. Valid until
// the next failed call. For NULL, returns fovea_error().
FOVEA_API const char* fovea_model_error(const fovea_model* model);
// Returns a message about suspicious but harmless contents of the files, or NULL if `index`, which
// counts from 0, is past the last one. Valid until the handle is freed.
FOVEA_API const char* fovea_model_warning(const fovea_model* model, size_t index);
// Returns the architecture as JSON: sizes, layers and their variants.
FOVEA_API fovea_status fovea_model_spec(fovea_model* model, const char** json);
// Returns a handle of the model's tokenizer, which may outlive the model.
FOVEA_API fovea_status fovea_model_tokenizer(fovea_model* model, fovea_tokenizer** tokenizer);

// ---- Generation ----

// Receives text as soon as it is final: never a partial character, never the start of a stop
// string. The piece is valid during the call.
typedef int (*fovea_text_callback)(const char* piece, size_t size, void* user);
// Receives the tokens generated so far; may change the logits of the next token (-INFINITY forbids
// a token). Also called after speculative tokens, which may be rejected later.
typedef void (*fovea_logits_callback)(const int32_t* ids, size_t count, float* logits,
                                      size_t vocabulary, void* user);

enum { FOVEA_EARLY_STOPPING_NO = 0, FOVEA_EARLY_STOPPING_YES = 1, FOVEA_EARLY_STOPPING_NEVER = 2 };

// fovea/infer/generate.h describes each field.
typedef struct fovea_generate_options {
  size_t size;
  // Sampling.
  float temperature;  // 0 = greedy: always the most likely token
  float top_p, min_p, typical_p;
  int64_t top_k;
  float top_n_sigma, repetition_penalty, presence_penalty, frequency_penalty;
  int64_t no_repeat_ngram;
  uint64_t seed;
  const int32_t* bias_ids;  // tokens, and the values that are added to their logits
  const float* bias_values;
  size_t bias_count;
  // Beam search; 1 beam = sampling.
  int64_t beams;
  float length_penalty;
  int32_t early_stopping;  // FOVEA_EARLY_STOPPING_...
  // The end and the text of the generation.
  int64_t max_tokens;  // -1 = no limit, but a beam search also ends when the context is full
  int64_t min_tokens;
  int32_t ignore_end;       // continue past the end-of-text token
  int32_t keep_special;     // keep special tokens in the text
  const char* const* stop;  // generation ends before the first occurrence of one of these strings
  size_t stop_count;
  const int32_t* stop_ids;  // tokens that end generation like the end-of-text token
  size_t stop_id_count;
  const int32_t* forced_ids;  // the tokens with which the output begins
  size_t forced_count;
  // -1 = none; n = those of each generated token and of the n most likely tokens at its position.
  int64_t logprobs;
  // Number of speculative tokens per pass, 0 = off, -1 = automatic, and the draft model that
  // proposes them; NULL = they are taken from earlier text. They change the speed, not the result.
  // Several threads may use the same draft at the same time.
  int64_t speculative_tokens;
  const fovea_model* draft;
  // Callbacks, or NULL. `user` is passed to both.
  fovea_text_callback on_text;
  fovea_logits_callback on_logits;
  void* user;
  // Further sampling: see `samplers` and the fields after it in fovea/infer/generate.h.
  float xtc_probability, xtc_threshold;
  float mirostat_tau, mirostat_eta;
  int64_t mirostat;      // 2 = Mirostat 2.0; 0 = off
  const char* samplers;  // the filters in their order, separated by ";"; NULL = the default
  float dry_multiplier, dry_base;
  int64_t dry_allowed_length, dry_penalty_last_n;
  const char* const* dry_sequence_breakers;  // none = a line break, ":", "\"" and "*"
  size_t dry_sequence_breaker_count;
  const int32_t* dry_breaker_ids;
  size_t dry_breaker_id_count;
  const char* const* banned;  // texts that are never generated
  size_t banned_count;
  // Further beam search: see fovea/infer/generate.h.
  const char* const* required;  // texts that every hypothesis contains
  size_t required_count;
  int64_t beam_groups;
  double diversity_penalty;
} fovea_generate_options;
// Sets the defaults: those of `model`, with its generation_config.json, or of the library if
// `model` is NULL.
FOVEA_API fovea_status fovea_generate_options_init(fovea_generate_options* options, size_t size,
                                                   fovea_model* model);

enum {
  FOVEA_FINISH_LENGTH = 0,    // max_tokens was reached, or the context is full
  FOVEA_FINISH_STOP = 1,      // a stop string or a stop id
  FOVEA_FINISH_END = 2,       // the end-of-text token
  FOVEA_FINISH_CANCELLED = 3  // on_text returned FOVEA_STOP
};

typedef struct fovea_generation {
  size_t size;
  const char* text;  // without the stop string; if on_text stopped: the pieces that it received
  size_t text_size;
  const int32_t* ids;  // generated tokens, without an end-of-text token or stop id
  size_t id_count;
  // [id_count] and [id_count, top_count], most likely first; NULL without `logprobs`. Before any
  // penalty or filter; in a beam search after the penalties, and with a top_count of 0.
  const float* logprobs;
  const int32_t* top_ids;
  const float* top_logprobs;
  size_t top_count;
  int32_t finish;  // FOVEA_FINISH_...
  float score;     // beam search: log-probability / length ^ length_penalty, end token included
  int64_t prompt_tokens, cached_tokens;
  int64_t speculative_tokens, accepted_tokens;
  double prompt_seconds, generation_seconds;
} fovea_generation;

// Continues a prompt. `options` may be NULL for the model's defaults. `result` may be NULL; else
// its `size` must be set.
FOVEA_API fovea_status fovea_model_generate(fovea_model* model, const char* prompt, size_t size,
                                            const fovea_generate_options* options,
                                            fovea_generation* result);
FOVEA_API fovea_status fovea_model_generate_ids(fovea_model* model, const int32_t* prompt,
                                                size_t count, const fovea_generate_options* options,
                                                fovea_generation* result);
// Returns the ids of a prompt, with the special tokens that the tokenizer adds; for a decoder-only
// model, without an end token.
FOVEA_API fovea_status fovea_model_prompt_ids(fovea_model* model, const char* prompt, size_t size,
                                              const int32_t** ids, size_t* count);
// Writes the log-probability of each of `count` ids, given the ids before it; 0 for the first. The
// model must be decoder-only.
FOVEA_API fovea_status fovea_model_score(fovea_model* model, const int32_t* ids, size_t count,
                                         float* logprobs);

// ---- Traces ----

// Set one of `text`, `ids` and `input`; fovea/study/trace.h describes them.
typedef struct fovea_trace_options {
  size_t size;
  const char* text;
  size_t text_size;
  const int32_t* ids;
  size_t id_count;
  const char* input;   // path of a .safetensors file
  int32_t gradients;   // also write the loss and all gradients; requires FOVEA_WEIGHTS_FULL
  int32_t reserved;    // 0
  const char* what;    // names, separated by commas; NULL = those that are written by default
  const char* layers;  // such as "0-5"; NULL = all
  const char* patch;   // path of a .safetensors file; NULL = none
} fovea_trace_options;
FOVEA_API fovea_status fovea_trace_options_init(fovea_trace_options* options, size_t size);
// Runs the model once and writes its intermediate results to the .safetensors file `out`.
FOVEA_API fovea_status fovea_model_trace(fovea_model* model, const fovea_trace_options* options,
                                         const char* out);

// ---- Chat ----

typedef struct fovea_message {
  const char* role;  // "system", "user", "assistant", "tool", ...
  const char* content;
  size_t content_size;
  // Further members as a JSON object, such as {"tool_calls": [...]}; NULL = none.
  const char* members;
} fovea_message;

typedef struct fovea_chat_options {
  size_t size;
  const char* tools;             // a JSON array of function schemas; NULL = none
  const char* documents;         // a JSON array of {"title", "text"}; NULL = none
  const char* variables;         // a JSON object of further variables of the template; NULL = none
  int32_t no_generation_prompt;  // do not end with the beginning of an answer
  int32_t reserved;              // 0
} fovea_chat_options;
FOVEA_API fovea_status fovea_chat_options_init(fovea_chat_options* options, size_t size);

// Opens the chat template of a model, or that of a file if `template_file` is not NULL. The chat
// may outlive the model's handle.
FOVEA_API fovea_status fovea_chat_open(fovea_model* model, const char* template_file,
                                       fovea_chat** chat);
FOVEA_API void fovea_chat_free(fovea_chat* chat);
FOVEA_API const char* fovea_chat_error(const fovea_chat* chat);
// Returns the conversation in the format that the model was trained on. `options` may be NULL.
FOVEA_API fovea_status fovea_chat_render(fovea_chat* chat, const fovea_message* messages,
                                         size_t count, const fovea_chat_options* options,
                                         const char** text, size_t* size);
// Generates the next message. Special tokens that users typed are read as plain text. `options`,
// `generation` and `result` may be NULL. The answer ends when the context is full.
FOVEA_API fovea_status fovea_chat_generate(fovea_chat* chat, const fovea_message* messages,
                                           size_t count, const fovea_chat_options* options,
                                           const fovea_generate_options* generation,
                                           fovea_generation* result);

// ---- Tokenizers ----

// Opens a tokenizer.json, a directory with a vocabulary, or a .gguf file.
FOVEA_API fovea_status fovea_tokenizer_open(const char* path, fovea_tokenizer** tokenizer);
FOVEA_API fovea_status fovea_tokenizer_share(fovea_tokenizer* tokenizer, fovea_tokenizer** other);
FOVEA_API void fovea_tokenizer_free(fovea_tokenizer* tokenizer);
FOVEA_API const char* fovea_tokenizer_error(const fovea_tokenizer* tokenizer);
// Returns the number of ids, special tokens included; 0 for NULL. Ids are [0, size).
FOVEA_API int32_t fovea_tokenizer_size(const fovea_tokenizer* tokenizer);

// Flags of fovea_tokenizer_encode() and fovea_tokenizer_decode().
enum {
  FOVEA_ADD_SPECIAL = 1,    // encode: add the special tokens of the tokenizer, such as [CLS]
  FOVEA_PARSE_SPECIAL = 2,  // encode: parse special tokens in the text; not for text of users
  FOVEA_SKIP_SPECIAL = 4    // decode: omit special tokens
};
FOVEA_API fovea_status fovea_tokenizer_encode(fovea_tokenizer* tokenizer, const char* text,
                                              size_t size, uint32_t flags, const int32_t** ids,
                                              size_t* count);
FOVEA_API fovea_status fovea_tokenizer_decode(fovea_tokenizer* tokenizer, const int32_t* ids,
                                              size_t count, uint32_t flags, const char** text,
                                              size_t* size);

// ---- Embedding ----

typedef struct fovea_embedder_options {
  size_t size;
  int32_t precision;  // FOVEA_WEIGHTS_...; default STORED
  int32_t reserved;   // 0
} fovea_embedder_options;
FOVEA_API fovea_status fovea_embedder_options_init(fovea_embedder_options* options, size_t size);

// Opens a sentence-transformers directory, or a Hugging Face directory of an encoder or decoder.
FOVEA_API fovea_status fovea_embedder_open(const char* path, const fovea_embedder_options* options,
                                           fovea_embedder** embedder);
FOVEA_API fovea_status fovea_embedder_share(fovea_embedder* embedder, fovea_embedder** other);
FOVEA_API void fovea_embedder_free(fovea_embedder* embedder);
FOVEA_API const char* fovea_embedder_error(const fovea_embedder* embedder);
FOVEA_API const char* fovea_embedder_warning(const fovea_embedder* embedder, size_t index);
// Returns the number of elements of a vector; 0 for NULL.
FOVEA_API int64_t fovea_embedder_width(const fovea_embedder* embedder);

typedef struct fovea_embed_options {
  size_t size;
  const char* prompt_name;  // one of the model's prompts; NULL = its default prompt, if any
  const char* prompt;       // any text, used instead of a prompt of the model; NULL = unset
  int64_t dimensions;       // keep only this number of elements of each vector; 0 = all
  int32_t normalise;        // 1 = to unit length, 0 = no, -1 = the model's setting
  int32_t truncate;         // 1 = truncate long texts (default), 0 = refuse them
  int64_t batch_tokens;     // maximum tokens per forward pass; 0 = a fast default
} fovea_embed_options;
FOVEA_API fovea_status fovea_embed_options_init(fovea_embed_options* options, size_t size);

// Writes the vectors of texts to `values` [count, width], which the caller owns: count * width
// floats, where width is `dimensions`, or fovea_embedder_width(). `capacity` is the number of
// floats that fit. `sizes` has the sizes of the texts, or is NULL if each ends with NUL.
FOVEA_API fovea_status fovea_embedder_embed(fovea_embedder* embedder, const char* const* texts,
                                            const size_t* sizes, size_t count,
                                            const fovea_embed_options* options, float* values,
                                            size_t capacity);

// ---- Training ----

// An option of training: {"learning_rate", "1e-3"}. fovea_train_option_name() lists the names:
// "preset", "dropout", and the fields of the training options and of the model. Numbers are
// decimal, sizes are in bytes, booleans are "true" or "false", and commas separate the numbers of a
// list. For an option with several texts, such as "data", pass one fovea_option per text.
typedef struct fovea_option {
  const char* name;
  const char* value;
} fovea_option;

// Return the name and the description of an option; NULL if `index`, which counts from 0, is past
// the last one. Valid until the process ends.
FOVEA_API const char* fovea_train_option_name(size_t index);
FOVEA_API const char* fovea_train_option_help(size_t index);

typedef struct fovea_train_progress {
  size_t size;
  int64_t step, steps;
  double epoch;
  double loss;             // of the last step
  double validation_loss;  // of the last evaluation; NaN = none yet
  double best_loss;        // of the best evaluation; NaN = none yet
  double learning_rate, gradient_norm;
  double tokens_per_second, seconds_left;
  int64_t tokens;       // processed so far
  uint64_t peak_bytes;  // peak resident memory
  // Set only at the steps at which they occur, else NULL.
  const char* sample;  // a generated text
  const char* saved;   // the snapshot that was just written
  const char* warning;
} fovea_train_progress;
// Called after every step. FOVEA_STOP saves a snapshot and stops. `progress` is valid during the
// call.
typedef int (*fovea_train_callback)(const fovea_train_progress* progress, void* user);

typedef struct fovea_train_result {
  size_t size;
  int64_t step;
  double loss;
  double best_loss;  // held-out loss of the weights that were written; 0 = never evaluated
  double seconds, tokens_per_second;
  uint64_t peak_bytes;
  int32_t interrupted;    // the callback stopped the run
  int32_t stopped_early;  // no improvement for `patience` evaluations
} fovea_train_result;

// Trains a model and writes it to the directory of the option "out", from which
// fovea_model_open() opens it. Resumes if the directory has a snapshot of the same run. `on_step`
// and `result` may be NULL.
FOVEA_API fovea_status fovea_train(const fovea_option* options, size_t count,
                                   fovea_train_callback on_step, void* user,
                                   fovea_train_result* result);

#ifdef __cplusplus
}
#endif

#endif  // FOVEA_C_H
