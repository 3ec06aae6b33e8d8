/* Reads any bytes as a GraphDef: it is refused with a message, or rewritten in each of TensorFlow's
 * modes to a GraphDef that can be read again. Bytes without a control character are read as
 * protobuf's text form. */
#include "frontend/import/load.h"
#include "frontend/tf/graphdef.h"
#include "frontend/tf/pass.h"
#include "frontend/tf/report.h"

#include <stdlib.h>
#include <string.h>

static const TfSettings settings[] = {
    {.version = 219, .mode = TF_CUDA, .gpu = true, .fast_gpu = true, .cuda = 11050, .cudnn = 8302},
    {.version = 221, .mode = TF_CUDA, .simulate_gpu = true, .level = TF_UNSAFE_FORCE_ALL},
    {.version = 215, .mode = TF_BF16},
    {.version = 221, .mode = TF_CPU, .emulate = true},
};
static FILE *null;

static TfGraph *graph_of(Arena *arena, Bytes bytes, Diag *diag) {
  Tensorflow__GraphDef *def = tf_graphdef_unpack(arena, "fuzz.pb", bytes, diag);
  return def ? tf_graph_new(arena, def, "fuzz.pb", diag) : NULL;
}

static void check_again(Arena *arena, const TfGraph *graph) {
  char *text;
  size_t size;
  Diag diag = {.out = null};
  FILE *out = open_memstream(&text, &size);
  tf_graphdef_write(arena, graph->def, false, out);
  fclose(out);
  Bytes bytes = {(uint8_t *)text, (int)size, 0}, same;
  CHECK(tf_graphdef_bytes(arena, "again", bytes, false, &same, &diag), "no wire format");
  TfGraph *again = graph_of(arena, same, &diag);
  CHECK(again && tf_graph_build(again), "does not read back: %s", again ? again->failure : "");
  free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  if (!null)
    null = fopen("/dev/null", "w");
  Arena *arena = arena_new();
  Diag diag = {.out = null};
  Bytes wire, bytes = {(uint8_t *)arena_strdup(arena, (const char *)data, size), (int)size, 0};
  bool text = model_form("-", (const char *)bytes.at, size) != MODEL_PB;
  bool good = tf_graphdef_bytes(arena, "fuzz.pb", bytes, text, &wire, &diag);
  for (size_t i = 0; good && i < sizeof settings / sizeof settings[0]; i++) {
    TfGraph *graph = graph_of(arena, wire, &diag);
    if (!graph)
      break;
    TfOutcome outcome;
    tf_pass(graph, &settings[i], &outcome);
    CHECK(!outcome.rewritten || !outcome.failed, "failed, yet rewritten");
    if (outcome.failed)
      continue;
    tf_report(graph, outcome.rewritten ? &outcome.rewrite : NULL, outcome.log, null);
    pbtext_print(&graph->def->base, null);
    check_again(arena, graph);
  }
  CHECK(good || diag.n_errors > 0, "refused without a word");
  arena_free(arena);
  return 0;
}
