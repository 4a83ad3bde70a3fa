/*
 * identity: what an authenticator knows of a client, as attributes with names: "username", "raw".
 *
 * Processors and the extension headers_setter read them (`from_context: auth.username`). An
 * authenticator makes an identity once for each of its users, and requests share it.
 *
 * Owner: shared by reference, immutable.
 *
 * Thread: any.
 */
#ifndef PROFCOL_CORE_PIPELINE_IDENTITY_H
#define PROFCOL_CORE_PIPELINE_IDENTITY_H

#include <stddef.h>

struct identity;

struct identity_attribute {
    const char *name;  /* lives as long as the program */
    const char *value; /* copied */
};

/* Returns an identity with these attributes and one reference. */
struct identity *identity_new(const struct identity_attribute *attributes, size_t count);
/* Adds a reference and returns the identity. NULL is allowed. */
struct identity *identity_ref(struct identity *identity);
/* Drops a reference. NULL is allowed. */
void identity_unref(struct identity *identity);
/* Returns the attribute with this name; NULL if there is none, or no identity. */
const char *identity_get(const struct identity *identity, const char *name);

#endif
