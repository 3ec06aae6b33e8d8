#include "tests/cuda/step/pixels.h"

#include "codegen/text/common/args.h"
#include "runtime/base/convert.h"
#include "runtime/data/augment.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Images { /* images as the host has them; the GPU reads the same bytes */
  const AmprtPort *port;
  size_t n, each, bytes; /* number of elements of the port in one image */
  size_t images, channels;
  unsigned char *pixel;
  AmprtScaling *scaling;
  unsigned char *want; /* the bytes of the port */
} Images;

static const AmprtPort *find_port(const AmprtGraph *graph) {
  for (int i = 0; i < graph->n_inputs; i++)
    if (graph->input[i].pixels)
      return &graph->input[i];
  return NULL;
}

static void *allocate(size_t bytes) {
  void *made = aligned_alloc(64, (bytes + 64) / 64 * 64);
  if (!made)
    abort();
  return made;
}

/* Images with every value of a byte in an irregular order, and scalings with and without an offset,
 * one of them so small that f16 overflows. */
static Images images_new(const AmprtPort *port) {
  static const AmprtScaling scaling[] = {
      {0, 255}, {120.70756512369792, 64.1500758911213}, {3, 1e-3}};
  Images i = {.port = port, .n = 1};
  for (int d = 0; d < port->rank; d++)
    i.n *= (size_t)port->dim[d];
  i.images = (size_t)port->dim[0];
  i.channels = (size_t)port->dim[3];
  i.each = i.n / i.images;
  i.bytes = i.n * amprt_dtype_size((AmprtDType)port->dtype);
  i.pixel = allocate(i.n);
  i.scaling = allocate(i.images * i.channels * sizeof *i.scaling);
  i.want = allocate(i.bytes);
  float *floats = allocate(i.n * sizeof *floats);
  for (size_t k = 0; k < i.n; k++)
    i.pixel[k] = (unsigned char)(k * 151 + k / 256 * 7);
  for (size_t k = 0; k < i.images * i.channels; k++)
    i.scaling[k] = scaling[(k + k / i.channels) % 3];
  for (size_t k = 0; k < i.images; k++)
    amprt_image_floats(i.pixel + k * i.each, i.each, i.channels, i.scaling + k * i.channels,
                       floats + k * i.each);
  amprt_from_f32(port->dtype, floats, i.want, i.n);
  free(floats);
  return i;
}

static void images_free(Images *images) {
  free(images->pixel);
  free(images->scaling);
  free(images->want);
}

static const char *launch(Kernels *kernels, const CudaLaunch *from, const Images *images,
                          CudaRun run, uint64_t seed) {
  AmpPixels args;
  CudaLaunch what = *from;
  memcpy(&args, from->args, sizeof args);
  args.pixel = images->pixel;
  args.scaling = &images->scaling->offset;
  what.args = &args;
  return kernels_launch(kernels, &what, run, seed);
}

static int compare(const Images *images, const unsigned char *got, const ShimApi *shim) {
  size_t size = images->bytes / images->n;
  const unsigned char *left = shim->unwritten(got, images->bytes);
  if (left)
    printf("FAIL pixels left byte %td of the port unwritten\n", left - got);
  for (size_t k = 0; k < images->n; k++)
    if (memcmp(got + k * size, images->want + k * size, size) != 0) {
      printf("FAIL pixels: element %zu of image %zu, of byte %d, is not as on the host\n",
             k % images->each, k / images->each, images->pixel[k]);
      return 1;
    }
  return left != NULL;
}

int pixels_check(Kernels *kernels, const ShimApi *shim, const CudaGraph *launches,
                 const AmprtGraph *graph, CudaRun run, uint64_t seed) {
  const AmprtPort *port = find_port(graph);
  if (!port)
    return 0;
  Images images = images_new(port);
  unsigned char *at = (port->in_state ? run.state : run.arena) + port->at;
  size_t scaling_bytes = images.images * images.channels * sizeof *images.scaling;
  shim->add("pixels", images.pixel, images.n);
  shim->mark(images.pixel, images.n, SHIM_CONSTANT);
  shim->add("their scaling", images.scaling, scaling_bytes);
  shim->mark(images.scaling, scaling_bytes, SHIM_CONSTANT);
  shim->mark(at, images.bytes, SHIM_UNDEFINED);
  const char *error = launch(kernels, launches->pixels, &images, run, seed);
  if (error)
    printf("FAIL %s\n", error);
  int failed = error ? 1 : compare(&images, at, shim);
  shim->mark(at, images.bytes, SHIM_FORBIDDEN);
  shim->drop(images.pixel);
  shim->drop(images.scaling);
  images_free(&images);
  return failed;
}
