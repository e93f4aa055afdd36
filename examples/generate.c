/* Continues a prompt with a model and prints the text as it is generated.
 *
 *   cc generate.c $(pkg-config --cflags --libs fovea)
 *   cmake: find_package(fovea REQUIRED COMPONENTS c)  target_link_libraries(generate fovea::c)
 *   usage: generate MODEL [PROMPT]
 */
#include <fovea/c.h>
#include <stdio.h>

static int print_piece(const char* piece, size_t size, void* user) {
  (void)user;
  fwrite(piece, 1, size, stdout);
  fflush(stdout);
  return FOVEA_CONTINUE; /* FOVEA_STOP ends the generation */
}

static fovea_status generate(fovea_model* model, const char* prompt) {
  fovea_generate_options options;
  fovea_generation result;
  fovea_status status = fovea_generate_options_init(&options, sizeof options, model);
  if (status != FOVEA_OK) return status;
  options.max_tokens = 100;
  options.on_text = print_piece;
  result.size = sizeof result;
  status = fovea_model_generate(model, prompt, FOVEA_NUL_TERMINATED, &options, &result);
  if (status == FOVEA_OK) fprintf(stderr, "\n%zu tokens\n", result.id_count);
  return status;
}

int main(int argc, char** argv) {
  fovea_model_options options;
  fovea_model* model;
  fovea_status status;
  if (argc < 2) {
    fprintf(stderr, "usage: generate MODEL [PROMPT]\n");
    return 2;
  }
  fovea_model_options_init(&options, sizeof options);
  options.precision = FOVEA_WEIGHTS_STORED; /* packed for fast inference */
  status = fovea_model_open(argv[1], &options, &model);
  if (status == FOVEA_OK) status = generate(model, argc > 2 ? argv[2] : "");
  /* Without a model, the message is that of the failed open. */
  if (status != FOVEA_OK) fprintf(stderr, "%s\n", fovea_model_error(model));
  fovea_model_free(model);
  return status == FOVEA_OK ? 0 : 1;
}
