/* Checks of options beyond what include/nib/options.h offers. */
#ifndef NIB_BASE_OPTIONS_H
#define NIB_BASE_OPTIONS_H

#include <nib/options.h>

#include "base/error.h"

/* Every id of the options is below V. */
nib_status nib_generate_options_check_ids(const nib_generate_options *options, int64_t V, nib_error *err);

/* A copy whose lists lie in *memory, which is yours to free with nib_free. Options that were checked. Returns NIB_OK;
 * NIB_ENOMEM, and *memory is NULL. */
nib_status nib_generate_options_copy(nib_generate_options *copy, void **memory, const nib_generate_options *options,
                                     nib_error *err);

#endif
