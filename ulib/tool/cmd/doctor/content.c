// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <string.h>

#include "content.h"
#include "say.h"
#include "tool/common/published.h"
#include "tool/common/store.h"

int content_fetch(struct doctor *doctor, uint32_t channel, const char *name,
		  const struct store *store, uint64_t bytes, uint64_t *ns)
{
	uint64_t *words = (void *)((char *)store->pool.base + store->offset);
	uint64_t begun = rdmatensor_now_ns(), i;
	struct rdmatensor_cqe cqe;
	int err;

	memset(words, 0, bytes);
	err = rdmatensor_fetch(doctor->rt, channel, name, 0, &store->pool, store->offset, bytes,
			       rdmatensor_deadline_ms(CONTENT_MS), &cqe);
	*ns = rdmatensor_now_ns() - begun;
	for (i = 0; !err && i < bytes / 8; i++)
		if (words[i] != perf_word(i))
			err = -EILSEQ;
	return err;
}

void content_no_memory(struct doctor *doctor, const char *cause)
{
	doctor_say(doctor, VERDICT_FAIL, "memory", "what the message says", "%s",
		   cause);
}
