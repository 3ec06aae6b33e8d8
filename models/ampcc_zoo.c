/* ampcc-zoo: writes a model of the zoo as ModelDef, in binary or text form. */
#include "frontend/import/pbtext.h"
#include "ir/base/exit.h"
#include "ir/base/output.h"
#include "ir/base/text.h"
#include "models/zoo.h"

#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "usage: ampcc-zoo NAME [-o FILE] [options]\n"
    "       ampcc-zoo --all --out-dir=FOLDER [options]\n"
    "       ampcc-zoo --list\n\n"
    "Writes the model NAME for ampcc, or every model as FOLDER/NAME.pb.\n\n"
    "  -o FILE            .pbtxt: protobuf's text form, else binary; `-` or nothing: standard "
    "output\n"
    "  --text             the text form whatever FILE is called\n"
    "  --classes=N        number of classes, instead of the family's own\n"
    "  --bn-momentum=X    momentum of the moving statistics, instead of the family's own\n"
    "  --out-dir=FOLDER   where --all writes; it is made if it is not there\n"
    "  --list             every name, with what it is\n"
    "  -h, --help         this text\n";

/* ---- names ---- */

static int size_at(const ZooFamily *family, int i) { /* 0 after the last */
  if (family->sizes)
    return family->sizes[i];
  int size = family->first + i * family->step;
  return size <= family->last ? size : 0;
}

static const char *member_name(Arena *arena, const ZooFamily *family, int size) {
  return size ? arena_printf(arena, "%s%d%s", family->prefix, size, family->suffix)
              : family->prefix;
}

/* Calls `visit` for every member until it returns true. */
typedef bool Visit(const ZooFamily *family, int size, const char *name, void *data);

static bool visit_members(Arena *arena, Visit *visit, void *data) {
  for (int f = 0; f < n_zoo_families; f++) {
    const ZooFamily *family = &zoo_family[f];
    bool single = !family->sizes && !family->first;
    for (int i = 0; single ? i < 1 : size_at(family, i) > 0; i++) {
      int size = single ? 0 : size_at(family, i);
      if (visit(family, size, member_name(arena, family, size), data))
        return true;
    }
  }
  return false;
}

static bool print_member(const ZooFamily *family, int size, const char *name, void *data) {
  (void)size, (void)data;
  printf("%-26s %s\n", name, family->summary);
  return false;
}

typedef struct Search {
  const char *name;
  const ZooFamily *family;
  int size;
} Search;

static bool match_member(const ZooFamily *family, int size, const char *name, void *data) {
  Search *search = data;
  if (strcmp(name, search->name))
    return false;
  search->family = family;
  search->size = size;
  return true;
}

/* ---- output ---- */

static int write_model(Arena *arena, const Ampcc__ModelDef *model, const char *path, bool text) {
  Output out;
  if (!output_open(arena, path, &out))
    return EXIT_ENVIRONMENT;
  if (text) {
    pbtext_print(&model->base, out.file);
  } else {
    size_t size = ampcc__model_def__get_packed_size(model);
    uint8_t *bytes = arena_alloc(arena, size);
    ampcc__model_def__pack(model, bytes);
    fwrite(bytes, 1, size, out.file);
  }
  return output_close(&out) ? 0 : EXIT_ENVIRONMENT;
}

/* ---- command line ---- */

typedef struct Arguments {
  const char *name, *output, *folder;
  bool text, list, all, help;
  ZooOptions zoo; /* classes is 0 if the family's own number is wanted */
} Arguments;

static bool parse_number(const char *text, double low, double high, double *out) {
  char *end;
  *out = strtod(text, &end);
  return end != text && !*end && *out >= low && *out <= high;
}

static bool parse_one(Arguments *args, int argc, char **argv, int *i) {
  const char *arg = argv[*i];
  double number;
  if (!strcmp(arg, "-h") || !strcmp(arg, "--help"))
    return args->help = true;
  if (!strcmp(arg, "--list"))
    return args->list = true;
  if (!strcmp(arg, "--all"))
    return args->all = true;
  if (!strncmp(arg, "--out-dir=", 10) && arg[10])
    return args->folder = arg + 10, true;
  if (!strcmp(arg, "--text"))
    return args->text = true;
  if (!strcmp(arg, "-o") && *i + 1 < argc)
    return args->output = argv[++*i], true;
  if (!strncmp(arg, "--classes=", 10) && parse_number(arg + 10, 2, 1 << 20, &number))
    return args->zoo.classes = (int64_t)number, true;
  if (!strncmp(arg, "--bn-momentum=", 14) && parse_number(arg + 14, 0, 1, &number))
    return args->zoo.bn_momentum = number, true;
  if (*arg == '-' || args->name)
    return false;
  return args->name = arg, true;
}

static int build(Arena *arena, const Arguments *args, const ZooFamily *family, int size,
                 const char *name, const char *path) {
  Builder *b = builder_new(arena, name);
  ZooOptions options = args->zoo;
  options.classes = options.classes ? options.classes : family->classes;
  family->build(b, size, options);
  Ampcc__Recipe *recipe = b->model->recipe;
  recipe->dataset_is_case = AMPCC__RECIPE__DATASET_IS_DATASET;
  recipe->dataset = (char *)(uintptr_t)family->dataset; /* packed, never freed */
  size_t length = strlen(path);
  bool text = args->text || (length > 6 && !strcmp(path + length - 6, ".pbtxt"));
  return write_model(arena, b->model, path, text);
}

static int run_one(Arena *arena, const Arguments *args) {
  Search search = {.name = args->name};
  if (!visit_members(arena, match_member, &search)) {
    text_say("ampcc-zoo: no model `%s`; --list names them all\n", args->name);
    return EXIT_INPUT;
  }
  return build(arena, args, search.family, search.size, args->name,
               args->output ? args->output : "-");
}

typedef struct WritingAll {
  const Arguments *args;
  int status;
} WritingAll;

/* Writes one model of --all; stops at the first that cannot be written. */
static bool write_member(const ZooFamily *family, int size, const char *name, void *data) {
  WritingAll *all = data;
  Arena *arena = arena_new();
  const char *path =
      arena_printf(arena, "%s/%s.%s", all->args->folder, name, all->args->text ? "pbtxt" : "pb");
  all->status = build(arena, all->args, family, size, name, path);
  arena_free(arena);
  return all->status != 0;
}

static int run_all(Arena *arena, const Arguments *args) {
  WritingAll all = {.args = args};
  if (!output_folder(args->folder))
    return EXIT_ENVIRONMENT;
  visit_members(arena, write_member, &all);
  return all.status;
}

/* Do the arguments fit each other? False after a line on stderr. */
static bool check(const Arguments *args) {
  if (args->help || args->list)
    return true;
  const char *wrong = NULL;
  if (args->all && !args->folder)
    wrong = "--all needs --out-dir=FOLDER";
  else if (args->all && (args->name || args->output))
    wrong = "--all writes every model to --out-dir: leave out the name and -o";
  else if (!args->all && args->folder)
    wrong = "--out-dir is where --all writes; give -o FILE";
  if (wrong)
    text_say("ampcc-zoo: %s\n", wrong);
  else if (!args->all && !args->name)
    fputs(usage, stderr);
  return !wrong && (args->all || args->name);
}

int main(int argc, char **argv) {
  output_start("ampcc-zoo");
  Arguments args = {.zoo = {.bn_momentum = -1}};
  for (int i = 1; i < argc; i++)
    if (!parse_one(&args, argc, argv, &i)) {
      text_say("ampcc-zoo: unexpected argument `%s`; see --help\n", argv[i]);
      return EXIT_USAGE;
    }
  if (!check(&args))
    return EXIT_USAGE;
  Arena *arena = arena_new();
  int status = 0;
  if (args.help)
    fputs(usage, stdout);
  else if (args.list)
    visit_members(arena, print_member, NULL);
  else
    status = (args.all ? run_all : run_one)(arena, &args);
  arena_free(arena);
  return output_finish(status);
}
