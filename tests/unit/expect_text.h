/*
 * expect_text: compares long lines, such as JSON, and shows where they differ.
 *
 *     want ...{"key":"b","value":{"stringValue":"x"}}]}
 *      got ...{"key":"b","value":{"stringValue":"y"}}]}
 *                                                ^ byte 118
 *
 * Owner: nothing is owned.
 *
 * Thread: the test's.
 */
#ifndef PROFCOL_TESTS_UNIT_EXPECT_TEXT_H
#define PROFCOL_TESTS_UNIT_EXPECT_TEXT_H

#include "core/base/text.h"

/* Appends the three lines above, or nothing if the texts are equal. */
void describe_difference(const char *got, const char *want, struct text *out);

/* Fails the test if the texts differ. what: the case of a table, for the message. */
#define expect_text(got, want) expect_text_at((got), (want), NULL, __FILE__, __LINE__)
#define expect_text_of(what, got, want) expect_text_at((got), (want), (what), __FILE__, __LINE__)
void expect_text_at(const char *got, const char *want, const char *what, const char *file,
                    int line);

#endif
