// SPDX-License-Identifier: GPL-2.0
/*
 * An allocator as programs preload one: what its realloc() has made is no pointer that the C library's
 * own free() takes.
 */
#include <stddef.h>
#include <stdint.h>

#define MARK 0x6f77d3a1c0ffee11ull

struct mark {
	uint64_t mark;
	void *self;
};

extern void *__libc_realloc(void *memory, size_t bytes);
extern void __libc_free(void *memory);

/* What lies before any other memory is the C library's */
static struct mark *mark_of(void *memory)
{
	struct mark *mark = memory ? (struct mark *)memory - 1 : NULL;

	return mark && mark->mark == MARK && mark->self == memory ? mark : NULL;
}

static void *marked(struct mark *mark)
{
	if (!mark)
		return NULL;
	*mark = (struct mark){ MARK, mark + 1 };
	return mark + 1;
}

void *realloc(void *memory, size_t bytes)
{
	struct mark *mark = mark_of(memory);

	if (memory && !mark)
		return __libc_realloc(memory, bytes);
	if (mark)
		mark->mark = 0;
	return marked(__libc_realloc(mark, bytes + sizeof(*mark)));
}

void free(void *memory)
{
	struct mark *mark = mark_of(memory);

	if (mark)
		mark->mark = 0;
	__libc_free(mark ? (void *)mark : memory);
}
