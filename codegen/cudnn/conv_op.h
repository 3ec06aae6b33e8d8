/* A convolution as cuDNN sees it, and as one line of text: that is the key of its plan, from which
 * a program can plan again. Activations are stored as N,H,W,C and filters as K,R,S,C, both without
 * gaps. */
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

/* x is [n,h,w,c], the filter [k,r,s,c/groups], y [n,ho,wo,k], whichever of them the form reads and
 * makes. Only plain forms have more than one group. */
typedef struct ConvOp {
  uint8_t form, dtype; /* ConvForm, ConvType of all three */
  bool tf32;           /* f32 only: it may be computed as TF32, with mantissas of 10 bits */
  int64_t n, h, w, c, k, r, s, groups;
  int64_t stride[2], pad[4]; /* pad: top, bottom, left, right */
} ConvOp;

enum { CONV_KEY_BYTES = 240, CONV_MAX_OPERANDS = 16 };

/* Writes the key, such as "fprop f16 n256 h56 w56 c64 k64 r3 s3 u1,1 p1,1,1,1". Where there is more
 * than one group, " g32" follows, and then " tf32" where that is allowed. */
void cuda_conv_key_print(const ConvOp *op, char key[CONV_KEY_BYTES]);
/* Reads a key back. False if cuda_conv_key_print would not have written it, or there is no such
 * convolution. */
bool cuda_conv_key_parse(const char *key, ConvOp *out);
/* Height and width of y; false if there is no y, an extent is out of range, or the groups do not
 * divide the channels. */
bool cuda_conv_output(const ConvOp *op, int64_t *ho, int64_t *wo);
/* How many operands a form has; their unique ids are 1, 2, ... in the order of its row. */
int cuda_conv_operands(ConvForm form);

#endif
