/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What all sources use. Kbuild has each include this first, as the kernel has its own attributes of
 * the compiler.
 */
#ifndef RDMATENSOR_COMPAT_COMMON_H
#define RDMATENSOR_COMPAT_COMMON_H

#include <linux/container_of.h>

/* Until 6.6, and in 6.1 until 2026 */
#ifndef __counted_by
#define __counted_by(_member)
#endif

/* Until 6.2, and in 6.1 until 2026: of a pointer that is to const, what it is in is const too */
#ifndef container_of_const
#define container_of_const(_ptr, _type, _member) \
	((const _type *)container_of(_ptr, _type, _member))
#endif

#endif /* RDMATENSOR_COMPAT_COMMON_H */
