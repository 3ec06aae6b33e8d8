/* A program of the smallest kind, a CUDA part made by hand and one for the CPU, for refusals.py:
 * its step is a convolution, a product, and two kernels of device.cu, which count it and sum the
 * image.
 *
 *   refused FAULT FLAG...     FAULT: none, bits, image, plan, key, function, alone (no part for the
 * CPU)
 */
#include "tests/cuda/hand.h"

#include <stdio.h>
#include <string.h>
#include <zlib.h>

enum { BATCH = 2, X_SIZE = BATCH * 5 * 4 * 3, CLASSES = 4 };
enum { IMAGE = 0, LABEL = 512, Y = 1024, PRODUCT = 2048, OTHER = 3072, LOSS = 4096, ARENA = 8192 };
enum { STEP = 0, FILTER = 64, STATE = 1024 };

static const char json[] =
    "{\"cudnnVersion\":91900,\"operationGraph\":{\"tensors\":["
    "{\"name\":\"1\",\"dataType\":\"CUDNN_DATA_FLOAT\",\"dim\":[2,3,5,4],\"stride\":[60,1,12,3]},"
    "{\"name\":\"2\",\"dataType\":\"CUDNN_DATA_FLOAT\",\"dim\":[4,3,3,2],\"stride\":[18,1,6,3]},"
    "{\"name\":\"3\",\"dataType\":\"CUDNN_DATA_FLOAT\",\"dim\":[2,4,3,4],\"stride\":[48,1,16,4]}],"
    "\"nodes\":[{\"operation\":\"CUDNN_BACKEND_OPERATION_CONVOLUTION_FORWARD_DESCRIPTOR\","
    "\"X\":\"1\",\"W\":\"2\",\"Y\":\"3\",\"pad_lower\":[1,0],\"stride\":[2,1],\"dilation\":[1,1],"
    "\"alpha\":1.0,\"beta\":0.0}]},\"GPUProfile\":{\"deviceVer\":0},\"engine\":{\"engineId\":0}}";
static const char *const candidates[] = {"{\"engineId\":0}",
                                         "{\"engineId\":1,\"knobs\":{\"A\":2}}"};
static CudaPlan plan = {.json = json,
                        .json_bytes = sizeof json - 1,
                        .n_operands = 3,
                        .uid = {1, 2, 3},
                        .key = "fprop f32 n2 h5 w4 c3 k4 r3 s2 u2,1 p1,1,0,1",
                        .candidate = candidates,
                        .n_candidates = 2};
static const CudaMatmul product = {
    .dtype = AMPRT_F32, .trans_b = 1, .rows = 6, .columns = 4, .inner = 20};

static const Args add_args = {.x = IMAGE, .y = OTHER, .n = X_SIZE};
static const Args sum_args = {.x = IMAGE, .y = LOSS, .n = X_SIZE};

static CudaLaunch launches[] = {
    {.kind = CUDA_PLAN,
     .kernel = 0,
     .plan = &plan,
     .operand = {AT(IMAGE), {.at = FILTER, .block = CUDA_STATE}, AT(Y)}},
    {.kind = CUDA_MATMUL,
     .kernel = 1,
     .matmul = &product,
     .operand = {AT(IMAGE), AT(Y), AT(PRODUCT)}},
    LAUNCH(2, "add_constant", add_args, 2),
    LAUNCH(3, "sum_all", sum_args, 1),
};
enum { N_LAUNCHES = sizeof launches / sizeof *launches };
static const CudaGraph cuda_graph = {launches, N_LAUNCHES};
static CudaImage image = {ptx, sizeof ptx, 0, 0};
static CudaPart part = PART(&image, &cuda_graph);

/* ---- what both parts share ---- */

static void on_host(const AmprtRun *run, const void *args) {
  int64_t *step = (int64_t *)(void *)(run->state + STEP);
  float sum = 0, *x = (float *)(void *)(run->arena + IMAGE);
  (void)args;
  for (int i = 0; i < X_SIZE; i++)
    sum += x[i];
  memcpy(run->arena + LOSS, &sum, sizeof sum);
  ++*step;
}

static void nothing(const AmprtRun *run, const void *args) {
  (void)run, (void)args;
}

static const AmprtKernel kernels[N_LAUNCHES] = {{NULL, "k0_conv", "conv"},
                                                {NULL, "k1_matmul", "fc"},
                                                {NULL, "k2_add", "add"},
                                                {NULL, "k3_sum", ""}};
static AmprtFunction *const functions[N_LAUNCHES] = {nothing, nothing, nothing, on_host};
static const AmprtPort inputs[] = {
    {.name = "image", .dtype = AMPRT_F32, .rank = 4, .dim = {BATCH, 5, 4, 3}, .at = IMAGE},
    {.name = "label", .dtype = AMPRT_I32, .rank = 1, .dim = {BATCH}, .at = LABEL}};
static const AmprtPort outputs[] = {
    {.name = "loss", .dtype = AMPRT_F32, .at = LOSS, .after = N_LAUNCHES - 1}};
static const AmprtGraph graph = {.name = "train",
                                 .kernel = kernels,
                                 .run = functions,
                                 .input = inputs,
                                 .output = outputs,
                                 .n_kernels = N_LAUNCHES,
                                 .n_inputs = 2,
                                 .n_outputs = 1,
                                 .arena_bytes = ARENA};
static const AmprtVariable variables[] = {
    {.name = "global_step", .dtype = AMPRT_I64, .kind = AMPRT_COUNTER, .at = STEP},
    {.name = "conv.weight",
     .dtype = AMPRT_F32,
     .rank = 4,
     .kind = AMPRT_PARAM,
     .init = AMPRT_NORMAL,
     .dim = {4, 3, 2, 3},
     .at = FILTER,
     .init_arg = {0, 1}}};

#define PROGRAM(name, on, describes)                                                               \
  {                                                                                                \
    .abi = AMPRT_ABI, .model = "refused", .version = "ampcc", .target = name, .dtype = "fp32",     \
    .fingerprint = "f", .batch_size = BATCH, .n_classes = CLASSES, .height = 5, .width = 4,        \
    .channels = 3, .variable = variables, .n_variables = 2, .graph = &graph, .n_graphs = 1,        \
    .state_bytes = STATE, .device = on, .describe = describes                                      \
  }
static const AmprtProgram on_gpu = PROGRAM("cuda:sm_90", &cuda_device, cuda_describe);
static const AmprtProgram on_cpu = PROGRAM("cpu", NULL, NULL);

static int gpu_fits(char *why, size_t size) {
  return cuda_fits(&part, &on_gpu, why, size);
}

static void damage(const char *fault) {
  static const char damaged[256] = "\177ELF and then nothing of use";
  if (!strcmp(fault, "image"))
    image = (CudaImage){damaged, sizeof damaged, 0, 0};
  image.check = (uint32_t)crc32_z(0, image.data, image.bytes) ^ !strcmp(fault, "bits");
  if (!strcmp(fault, "plan") || !strcmp(fault, "key"))
    plan.json_bytes -= 20;
  if (!strcmp(fault, "key"))
    plan.key = "fprop f32 n2 h5";
  if (!strcmp(fault, "fused"))
    part.newest = 90;
  if (!strcmp(fault, "function"))
    launches[2].function = "subtract_constant";
}

int main(int argc, char **argv) {
  static const AmprtPart parts[] = {{"cuda:sm_90", &on_gpu, gpu_fits}, {"cpu", &on_cpu, NULL}};
  if (argc < 2)
    return 2;
  damage(argv[1]);
  int n = strcmp(argv[1], "alone") ? 2 : 1;
  argv[1] = argv[0];
  return amprt_main(parts, n, argc - 1, argv + 1);
}
