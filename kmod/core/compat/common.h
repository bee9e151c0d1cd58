/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all sources use. Kbuild has each include this first, as the kernel has its own attributes of
 * the compiler.
 */
#ifndef RDMATENSOR_COMPAT_COMMON_H
#define RDMATENSOR_COMPAT_COMMON_H

#include <linux/container_of.h>

/* Kernels have it from 6.6 on, and from 6.1.191 */
#ifndef __counted_by
#define __counted_by(_member)
#endif

/* Kernels have it from 6.2 on, and from 6.1.175: what a pointer to const is in is const too */
#ifndef container_of_const
#define container_of_const(_ptr, _type, _member) \
	((const _type *)container_of(_ptr, _type, _member))
#endif

#endif /* RDMATENSOR_COMPAT_COMMON_H */
