// SPDX-License-Identifier: GPL-2.0
/*
 * Until 6.2: a long-term pin that only reads leaves copy-on-write as it is, because what decides
 * whether to break it up knows the page and not its mapping. "No" is believed from 6.2 on
 */
#include <linux/mm.h>

static bool __maybe_unused probe(unsigned int flags, struct page *page)
{
	return gup_must_unshare(flags, page);
}
