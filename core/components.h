/*
 * components: the list of all component types.
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMPONENTS_H
#define PROFCOL_CORE_COMPONENTS_H

#include "config/config.h"

/* NULL-terminated, as config_load requires. */
extern const struct config_type *const component_types[];

#endif
