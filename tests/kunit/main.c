// SPDX-License-Identifier: GPL-2.0
/*
 * The KUnit suites as a module: each file beside this one is a suite that runs
 * when the module is loaded. rdmatensor.ko exports what they call in a namespace
 * of KUnit's, and only where the kernel has KUnit.
 */
#include <linux/module.h>

/* What MODULE_IMPORT_NS() is in every kernel, with quotes (6.13) or without */
MODULE_INFO(import_ns, "EXPORTED_FOR_KUNIT_TESTING");
MODULE_DESCRIPTION("KUnit suites of rdmatensor");
MODULE_LICENSE("GPL");
