/*
 * components: the one list of what is built in.
 *
 * Owner: static data.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_COMPONENTS_H
#define PROFCOL_CORE_COMPONENTS_H

#include "config/config.h"

/* NULL-terminated, as config_load wants it. */
extern const struct config_type *const component_types[];

#endif
