// SPDX-License-Identifier: GPL-2.0
/*
 * Until 6.5: a pin hands out the mappings. The release in which it ceased to is the one that does
 * not pin for writing what a file system has to see each write of, of which no header tells. "No"
 * is believed from 6.5 on
 */
#include <linux/mm.h>

static long __maybe_unused probe(struct page **pages, struct vm_area_struct **vmas)
{
	return pin_user_pages(0, 1, FOLL_LONGTERM, pages, vmas);
}
