/* Event files for TensorBoard, where Estimator puts them: of training in the model folder, of
 * evaluations in its folder eval. */
#include "runtime/report/tensorboard.h"

#include "runtime/base/convert.h"
#include "runtime/base/names.h"
#include "runtime/report/events.h"
#include "runtime/report/sink.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { IMAGES = 6 }; /* of a summary, as in the official programs */

typedef struct Board {
  AmprtSession *session;
  AmprtEvents train, eval;
  bool told; /* a warning has said that a file cannot be written */
  /* of the step that a summary is due for and that was begun last */
  int64_t due;          /* its number; -1: none */
  unsigned char *pixel; /* [n_images, height, width, channels] */
  int64_t n_images, count;
  int32_t *label; /* [batch_size] */
  float *logits;  /* [batch_size, classes] */
  /* of the summary before this one */
  double seconds;
  int64_t step;
  uint64_t examples;
} Board;

static AmprtStatus open_train(Board *board, AmprtError *error) {
  const AmprtProgram *program = board->session->program;
  size_t image = (size_t)(program->height * program->width * program->channels);
  size_t batch = (size_t)program->batch_size, classes = (size_t)program->n_classes;
  board->pixel = malloc(IMAGES * image);
  board->label = calloc(batch, sizeof *board->label);
  board->logits = malloc(batch * classes * sizeof *board->logits);
  if (!board->pixel || !board->label || !board->logits)
    return amprt_fail_memory(error, IMAGES * image + 4 * batch * (classes + 1), "--tensorboard");
  AmprtStatus status = amprt_events_open(&board->train, board->session->dir.path, error);
  return status ? status : amprt_events_start(&board->train, board->session->progress.step, error);
}

static AmprtStatus board_check(const AmprtSession *session, AmprtError *error) {
  if (session->options.tensorboard && !*session->dir.path)
    return amprt_fail(error, AMPRT_USAGE,
                      "--tensorboard writes to the model folder; --model-dir says where");
  return AMPRT_OK;
}

static AmprtStatus board_open(AmprtSession *session, void **state, AmprtError *error) {
  const AmprtOptions *options = &session->options;
  char dir[AMPRT_PATH];
  bool trains = !options->eval_only && options->train_epochs > 0;
  if (!options->tensorboard)
    return AMPRT_OK;
  Board *board = calloc(1, sizeof *board);
  if (!board)
    return amprt_fail_memory(error, sizeof *board, "--tensorboard");
  *state = board;
  board->session = session;
  board->train.fd = board->eval.fd = -1;
  board->due = -1;
  AmprtStatus status = trains ? open_train(board, error) : AMPRT_OK;
  if (!status)
    status = amprt_path(dir, session->dir.path, "eval", error);
  return status ? status : amprt_events_open(&board->eval, dir, error);
}

static void board_close(void *state, AmprtStatus status, int stopped) {
  Board *board = state;
  (void)status, (void)stopped;
  amprt_events_close(&board->train);
  amprt_events_close(&board->eval);
  free(board->pixel);
  free(board->label);
  free(board->logits);
  free(board);
}

static void write_events(Board *board, AmprtEvents *events) {
  AmprtError error;
  if (!amprt_events_write(events, board->session->progress.step, &error))
    return;
  amprt_events_close(events);
  if (!board->told)
    amprt_warn(&board->session->log, "%s; no more events for TensorBoard", error.text);
  board->told = true;
}

/* One image as bytes, as TensorFlow's image summary makes them: if nothing is below 0, the largest
 * becomes 255, else 0 becomes 127 and what is farthest from it 0 or 255. What is not finite is
 * 0. */
static void bytes_of(const float *image, int64_t n, unsigned char *out) {
  float least = 0, most = 0;
  for (int64_t i = 0; i < n; i++) {
    least = isfinite(image[i]) && image[i] < least ? image[i] : least;
    most = isfinite(image[i]) && image[i] > most ? image[i] : most;
  }
  float offset = least < 0 ? 127 : 0, reach = most;
  if (least < 0)
    reach = fmaxf(-least * 128 / 127, most); /* 127 steps down, 128 up */
  float scale = reach > 0 ? (least < 0 ? 128 : 255) / reach : 0;
  for (int64_t i = 0; i < n; i++)
    out[i] = isfinite(image[i]) ? (unsigned char)fminf(255, image[i] * scale + offset) : 0;
}

static bool board_begin(void *state, int64_t number, const AmprtBatch *batch) {
  Board *board = state;
  if (board->train.fd < 0 || number % board->session->options.summary_every)
    return false;
  const AmprtProgram *program = board->session->program;
  int64_t n = program->height * program->width * program->channels;
  board->due = number;
  board->count = batch->count;
  board->n_images = batch->count < IMAGES ? batch->count : IMAGES;
  memcpy(board->label, batch->label, (size_t)batch->count * sizeof *batch->label);
  for (int64_t i = 0; i < board->n_images; i++)
    if (batch->pixel)
      memcpy(board->pixel + i * n, batch->pixel + i * n, (size_t)n);
    else
      bytes_of(batch->image + i * n, n, board->pixel + i * n);
  return true;
}

double amprt_share_in_top5(const float *logits, const int32_t *label, int64_t n, int64_t classes) {
  int64_t hits = 0;
  for (int64_t i = 0; i < n; i++) {
    const float *row = logits + i * classes;
    float own = row[label[i]];
    int64_t above = 0;
    for (int64_t k = 0; k < classes; k++)
      above += !(row[k] <= own);
    hits += isfinite(own) && above < 5;
  }
  return (double)hits / (double)n;
}

/* NaN if the program has no logits, or so few classes that the figure would mean nothing. */
static double top5(const Board *board) {
  const AmprtSession *session = board->session;
  const AmprtGraph *graph = session->machine.train;
  const AmprtPort *port = amprt_port_find(graph->output, graph->n_outputs, amprt_name_logits);
  int64_t classes = session->program->n_classes;
  if (!port || classes <= 5 || amprt_port_elements(port) != session->program->batch_size * classes)
    return (double)NAN;
  amprt_to_f32((AmprtDType)port->dtype, amprt_port_at(&session->machine, port), board->logits,
               (size_t)amprt_port_elements(port));
  return amprt_share_in_top5(board->logits, board->label, board->count, classes);
}

static void add_scalars(Board *board, const AmprtStepEnd *end) {
  const AmprtResult *result = end->result;
  const AmprtSession *session = board->session;
  double in_top5 = top5(board), span = end->seconds - board->seconds;
  AmprtEvents *events = &board->train;
  amprt_events_scalar(events, "loss", result->loss);
  amprt_events_scalar(events, "cross_entropy", result->loss);
  if (!isnan(result->l2_loss)) {
    amprt_events_scalar(events, "l2_loss", result->l2_loss);
    amprt_events_scalar(events, "total_loss", result->loss + result->l2_loss);
  }
  amprt_events_scalar(events, "train_accuracy", result->accuracy);
  if (!isnan(in_top5))
    amprt_events_scalar(events, "train_accuracy_top_5", in_top5);
  amprt_events_scalar(events, "learning_rate", result->learning_rate);
  if (result->loss_scale)
    amprt_events_scalar(events, "loss_scale", result->loss_scale);
  if (!isnan(result->gradient_norm))
    amprt_events_scalar(events, "gradient_norm", result->gradient_norm);
  if (board->seconds > 0 && span > 0) { /* not in the first, which has seen no step but its own */
    amprt_events_scalar(events, "global_step/sec",
                        (double)(session->progress.step - board->step) / span);
    amprt_events_scalar(events, "images_per_second",
                        (double)(session->progress.examples - board->examples) / span);
  }
  board->seconds = end->seconds;
  board->step = session->progress.step;
  board->examples = session->progress.examples;
}

static void add_images(Board *board) {
  const AmprtProgram *program = board->session->program;
  int64_t size = program->height * program->width * program->channels;
  for (int64_t i = 0; i < board->n_images; i++) {
    char tag[32];
    snprintf(tag, sizeof tag, "images/image/%d", (int)i);
    amprt_events_image(&board->train, tag, board->pixel + i * size, program->height, program->width,
                       program->channels);
  }
}

static void board_step(void *state, const AmprtStepEnd *end) {
  Board *board = state;
  if (board->due == end->number) {
    add_scalars(board, end);
    add_images(board);
    board->due = -1;
  }
  write_events(board, &board->train);
}

static void board_score(void *state, const AmprtScore *score) {
  Board *board = state;
  amprt_events_scalar(&board->eval, "accuracy", score->accuracy);
  if (!isnan(score->accuracy5))
    amprt_events_scalar(&board->eval, "accuracy_top_5", score->accuracy5);
  amprt_events_scalar(&board->eval, "loss", score->loss);
  write_events(board, &board->eval);
}

static struct AmprtEvents *board_events(void *state) {
  Board *board = state;
  return board->train.fd >= 0 ? &board->train : NULL;
}

const AmprtSink amprt_tensorboard = {.check = board_check,
                                     .open = board_open,
                                     .begin = board_begin,
                                     .step = board_step,
                                     .score = board_score,
                                     .events = board_events,
                                     .close = board_close};
