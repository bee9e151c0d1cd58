/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_MINMAX_H
#define RDMATENSOR_SHIM_MINMAX_H

#define min(_a, _b) ({			\
	__typeof__(_a) a_ = (_a);	\
	__typeof__(_b) b_ = (_b);	\
	a_ < b_ ? a_ : b_;		\
})

#define max_t(type, a, b) ((type)(a) > (type)(b) ? (type)(a) : (type)(b))

#endif
