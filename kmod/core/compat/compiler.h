/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attributes of the compiler. Kbuild has each source include this, as the kernel has for its own.
 */
#ifndef RDMATENSOR_COMPAT_COMPILER_H
#define RDMATENSOR_COMPAT_COMPILER_H

/* Until 6.6, and 6.1 of 2026 */
#ifndef __counted_by
#define __counted_by(_member)
#endif

#endif /* RDMATENSOR_COMPAT_COMPILER_H */
