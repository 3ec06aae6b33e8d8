/* CUDA's compiler and cuDNN as ampcc finds them when it compiles for a GPU: in a toolkit's folder
 * or in unpacked wheels of PyPI. ampcc is linked with neither and starts without them. */
#ifndef AMPCC_CODEGEN_CUDA_TOOLKIT_TOOLKIT_H
#define AMPCC_CODEGEN_CUDA_TOOLKIT_TOOLKIT_H

#include "codegen/cuda/toolkit/device.h"
#include "codegen/cudnn/cudnn_api.h"
#include "ir/base/arena.h"

#include <nvrtc.h>

typedef struct NvrtcApi {
#define NVRTC(result, name, arguments) result(*name) arguments;
#include "codegen/cuda/toolkit/nvrtc_api.def"
} NvrtcApi;

typedef struct Toolkit {
  Arena *arena;
  const char *folder;
  int cudnn_version, nvrtc_version; /* 91900, 13000; 0: not opened yet */
  CudnnApi cudnn;
  NvrtcApi nvrtc;
  const Device *planned; /* the device of `description`; see toolkit_device */
  CudnnObject description;
} Toolkit;

enum { TOOLKIT_ERROR = 400 };

/* The folder of --cuda-path, or (NULL) the one that ampcc was built with and then the usual ones.
 * Opens nothing yet. NULL with one line in `error` that names what is missing and the way out. */
Toolkit *toolkit_find(Arena *arena, const char *folder, char error[TOOLKIT_ERROR]);
/* Every library that planning and compiling may open, and the folders that they lie in. Ends in
 * NULL. */
const char *const *toolkit_files(Toolkit *toolkit);
/* Open the library if it is not open yet. False with one line in `error`. */
bool toolkit_cudnn(Toolkit *toolkit, char error[TOOLKIT_ERROR]);
bool toolkit_nvrtc(Toolkit *toolkit, char error[TOOLKIT_ERROR]);
/* The object that describes a device to cuDNN, which planning begins with. Opens cuDNN and the
 * libraries that it needs. The toolkit owns it and keeps it until another device is asked for. NULL
 * with one line in `error`. */
CudnnObject toolkit_device(Toolkit *toolkit, const Device *device, char error[TOOLKIT_ERROR]);

#endif
