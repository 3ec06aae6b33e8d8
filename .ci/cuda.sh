# Sourced by quickstart and check, after packages.sh: `find_cuda FOLDER` sets cuda and cuda_folder, the
# values of meson's -Dcuda= and -Dtoolkit=. The folder is empty where a toolkit is in a usual place; else
# it is FOLDER, into which wheels of PyPI are unpacked (885 MB to load, once). No GPU, no driver.
cuda=auto cuda_folder=

# The versions of CUDA 13.0 and cuDNN 9.19; headers of one need the others'.
cuda_wheels="nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88
  nvidia-cuda-cccl==13.0.85 nvidia-cudnn-cu13==9.19.0.56 nvidia-cublas==13.1.0.3"

# load_cuda_aarch64 FOLDER: beside the packages of .ci/aarch64, the part of such a wheel that programs for
# AArch64 with parts for GPUs are linked with (2 MB). pip checks no signature, but the hash that PyPI names.
load_cuda_aarch64() {
  for wheel in $cuda_wheels; do
    case $wheel in
      nvidia-cuda-runtime==*)
        [ -f "$1/nvidia/cu13/lib/libcudart_static.a" ] || /usr/bin/python3 -m pip install --quiet --no-deps \
          --no-compile --no-cache-dir --disable-pip-version-check --only-binary=:all: \
          --platform manylinux2014_aarch64 --target "$1" "$wheel"
        ;;
    esac
  done
}

has_toolkit() {
  for file in include/cuda_runtime_api.h include/nvrtc.h include/cudnn_backend.h include/cublasLt.h \
    lib64/libcudart_static.a lib64/libnvrtc.so.13 lib64/libcudnn_graph.so.9 lib64/libcublasLt.so.13; do
    [ -e "$1/$file" ] || return 1
  done
}

find_cuda() {
  cuda=enabled
  for toolkit in ${CUDA_HOME:+"$CUDA_HOME"} /usr/local/cuda /opt/cuda; do
    if has_toolkit "$toolkit"; then
      return
    fi
  done
  case $1 in /*) cuda_folder=$1 ;; *) cuda_folder=$PWD/$1 ;; esac
  if [ -f "$cuda_folder/complete" ]; then
    return
  fi
  need python3-pip
  echo "==> no CUDA toolkit: loading its wheels into $cuda_folder"
  rm -rf "$cuda_folder"
  # shellcheck disable=SC2086  # a list of words
  /usr/bin/python3 -m pip install --quiet --no-deps --no-compile --no-cache-dir \
    --disable-pip-version-check --target "$cuda_folder" $cuda_wheels || {
    echo "$0: the wheels could not be loaded; --no-cuda does without" >&2
    exit 3
  }
  touch "$cuda_folder/complete"
}
