/* SPDX-License-Identifier: GPL-2.0 */
/* The kernel's sort() for what is compiled without a kernel */
#ifndef RDMATENSOR_SHIM_SORT_H
#define RDMATENSOR_SHIM_SORT_H

#include <stdlib.h>

typedef int (*cmp_func_t)(const void *a, const void *b);

static inline void sort(void *base, size_t num, size_t size, cmp_func_t cmp_func, void *swap)
{
	(void)swap;
	if (num)
		qsort(base, num, size, cmp_func);
}

#endif /* RDMATENSOR_SHIM_SORT_H */
