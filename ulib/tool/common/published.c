// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <inttypes.h>
#include <stdio.h>

#include "published.h"

void perf_name(uint64_t size, char name[48])
{
	snprintf(name, 48, "rdmatensor.perf.%" PRIu64, size);
}
