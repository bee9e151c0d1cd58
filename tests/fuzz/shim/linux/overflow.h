/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_OVERFLOW_H
#define RDMATENSOR_SHIM_OVERFLOW_H

#define check_add_overflow(_a, _b, _sum) __builtin_add_overflow(_a, _b, _sum)
#define check_mul_overflow(_a, _b, _product) __builtin_mul_overflow(_a, _b, _product)

#endif
