/* A convolution as cuDNN sees it, and as one line of text: the key of a plan, from which a program
 * can plan again. Activations are N,H,W,C, filters K,R,S,C, both without padding between. */
#ifndef AMPCC_CODEGEN_CUDNN_CONV_OP_H
#define AMPCC_CODEGEN_CUDNN_CONV_OP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef enum ConvForm {
#define CONV_FORM(id, name, build, operands) CONV_##id,
#include "codegen/cudnn/conv_forms.def"
  CONV_FORM_COUNT
} ConvForm;

typedef enum ConvType { CONV_F32, CONV_F16, CONV_BF16 } ConvType; /* as AMPRT_F32, ... */

/* x is [n,h,w,c], the filter [k,r,s,c], y [n,ho,wo,k], whatever of them the form reads or makes. */
typedef struct ConvOp {
  uint8_t form, dtype; /* ConvForm, ConvType of all three */
  bool tf32;           /* f32 only: products may be of 10-bit mantissas */
  int64_t n, h, w, c, k, r, s;
  int64_t stride[2], pad[4]; /* pad: top, bottom, left, right */
} ConvOp;

enum { CONV_KEY_BYTES = 240, CONV_MAX_OPERANDS = 16 };

/* "fprop f16 n256 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1" */
void cuda_conv_key_print(const ConvOp *op, char key[CONV_KEY_BYTES]);
/* False if it is no key that cuda_conv_key_print wrote, of a convolution that exists. */
bool cuda_conv_key_parse(const char *key, ConvOp *out);
/* Sizes of y; false where there is none, or an extent is out of range. */
bool cuda_conv_output(const ConvOp *op, int64_t *ho, int64_t *wo);
/* Operands of a form, in the order of their unique ids: 1, 2, ... */
int cuda_conv_operands(ConvForm form);

#endif
