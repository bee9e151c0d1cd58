/* SPDX-License-Identifier: GPL-2.0 */
#ifndef RDMATENSOR_SHIM_BITS_H
#define RDMATENSOR_SHIM_BITS_H

#define BIT(_nr) (1UL << (_nr))

#endif
