/*
 * components: the lists of all component types, and of the settings that they share.
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
/* The tables of settings that the reference describes once; ended by one without fields. */
extern const struct config_shared_block shared_blocks[];

#endif
