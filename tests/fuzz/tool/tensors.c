// SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause
/*
 * What holds of tensors that were taken, whoever has said them: they lie one behind the other,
 * each as long as its shape says.
 */
#include <string.h>

#include "fuzz.h"
#include "tensors.h"

/* Of an opaque one only the header says how long its elements are */
bool is_opaque(const struct st_tensor *tensor)
{
	return tensor->data_type == RDMATENSOR_DT_VARIANT;
}

static uint64_t length_of(const struct st_tensor *tensor)
{
	unsigned __int128 bytes = st_element_bytes(tensor->data_type);
	unsigned int i;
	bool none = false;

	for (i = 0; i < tensor->ndims; i++)
		none |= !tensor->dims[i];
	for (i = 0; !none && i < tensor->ndims; i++) {
		bytes *= tensor->dims[i];
		HOLDS(bytes <= UINT64_MAX);
	}
	return none ? 0 : (uint64_t)bytes;
}

void check_tensors(const struct st_file *file)
{
	uint64_t end = 0;
	size_t i;

	for (i = 0; i < file->nr; i++) {
		const struct st_tensor *tensor = &file->tensors[i];

		HOLDS(*tensor->name && strlen(tensor->name) <= RDMATENSOR_NAME_MAX);
		HOLDS(st_find(file, tensor->name) == tensor);
		HOLDS(!st_data_type_name(tensor->data_type) == is_opaque(tensor));
		HOLDS(tensor->ndims <= RDMATENSOR_DIMS_MAX);
		HOLDS(is_opaque(tensor) || tensor->bytes == length_of(tensor));
		HOLDS(tensor->begin == end);
		end += tensor->bytes;
		HOLDS(end >= tensor->bytes);
	}
	HOLDS(file->data_bytes == end);
	HOLDS(strlen(file->header) == file->header_bytes);
}

void check_same(const struct st_file *a, const struct st_file *b)
{
	size_t i;

	HOLDS(a->nr == b->nr && a->data_bytes == b->data_bytes);
	for (i = 0; i < a->nr; i++) {
		const struct st_tensor *x = &a->tensors[i], *y = &b->tensors[i];

		HOLDS(!strcmp(x->name, y->name));
		HOLDS(x->data_type == y->data_type && x->ndims == y->ndims);
		HOLDS(x->dtype == y->dtype);
		HOLDS(!memcmp(x->dims, y->dims, x->ndims * sizeof(x->dims[0])));
		HOLDS(x->begin == y->begin && x->bytes == y->bytes);
	}
}
