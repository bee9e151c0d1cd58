// SPDX-License-Identifier: GPL-2.0
/*
 * Until 6.13: a namespace of symbols is imported by its name, and not by a string. A wrong answer
 * does not build
 */
#include <linux/module.h>

MODULE_IMPORT_NS(DMA_BUF);
