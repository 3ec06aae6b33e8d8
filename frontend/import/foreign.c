#include "frontend/import/foreign.h"

#include <stdint.h>
#include <string.h>

/* ---- binary form: a tag is 8 * the field's number, plus 2 if the field has a length ---- */

typedef struct Span {
  const uint8_t *at, *end;
} Span;

static uint64_t take_number(Span *span) {
  uint64_t number = 0;
  for (int shift = 0; span->at < span->end && shift < 64; shift += 7) {
    uint8_t byte = *span->at++;
    number |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80)
      break;
  }
  return number;
}

/* The content of a field that has a length, cut at the end of the file. Called behind its tag. */
static Span take_content(Span *span) {
  uint64_t size = take_number(span), left = (uint64_t)(span->end - span->at);
  Span content = {span->at, span->at + (size < left ? size : left)};
  span->at = content.end;
  return content;
}

static bool begins(Span span, uint8_t byte) {
  return span.at < span.end && *span.at == byte;
}

/* The first field of a file is either the MetaInfoDef of a MetaGraphDef or the first node of a
 * GraphDef. Is it a MetaInfoDef? Its field 2 is a list of ops where the node's is the name of an
 * op, and its field 5 is a version in letters where the node's is a map. */
static bool is_meta_info(Span info) {
  while (info.at < info.end) {
    uint8_t tag = *info.at++;
    if ((tag & 7) == 0) {
      take_number(&info);
      continue;
    }
    if ((tag & 7) != 2)
      return false;
    Span content = take_content(&info);
    if (tag == 0x12)
      return begins(content, 0x0a);
    if (tag == 0x2a)
      return content.at < content.end && *content.at >= ' ';
  }
  return false;
}

/* Is this what follows the version, and perhaps a name, of an ONNX model? That is a graph, a list
 * of opsets, a number or a text. In a ModelDef it is an input, which is a message. */
static bool is_onnx(Span rest) {
  if (begins(rest, 0x3a) || begins(rest, 0x42) || begins(rest, 0x28))
    return true;
  if (!begins(rest, 0x1a) && !begins(rest, 0x22))
    return false;
  rest.at++;
  Span text = take_content(&rest);
  return text.at < text.end && *text.at >= ' ';
}

enum { OLDEST_ONNX = 3 }; /* no other format has reached this version */

static FileKind kind_of_bytes(Span file) {
  if (begins(file, 0x0a)) {
    file.at++;
    Span first = take_content(&file);
    if (is_meta_info(first))
      return FILE_METAGRAPHDEF;
    return begins(first, 0x0a) || begins(first, 0x12) ? FILE_GRAPHDEF : FILE_UNKNOWN;
  }
  if (!begins(file, 0x08)) /* the version of the formats below */
    return FILE_UNKNOWN;
  file.at++;
  uint64_t version = take_number(&file);
  bool has_second = begins(file, 0x12);
  Span second = {0}; /* a MetaGraphDef, the model's name, or that of ONNX's producer */
  if (has_second) {
    file.at++;
    second = take_content(&file);
  }
  if (version >= OLDEST_ONNX && is_onnx(file))
    return FILE_ONNX;
  if (!has_second)
    return begins(file, 0x1a) ? FILE_MODELDEF : FILE_UNKNOWN; /* with an input */
  return begins(second, 0x0a) || begins(second, 0x12) ? FILE_SAVEDMODEL : FILE_MODELDEF;
}

/* ---- text ---- */

/* Skips blanks, comments and colons. */
static const char *skip(const char *at) {
  while (at += strspn(at, " \t\r\n:"), *at == '#')
    at += strcspn(at, "\n");
  return at;
}

static FileKind kind_of_text(const char *at) {
  static const struct {
    const char *word;
    FileKind kind;
  } first[] = {{"saved_model_schema_version", FILE_SAVEDMODEL},
               {"meta_graphs", FILE_SAVEDMODEL},
               {"meta_info_def", FILE_METAGRAPHDEF},
               {"graph_def", FILE_METAGRAPHDEF},
               {"ir_version", FILE_ONNX},
               {"producer_name", FILE_ONNX},
               {"versions", FILE_GRAPHDEF},
               {"library", FILE_GRAPHDEF},
               {"version", FILE_MODELDEF},
               {"name", FILE_MODELDEF},
               {"input", FILE_MODELDEF},
               {"parameter", FILE_MODELDEF}};
  at = skip(at);
  size_t n = strspn(at, "abcdefghijklmnopqrstuvwxyz_");
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (strlen(first[i].word) == n && !strncmp(at, first[i].word, n))
      return first[i].kind;
  /* a GraphDef's node begins with its name; nodes of a ModelDef have none */
  if (n != 4 || strncmp(at, "node", 4) != 0 || *(at = skip(at + n)) != '{')
    return FILE_UNKNOWN;
  return strncmp(skip(at + 1), "name", 4) ? FILE_UNKNOWN : FILE_GRAPHDEF;
}

FileKind file_kind(bool text, const char *bytes, size_t size) {
  const uint8_t *at = (const uint8_t *)bytes;
  return text ? kind_of_text(bytes) : kind_of_bytes((Span){at, at + size});
}

const char *file_advice(FileKind kind) {
  if (kind == FILE_SAVEDMODEL)
    return "this is a TensorFlow SavedModel: ampcc-tf takes its graph as a GraphDef, which Python "
           "writes with tf.io.write_graph(tf.saved_model.load(FOLDER).signatures[NAME].graph, "
           "'.', 'graph.pb', as_text=False)";
  if (kind == FILE_METAGRAPHDEF)
    return "this is a TensorFlow MetaGraphDef: ampcc-tf takes its graph as a GraphDef, which "
           "Python writes with tf.io.write_graph(META.graph_def, '.', 'graph.pb', as_text=False)";
  if (kind == FILE_ONNX)
    return "this is an ONNX model, which is not supported: ampcc compiles a ModelDef, ampcc-tf "
           "rewrites a GraphDef of TensorFlow's";
  return NULL;
}
