// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
#include <errno.h>
#include <fnmatch.h>

#include "filter.h"
#include "message.h"

int filter_take(void *arg, const char *glob)
{
	struct filter *filter = arg;

	if (!*glob)
		return misused("--filter \"\" is refused: no tensor has an empty name: give a pattern, as 'layers.0.*'");
	if (filter->nr == FILTER_MOST)
		return misused("--filter %s is refused: %d patterns are the most", glob,
			       FILTER_MOST);
	filter->globs[filter->nr++] = glob;
	return EXIT_OK;
}

/* A name is no path: * stands for points and slashes, too */
bool filter_matches(const struct filter *filter, const char *name)
{
	size_t i;

	for (i = 0; i < filter->nr; i++)
		if (!fnmatch(filter->globs[i], name, 0))
			return true;
	return !filter->nr;
}

static bool matches(void *arg, const char *name)
{
	return filter_matches(arg, name);
}

int filter_apply(const struct filter *filter, struct st_model *model, const char *what)
{
	char error[ST_ERROR_MAX];
	size_t nr = model->all->nr;
	int err;

	if (!filter->nr)
		return EXIT_OK;
	err = st_model_filter(model, matches, (void *)filter, error, sizeof(error));
	if (!err)
		return EXIT_OK;
	if (err != -ENOENT)
		return failed("filter %s: %s", what, error);
	return failed("filter %s: none of its %zu tensor%s matches --filter %s%s: give a pattern of their names, in quotes",
		      what, nr, plural(nr), filter->globs[0],
		      filter->nr > 1 ? ", nor another one" : "");
}
