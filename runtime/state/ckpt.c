#include "runtime/state/ckpt.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/state/init.h"
#include "runtime/state/safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static bool is_filters(const AmprtVariable *variable) {
  return variable->rank == 4 && variable->dtype == AMPRT_F32 &&
         (variable->kind == AMPRT_PARAM || variable->kind == AMPRT_SLOT ||
          variable->kind == AMPRT_AVERAGE);
}

AmprtStatus amprt_ckpt_save(const char *path, const AmprtMachine *machine,
                            const AmprtProgress *progress, const AmprtMade *made,
                            const AmprtBatch *batch, AmprtError *error) {
  const AmprtProgram *program = machine->program;
  const int64_t image[] = {program->batch_size, program->height, program->width, program->channels};
  AmprtTensorOut *tensor = calloc((size_t)program->n_variables + 3, sizeof *tensor);
  char step[24], examples[24], seed[24], shards[24];
  int n = 0;
  const int64_t mix_numbers = AMPRT_MIX_NUMBERS;
  double mix[AMPRT_MIX_NUMBERS];
  if (!tensor)
    return amprt_fail_memory(error, (size_t)program->n_variables * sizeof *tensor, "a checkpoint");
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (amprt_variable_is_saved(v))
      tensor[n++] = (AmprtTensorOut){
          v->name, v->dtype, v->rank, v->dim, amprt_variable_at(machine, v), is_filters(v)};
  }
  if (batch) {
    tensor[n++] = (AmprtTensorOut){amprt_name_image, AMPRT_F32, 4, image, batch->image, false};
    tensor[n++] = (AmprtTensorOut){amprt_name_label, AMPRT_I32, 1, image, batch->label, false};
    amprt_mix_numbers(&batch->mix, mix);
    if (amprt_port_find(program->graph[0].input, program->graph[0].n_inputs, amprt_name_mix))
      tensor[n++] = (AmprtTensorOut){amprt_name_mix, AMPRT_F64, 1, &mix_numbers, mix, false};
  }
  snprintf(step, sizeof step, "%" PRId64, progress->step);
  snprintf(examples, sizeof examples, "%" PRIu64, progress->examples);
  snprintf(seed, sizeof seed, "%" PRIu64, progress->seed);
  snprintf(shards, sizeof shards, "%" PRId64, progress->shards);
  AmprtMeta meta[9 + AMPRT_MAX_MADE] = {
      {"format", "pt"},          {"ampcc", program->version},
      {"model", program->model}, {"fingerprint", program->fingerprint},
      {"dtype", program->dtype}, {"step", step},
      {"examples", examples},    {"seed", seed}};
  int n_meta = 8;
  if (progress->shards > 1)
    meta[n_meta++] = (AmprtMeta){"shards", shards};
  if (made->n)
    memcpy(meta + n_meta, made->field, (size_t)made->n * sizeof *meta);
  AmprtStatus status = amprt_machine_check(machine, error);
  if (!status)
    status = amprt_tensors_write(path, tensor, n, meta, n_meta + made->n, error);
  free(tensor);
  return status;
}

static void shape_in_file(const AmprtVariable *variable, int64_t dim[AMPRT_MAX_RANK]) {
  static const int kcrs[] = {0, 3, 1, 2};
  for (int i = 0; i < variable->rank; i++)
    dim[i] = variable->dim[is_filters(variable) ? kcrs[i] : i];
}

static bool same_shape(const AmprtVariable *variable, const AmprtTensor *tensor) {
  int64_t dim[AMPRT_MAX_RANK];
  shape_in_file(variable, dim);
  return tensor->rank == variable->rank &&
         (!tensor->rank || !memcmp(dim, tensor->dim, (size_t)tensor->rank * sizeof *dim));
}

static void add_shape(AmprtText *text, int rank, const int64_t *dim) {
  amprt_text_add(text, "[");
  for (int i = 0; i < rank; i++)
    amprt_text_add(text, "%s%" PRId64, i ? "," : "", dim[i]);
  amprt_text_add(text, "]");
}

/* A file that is being loaded: tensor[i] belongs to the program's variable i, or is NULL. */
typedef struct Match {
  const AmprtProgram *program;
  AmprtTensors file;
  const AmprtTensor **tensor;
  AmprtText wrong; /* everything that does not fit, separated by "; " */
  int n_wrong;
} Match;

enum { MOST_SHOWN = 8 };

static void begin_wrong(Match *match, const char *name) {
  match->n_wrong++;
  amprt_text_add(&match->wrong, "%s`%.200s` ", match->n_wrong > 1 ? "; " : "", name);
}

static void match_one(Match *match, int i, bool floats) {
  const AmprtVariable *variable = &match->program->variable[i];
  const AmprtTensor *tensor = amprt_tensors_find(&match->file, variable->name);
  bool fits = tensor && same_shape(variable, tensor);
  bool typed = tensor && tensor->known &&
               (tensor->dtype == variable->dtype ||
                (floats && amprt_dtype_is_float(tensor->dtype) && variable->dtype == AMPRT_F32));
  if (fits && typed) {
    match->tensor[i] = tensor;
    return;
  }
  if (match->n_wrong >= MOST_SHOWN) {
    match->n_wrong++;
    return;
  }
  begin_wrong(match, variable->name);
  if (!tensor) {
    amprt_text_add(&match->wrong, "is not in the file");
  } else if (!fits) {
    int64_t dim[AMPRT_MAX_RANK];
    shape_in_file(variable, dim);
    amprt_text_add(&match->wrong, "is ");
    add_shape(&match->wrong, tensor->rank, tensor->dim);
    amprt_text_add(&match->wrong, " in the file and ");
    add_shape(&match->wrong, variable->rank, dim);
    amprt_text_add(&match->wrong, " in the program");
  } else {
    amprt_text_add(&match->wrong, "is %.20s in the file and %s in the program", tensor->dtype_name,
                   amprt_dtype_name(variable->dtype));
  }
}

static AmprtStatus match_end(Match *match, const char *path, const char *hint, AmprtError *error) {
  if (match->wrong.failed)
    return amprt_fail_memory(error, match->wrong.room, "an error text");
  if (!match->n_wrong)
    return AMPRT_OK;
  int hidden = match->n_wrong - MOST_SHOWN;
  return amprt_fail(error, AMPRT_INPUT, "%s: does not fit this program: %s%s%.0d%s%s", path,
                    match->wrong.data, hidden > 0 ? "; and " : "", hidden > 0 ? hidden : 0,
                    hidden > 0 ? " more" : "", hint);
}

static AmprtStatus match_open(Match *match, const AmprtProgram *program, const char *path,
                              AmprtError *error) {
  *match = (Match){.program = program};
  match->tensor = calloc((size_t)program->n_variables + 1, sizeof *match->tensor);
  if (!match->tensor)
    return amprt_fail_memory(error, (size_t)program->n_variables * sizeof *match->tensor,
                             "a checkpoint");
  return amprt_tensors_read(path, &match->file, error);
}

static void match_close(Match *match) {
  amprt_tensors_free(&match->file);
  amprt_text_free(&match->wrong);
  free(match->tensor);
}

/* Stores one tensor in the state, converted through f32 if the types differ. `room` has space for
 * the largest tensor. */
static void store_one(const AmprtVariable *variable, const AmprtTensor *tensor,
                      unsigned char *state, float *room) {
  size_t n = (size_t)tensor->elements;
  if (tensor->dtype != variable->dtype || is_filters(variable))
    amprt_to_f32(tensor->dtype, tensor->data, room, n);
  if (is_filters(variable))
    amprt_filters_from_file(variable->dim, room, (float *)(void *)(state + variable->at));
  else if (tensor->dtype != variable->dtype)
    memcpy(state + variable->at, room, n * sizeof *room);
  else if (n)
    memcpy(state + variable->at, tensor->data, tensor->size);
}

static AmprtStatus store_all(const Match *match, const AmprtMachine *machine, AmprtError *error) {
  size_t most = 1;
  for (int i = 0; i < match->program->n_variables; i++)
    if (match->tensor[i] && (size_t)match->tensor[i]->elements > most)
      most = (size_t)match->tensor[i]->elements;
  float *room = malloc(most * sizeof *room);
  if (!room)
    return amprt_fail_memory(error, most * sizeof *room, "a checkpoint");
  for (int i = 0; i < match->program->n_variables; i++)
    if (match->tensor[i])
      store_one(&match->program->variable[i], match->tensor[i], machine->run.state, room);
  free(room);
  amprt_init_copies(match->program, machine->run.state, machine->run.threads);
  amprt_machine_push_state(machine);
  return AMPRT_OK;
}

static bool read_number(const AmprtTensors *file, const char *key, uint64_t *out) {
  const char *text = amprt_tensors_meta(file, key);
  char *end;
  errno = 0;
  *out = text ? strtoull(text, &end, 10) : 0;
  return text && *text >= '0' && *text <= '9' && !*end && !errno;
}

/* 1 if the file does not say, 0 if what it says is no number of shards. */
static int64_t read_shards(const AmprtTensors *file) {
  uint64_t n = 1;
  if (amprt_tensors_meta(file, "shards") && !read_number(file, "shards", &n))
    return 0;
  return n <= AMPRT_MAX_SHARDS ? (int64_t)n : 0;
}

int64_t amprt_ckpt_shards(const char *path) {
  AmprtTensors file = {0};
  AmprtError error;
  if (amprt_tensors_read(path, &file, &error))
    return 0;
  int64_t n = read_shards(&file);
  amprt_tensors_free(&file);
  return n;
}

/* a double holds integers of so many bits exactly, and no run takes more steps */
enum { MOST_STEPS_BITS = 53 };

static AmprtStatus check_meta(const Match *match, const char *path, AmprtProgress *progress,
                              AmprtText *notes, AmprtError *error) {
  const AmprtTensors *file = &match->file;
  const char *model = amprt_tensors_meta(file, "model");
  const char *fingerprint = amprt_tensors_meta(file, "fingerprint");
  uint64_t step;
  if (!model || !fingerprint || !amprt_tensors_meta(file, "crc32") ||
      !read_number(file, "step", &step) || !read_number(file, "examples", &progress->examples) ||
      !read_number(file, "seed", &progress->seed) || step >> MOST_STEPS_BITS ||
      progress->examples >> MOST_STEPS_BITS)
    return amprt_fail(error, AMPRT_INPUT,
                      "%s: is no checkpoint of ampcc (metadata); --init-from reads its weights",
                      path);
  progress->step = (int64_t)step;
  progress->shards = read_shards(file);
  if (!progress->shards)
    return amprt_fail(error, AMPRT_INPUT,
                      "%s: its `shards` is no number of shards; the file is damaged", path);
  if (strcmp(model, match->program->model))
    return amprt_fail(error, AMPRT_INPUT,
                      "%s: is a checkpoint of `%.80s`, this program trains `%s`; use another "
                      "--model-dir, or --init-from",
                      path, model, match->program->model);
  if (strcmp(fingerprint, match->program->fingerprint))
    amprt_text_add(notes, "%s was written by a different build of `%s`\n", path, model);
  return AMPRT_OK;
}

/* Refuses counters and loss scales that no run can have ended with, since a forged number could
 * overflow. */
static AmprtStatus check_counters(const Match *match, const char *path,
                                  const AmprtProgress *progress, AmprtError *error) {
  const AmprtProgram *program = match->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    const AmprtTensor *tensor = match->tensor[i];
    if (!tensor || tensor->elements != 1)
      continue;
    double value = amprt_scalar(tensor->dtype, tensor->data);
    if (v->kind == AMPRT_COUNTER && value != (double)progress->step)
      return amprt_fail(error, AMPRT_INPUT,
                        "%s: its `%s` is %.0f and the step of its metadata %" PRId64
                        "; the file is damaged",
                        path, v->name, value, progress->step);
    bool low = v->dtype == AMPRT_F32 ? value <= 0 : value < 0; /* counters start at 0 */
    if (v->kind == AMPRT_SCALE && (low || !(value <= 0x1p127)))
      return amprt_fail(error, AMPRT_INPUT, "%s: its `%s` is %g; the file is damaged", path,
                        v->name, amprt_shown(value));
  }
  return AMPRT_OK;
}

static bool has_scale_rule(const AmprtTensors *file) {
  return amprt_tensors_find(file, amprt_name_good_steps) != NULL;
}

/* Does the file hold the variable's initial value? */
static bool same_start(const AmprtVariable *variable, const AmprtTensor *tensor) {
  float value;
  if (tensor->dtype != AMPRT_F32 || tensor->rank || !tensor->known)
    return false;
  memcpy(&value, tensor->data, sizeof value);
  return value == (float)variable->init_arg[0];
}

/* A dynamic loss scale goes on where another dynamic one stopped, whatever the dtype. A fixed
 * one belongs to the program and not to the state: it is neither taken from a file nor replaced
 * by one. */
static void match_scale(Match *match, int i, AmprtText *notes) {
  const AmprtVariable *v = &match->program->variable[i];
  const char *dtype = amprt_tensors_meta(&match->file, "dtype");
  bool dynamic = amprt_variable_find(match->program, amprt_name_good_steps) != NULL;
  /* one note is enough for both variables of a dynamic scale */
  bool is_rule = !strcmp(v->name, amprt_name_good_steps);
  const AmprtTensor *tensor = amprt_tensors_find(&match->file, v->name);
  if (!tensor) {
    amprt_text_add(notes, "the checkpoint has no `%s`: it starts anew\n", v->name);
  } else if (!dynamic) {
    if (!same_start(v, tensor))
      amprt_text_add(notes, "the checkpoint's `%s` is not used: this program's is fixed\n",
                     v->name);
  } else if (!has_scale_rule(&match->file)) {
    amprt_text_add(notes, "the checkpoint's `%s` was fixed: it starts anew\n", v->name);
  } else {
    match_one(match, i, false);
    if (dtype && strcmp(dtype, match->program->dtype) && !is_rule) {
      amprt_text_add(notes, "the loss scale of the ");
      amprt_text_shown(notes, dtype);
      amprt_text_add(notes, " run goes on\n");
    }
  }
}

/* Finds the tensor of each variable. Only the loss scale may be missing from the file or the
 * program. */
static void match_all(Match *match, AmprtText *notes) {
  const AmprtProgram *program = match->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (v->kind == AMPRT_SCALE)
      match_scale(match, i, notes);
    else if (amprt_variable_is_saved(v))
      match_one(match, i, false);
  }
  for (int i = 0; i < match->file.n_tensors; i++) {
    const char *name = match->file.tensor[i].name;
    if (amprt_variable_find(program, name) || !strcmp(name, amprt_name_image) ||
        !strcmp(name, amprt_name_label) || !strcmp(name, amprt_name_mix))
      continue; /* the program knows it, or it is the batch of a reproducer */
    if (!strcmp(name, amprt_name_loss_scale) || !strcmp(name, amprt_name_good_steps)) {
      amprt_text_add(notes, "the checkpoint's `%s` is not used by this program\n", name);
    } else if (match->n_wrong++ < MOST_SHOWN) {
      match->n_wrong--;
      begin_wrong(match, name);
      amprt_text_add(&match->wrong, "is not in the program");
    }
  }
}

/* Compares the recipe in the file with the program's. Files of older compilers have none. */
static AmprtStatus compare_made(const Match *match, const char *path, const AmprtMade *made,
                                bool trains, AmprtText *changed, AmprtError *error) {
  for (int i = 0; i < made->n; i++) {
    const AmprtMeta *now = &made->field[i];
    const char *was = amprt_tensors_meta(&match->file, now->key);
    if (!was || !strcmp(was, now->value))
      continue;
    if (trains && !strcmp(now->key, "optimizer"))
      return amprt_fail(error, AMPRT_INPUT,
                        "%s: was made with --optimizer=%.40s and this program with "
                        "--optimizer=%s, whose state means something else; --init-from=%s starts "
                        "with its parameters and statistics",
                        path, was, now->value, path);
    amprt_text_add(changed, "%s%s=", changed->size ? ", " : "", now->key);
    amprt_text_shown(changed, was);
    amprt_text_add(changed, " (now %s)", now->value);
  }
  return AMPRT_OK;
}

AmprtStatus amprt_ckpt_resume(const char *path, AmprtMachine *machine, const AmprtMade *made,
                              bool trains, AmprtResumed *resumed, AmprtError *error) {
  Match match;
  AmprtProgress read = {0};
  AmprtText *notes = &resumed->notes;
  *resumed = (AmprtResumed){0};
  AmprtStatus status = match_open(&match, machine->program, path, error);
  resumed->damaged = status == AMPRT_INPUT;
  if (!status)
    status = check_meta(&match, path, &read, notes, error);
  if (!status)
    status = compare_made(&match, path, made, trains, &resumed->changed, error);
  if (!status) {
    match_all(&match, notes);
    status = match_end(&match, path, "; --init-from takes parameters and statistics only", error);
  }
  if (!status)
    status = check_counters(&match, path, &read, error);
  if (!status)
    status = store_all(&match, machine, error);
  match_close(&match);
  if (!status)
    resumed->progress = read;
  return status;
}

/* ---- --init-from ---- */

/* Names for people, at most MOST_SHOWN of them. */
typedef struct NameList {
  AmprtText text;
  int n;
} NameList;

static void list_name(NameList *list, const char *name) {
  if (list->n < MOST_SHOWN) {
    amprt_text_add(&list->text, "%s", list->n ? ", " : "");
    amprt_text_shown(&list->text, name);
  }
  list->n++;
}

/* "FILE: 3 WHAT: a, b, c", and empties the list. */
static void note_list(NameList *list, const char *path, const char *what, AmprtText *notes) {
  if (list->n)
    amprt_text_add(notes, "%s: %d %s: %s", path, list->n, what, list->text.data);
  if (list->n > MOST_SHOWN)
    amprt_text_add(notes, " and %d more", list->n - MOST_SHOWN);
  amprt_text_add(notes, "%s", list->n ? "\n" : "");
  amprt_text_free(&list->text);
  *list = (NameList){0};
}

static bool of_head(const AmprtProgram *program, const AmprtVariable *variable) {
  return variable->kind == AMPRT_PARAM && program->head && variable->layer &&
         !strcmp(variable->layer, program->head);
}

/* Is the tensor this parameter of the head, but for another number of classes? 0: no. */
static int64_t other_classes(const AmprtProgram *program, const AmprtVariable *variable,
                             const AmprtTensor *tensor) {
  int64_t dim[AMPRT_MAX_RANK], classes = 0;
  int differ = 0;
  shape_in_file(variable, dim);
  if (!of_head(program, variable) || tensor->rank != variable->rank)
    return 0;
  for (int i = 0; i < variable->rank; i++)
    if (dim[i] != tensor->dim[i]) {
      classes = dim[i] == program->n_classes ? tensor->dim[i] : 0;
      differ++;
    }
  return differ == 1 ? classes : 0;
}

/* The number of classes of the file, if that is another than the program's; else 0. */
static int64_t classes_of_file(const Match *match) {
  const AmprtProgram *program = match->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtTensor *tensor = amprt_tensors_find(&match->file, program->variable[i].name);
    int64_t classes = tensor ? other_classes(program, &program->variable[i], tensor) : 0;
    if (classes)
      return classes;
  }
  return 0;
}

/* Is it state of a training: what the program has besides parameters and statistics, the batch of a
 * reproducer, or a slot, PARAMETER.SUFFIX, of this optimizer or another? */
static bool is_state(const Match *match, const char *name) {
  static const char *const names[] = {amprt_name_loss_scale,  amprt_name_good_steps,
                                      amprt_name_global_step, amprt_name_image,
                                      amprt_name_label,       amprt_name_mix};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (!strcmp(name, names[i]))
      return true;
  for (int i = 0; i < match->program->n_variables; i++) {
    const AmprtVariable *v = &match->program->variable[i];
    size_t n = strlen(v->name);
    if (v->kind == AMPRT_PARAM && !strncmp(name, v->name, n) && name[n] == '.')
      return true;
  }
  return false;
}

/* All that is not in both, or of the head of another number of classes, goes into the notes; what
 * does not fit otherwise is wrong. How many tensors are used. */
static int match_weights(Match *match, const char *path, AmprtFit fit, AmprtText *notes) {
  const AmprtProgram *program = match->program;
  NameList head = {0}, missing = {0}, surplus = {0};
  int64_t classes = fit == AMPRT_FIT_LOOSE ? classes_of_file(match) : 0;
  int used = 0;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    if (v->kind != AMPRT_PARAM && v->kind != AMPRT_STAT)
      continue;
    if (classes && of_head(program, v))
      list_name(&head, v->name);
    else if (fit == AMPRT_FIT_LOOSE && !amprt_tensors_find(&match->file, v->name))
      list_name(&missing, v->name);
    else
      match_one(match, i, true);
    used += match->tensor[i] != NULL;
  }
  for (int i = 0; i < match->file.n_tensors; i++) {
    const char *name = match->file.tensor[i].name;
    if (amprt_variable_find(program, name) || is_state(match, name))
      continue;
    if (fit != AMPRT_FIT_STRICT) {
      list_name(&surplus, name);
    } else if (match->n_wrong++ < MOST_SHOWN) {
      match->n_wrong--;
      begin_wrong(match, name);
      amprt_text_add(&match->wrong, "is not in the program");
    }
  }
  char what[200];
  snprintf(what, sizeof what,
           "parameters are drawn afresh, as it has %" PRId64 " classes and this program %" PRId64,
           classes, program->n_classes);
  note_list(&head, path, what, notes);
  note_list(&missing, path, "of the program are not in it and begin afresh", notes);
  note_list(&surplus, path, "of its tensors are not used", notes);
  return used;
}

/* The average of a parameter that comes from the file: the file's own or, if it has none, the
 * parameter. */
static void match_averages(Match *match) {
  const AmprtProgram *program = match->program;
  for (int i = 0; i < program->n_variables; i++) {
    const AmprtVariable *v = &program->variable[i];
    const AmprtVariable *of = v->kind == AMPRT_AVERAGE ? amprt_variable_find(program, v->of) : NULL;
    if (!of || !match->tensor[of - program->variable])
      continue;
    const AmprtTensor *own = amprt_tensors_find(&match->file, v->name);
    bool fits = own && own->known && amprt_dtype_is_float(own->dtype) && same_shape(v, own);
    match->tensor[i] = fits ? own : match->tensor[of - program->variable];
  }
}

AmprtStatus amprt_ckpt_init_from(const char *path, AmprtMachine *machine, AmprtFit fit,
                                 AmprtText *notes, AmprtError *error) {
  Match match;
  AmprtStatus status = match_open(&match, machine->program, path, error);
  int used = status ? 0 : match_weights(&match, path, fit, notes);
  if (fit == AMPRT_FIT_LOOSE && match.n_wrong) { /* then what it lacks belongs into the error */
    amprt_text_free(notes);
    amprt_text_free(&match.wrong);
    match.n_wrong = 0;
    match_weights(&match, path, AMPRT_FIT_WHOLE, notes);
  }
  if (!status)
    status = match_end(&match, path, "", error);
  if (!status && !used)
    status = amprt_fail(error, AMPRT_INPUT, "%s: holds no parameter of this program", path);
  if (!status && notes->failed)
    status = amprt_fail_memory(error, notes->room, "a note");
  if (!status)
    match_averages(&match);
  if (!status)
    status = store_all(&match, machine, error);
  match_close(&match);
  return status;
}
