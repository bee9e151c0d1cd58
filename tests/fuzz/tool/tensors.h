/* SPDX-License-Identifier: GPL-2.0 OR BSD-2-Clause */
#ifndef TESTS_FUZZ_TENSORS_H
#define TESTS_FUZZ_TENSORS_H

#include <stdbool.h>

#include "safetensors/safetensors.h"

/* Only its header says how long its elements are */
bool is_opaque(const struct st_tensor *tensor);
void check_tensors(const struct st_file *file);
/* Names, shapes, places: not how their headers are written */
void check_same(const struct st_file *a, const struct st_file *b);

#endif
