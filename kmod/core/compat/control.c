// SPDX-License-Identifier: GPL-2.0
/* Compiles on each kernel. If it does not, what the probes beside it say is not to be believed */
#include <linux/mm.h>
#include <linux/dma-buf.h>
#include <linux/module.h>
#include <net/genetlink.h>
