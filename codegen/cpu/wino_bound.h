/* A bound on the rounding errors of convolutions that our own kernels compute by Winograd's method,
 * for the certificate and the tests. */
#ifndef AMPCC_CODEGEN_CPU_WINO_BOUND_H
#define AMPCC_CODEGEN_CPU_WINO_BOUND_H

#include "codegen/codegen.h"
#include "ir/eval/eval.h"

/* For each element of the result, by how much it may differ from the exact one before that is
 * rounded to its type. NULL if the node is not computed by Winograd's method.
 *
 * Each element is a sum of products of operands that pass n roundings at most, one after the other,
 * in the transforms of wino_tile.h. By Higham's Lemma 3.1 (Accuracy and Stability of Numerical
 * Algorithms, 2nd edition, 2002) n roundings change a term by at most gamma(n) = n u / (1 - n u) of
 * it, u = 2^-24. So the error is at most gamma(n) times the same sums of magnitudes, made with the
 * magnitudes of the transforms' factors:
 *
 *   |y - Y| <= gamma(c + r) |A'| ( sum over c of |G||g||G'| * |B'||d||B| ) |A|
 *
 * where c of the roundings are of the sum over c channels, one for each product and sum. For
 * F(2x2,3x3) r is 10: 2 of B', in each direction 1, 4 of G, 4 of A'; for F(4x4,3x3) 24: 8 of each,
 * in each direction at most a factor of G, a product and two sums, or three sums and a product.
 * With stride 2 it is 18: 4 of B', in each direction two sums; 6 of G, a factor, a product and a
 * sum; 8 of A', four sums. It is the componentwise form of Theorem 2 of Barabasz, Anderson,
 * Soodhalter and Gregg, Error Analysis and Improving the Accuracy of Winograd Convolution for Deep
 * Neural Networks, ACM Transactions on Mathematical Software 46(4), 2020.
 *
 * The same holds for filters' gradients with s slots of p pieces of t tiles:
 *
 *   |w - W| <= gamma(t + p + s + r) |G'| ( sum over tiles of |B'||d||B| * |A||dy||A'| ) |G|
 *
 * where the sum over a piece begins at 0 and is then added to those before, and so are slots; r is
 * 7 for F(3x3,2x2) and 26 for F(3x3,4x4): 8 of B', 8 of A, 10 of G'.
 *
 * Products may be subnormal, which a sum cannot be without being exact: each is off by 2^-150 more.
 * Where a transform may overflow, and where operands are bf16, which some CPUs multiply, the direct
 * kernel may have computed the result: then its bound, gamma(9 c) times the sum of the magnitudes
 * of the terms, holds too; with bf16 beside what is lost as those CPUs take and give 0 below
 * 2^-126. */
const double *wino_bound(Arena *arena, const Node *node, Winograd winograd, const EvalTensor *args);

#endif
