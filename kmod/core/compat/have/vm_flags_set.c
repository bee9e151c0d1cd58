// SPDX-License-Identifier: GPL-2.0
/* From 6.3 on: the flags of a mapping are set by functions. A wrong answer does not build */
#include <linux/mm.h>

static void __maybe_unused probe(struct vm_area_struct *vma)
{
	vm_flags_set(vma, VM_IO);
}
