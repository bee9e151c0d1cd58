// SPDX-License-Identifier: GPL-2.0
/* The one place where the tracepoints are made */
#define CREATE_TRACE_POINTS
#include "core/trace.h"
