/*
 * got_hook: lets a function of ours take the calls that the program and its libraries make to a
 * function of the C library, such as malloc, from now on, and gives them back later.
 *
 * Calls between objects go through pointers in the global offset table of each object (GOT), which
 * the linker has filled at the start. got_hook_set changes these pointers. So a function that is
 * not hooked costs exactly what it did, which a check in every call would not.
 *
 * Not changed: calls within the C library itself that use no pointer, objects that are loaded
 * later, and pointers that a program has copied. So what was allocated with the hook may be freed
 * without it, and the other way round; a hook must bear that.
 *
 * Owner: the hooks are the caller's and are not kept.
 *
 * Thread: any; one call at a time, the others wait. Other threads may call the functions meanwhile.
 */
#ifndef PROFCOL_CORE_BASE_GOT_HOOK_H
#define PROFCOL_CORE_BASE_GOT_HOOK_H

#include "core/base/error.h"

#include <stddef.h>

enum { GOT_HOOKS_MAX = 8 }; /* in one call */

typedef void got_function(void); /* of any type */

struct got_hook {
    const char *name;          /* of the function */
    got_function *replacement; /* what is called instead */
};

/* Returns the function of the C library (or of a sanitizer). A pointer in a constant table would
 * itself be changed by got_hook_set. */
got_function *got_function_named(const char *name);

/* Redirects the calls. Returns false, with err set, if memory protection does not allow it; some
 * calls may be redirected then. */
bool got_hook_set(const struct got_hook *hooks, size_t count, struct error *err);
/* Gives the calls back. A replacement may still be running in other threads. */
void got_hook_clear(const struct got_hook *hooks, size_t count);

#endif
