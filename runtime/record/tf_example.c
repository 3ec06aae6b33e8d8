#include "runtime/record/tf_example.h"

#include "runtime/record/example.pb-c.h"

#include <stdlib.h>
#include <string.h>

static const char *const side_name[] = {"image/object/bbox/ymin", "image/object/bbox/xmin",
                                        "image/object/bbox/ymax", "image/object/bbox/xmax"};

/* The feature of a name, of one kind: NULL if there is none, or one without a value. *bad: there is
 * one of another kind. As in every map of protobuf, the last entry of a name counts. */
static const Amprt__Feature *find(const Amprt__Example *message, const char *name,
                                  Amprt__Feature__KindCase kind, bool *bad) {
  const Amprt__Feature *found = NULL;
  for (size_t i = 0; message->features && i < message->features->n_feature; i++)
    if (!strcmp(message->features->feature[i]->key, name))
      found = message->features->feature[i]->value;
  if (!found || found->kind_case == AMPRT__FEATURE__KIND__NOT_SET)
    return NULL;
  if (found->kind_case == kind)
    return found;
  *bad = true;
  return NULL;
}

/* Reads the boxes, which are four lists of the same length. */
static const char *read_boxes(AmprtTfExample *example, const Amprt__Example *message) {
  const float **side[] = {&example->ymin, &example->xmin, &example->ymax, &example->xmax};
  size_t n[4] = {0};
  bool bad = false;
  for (int i = 0; i < 4; i++) {
    const Amprt__Feature *list = find(message, side_name[i], AMPRT__FEATURE__KIND_FLOAT_LIST, &bad);
    n[i] = list ? list->float_list->n_value : 0;
    *side[i] = list ? list->float_list->value : NULL;
  }
  if (bad)
    return "its feature image/object/bbox does not hold floats";
  if (n[0] != n[1] || n[0] != n[2] || n[0] != n[3] || n[0] > 1 << 20)
    return "its lists image/object/bbox/... are not of one length";
  example->n_boxes = (int)n[0];
  return NULL;
}

const char *amprt_tf_example_parse(AmprtTfExample *example, const void *data, size_t size) {
  bool bad = false;
  *example = (AmprtTfExample){.label = -1};
  Amprt__Example *message = amprt__example__unpack(NULL, size, data);
  example->message = message;
  if (!message)
    return "it is no tf.Example";
  const Amprt__Feature *encoded =
      find(message, "image/encoded", AMPRT__FEATURE__KIND_BYTES_LIST, &bad);
  if (!encoded || encoded->bytes_list->n_value != 1 || !encoded->bytes_list->value[0].len)
    return "it has no image/encoded with one image";
  example->encoded = encoded->bytes_list->value[0].data;
  example->size = encoded->bytes_list->value[0].len;
  const Amprt__Feature *label =
      find(message, "image/class/label", AMPRT__FEATURE__KIND_INT64_LIST, &bad);
  if (bad || (label && label->int64_list->n_value != 1))
    return "its image/class/label is not one integer";
  if (label)
    example->label = label->int64_list->value[0];
  return read_boxes(example, message);
}

void amprt_tf_example_close(AmprtTfExample *example) {
  if (example->message)
    amprt__example__free_unpacked(example->message, NULL);
  *example = (AmprtTfExample){0};
}

/* protobuf-c's structs take no const, and change nothing either. */
static void *plain(const void *pointer) {
  return (void *)(uintptr_t)pointer;
}

enum { MOST_FEATURES = 7 };

typedef struct Packing {
  Amprt__Feature feature[MOST_FEATURES];
  Amprt__FeatureEntry entry[MOST_FEATURES], *list[MOST_FEATURES];
  size_t n;
} Packing;

static Amprt__Feature *add(Packing *packing, const char *name, Amprt__Feature__KindCase kind) {
  size_t i = packing->n++;
  amprt__feature__init(&packing->feature[i]);
  amprt__feature_entry__init(&packing->entry[i]);
  packing->feature[i].kind_case = kind;
  packing->entry[i].key = plain(name);
  packing->entry[i].value = &packing->feature[i];
  packing->list[i] = &packing->entry[i];
  return &packing->feature[i];
}

unsigned char *amprt_tf_example_pack(const AmprtTfExample *example, const char *text,
                                     size_t *size) {
  Packing packing = {.n = 0};
  const float *side[] = {example->ymin, example->xmin, example->ymax, example->xmax};
  ProtobufCBinaryData encoded = {example->size, plain(example->encoded)};
  ProtobufCBinaryData name = {text ? strlen(text) : 0, plain(text)};
  Amprt__BytesList image = AMPRT__BYTES_LIST__INIT, class = AMPRT__BYTES_LIST__INIT;
  Amprt__FloatList sides[4];
  Amprt__Int64List labels = AMPRT__INT64_LIST__INIT;
  int64_t label = example->label;
  image.n_value = class.n_value = labels.n_value = 1;
  image.value = &encoded;
  class.value = &name;
  labels.value = &label;
  add(&packing, "image/encoded", AMPRT__FEATURE__KIND_BYTES_LIST)->bytes_list = &image;
  add(&packing, "image/class/label", AMPRT__FEATURE__KIND_INT64_LIST)->int64_list = &labels;
  if (text)
    add(&packing, "image/class/text", AMPRT__FEATURE__KIND_BYTES_LIST)->bytes_list = &class;
  for (int i = 0; i < 4; i++) {
    amprt__float_list__init(&sides[i]);
    sides[i].n_value = (size_t)example->n_boxes;
    sides[i].value = plain(side[i]);
    add(&packing, side_name[i], AMPRT__FEATURE__KIND_FLOAT_LIST)->float_list = &sides[i];
  }
  Amprt__Features features = AMPRT__FEATURES__INIT;
  features.n_feature = packing.n;
  features.feature = packing.list;
  Amprt__Example message = AMPRT__EXAMPLE__INIT;
  message.features = &features;
  *size = amprt__example__get_packed_size(&message);
  unsigned char *out = malloc(*size + 1);
  if (out)
    amprt__example__pack(&message, out);
  return out;
}
