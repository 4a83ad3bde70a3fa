/*
 * loaded_code: the code of the process, program and libraries, and the names of its functions.
 *
 * Names are read from the symbol tables of the files when they are asked for, with libelf: .symtab,
 * or that of the debug file that the distribution has for a stripped library, or .dynsym, which has
 * the exported functions only. A file that was replaced since the start, which its build id shows,
 * gives no names.
 *
 * Owner: descriptions live in the caller's arena. A symbol table is the caller's.
 *
 * Thread: any; a table one at a time. Reading a file takes milliseconds: do it in a job.
 */
#ifndef PROFCOL_EXTENSIONS_PPROF_LOADED_CODE_H
#define PROFCOL_EXTENSIONS_PPROF_LOADED_CODE_H

#include "core/base/arena.h"
#include "core/base/slice.h"

#include <stdbool.h>
#include <stdint.h>

/* An executable segment of a file. */
struct loaded_code {
    uint64_t base;         /* what is added to the addresses in the file */
    uint64_t start, limit; /* in memory */
    uint64_t file_offset;
    const char *path;
    bool is_program;       /* not a library */
    const void *image;     /* of the vDSO, which has no file; NULL: not mapped as a whole */
    struct slice build_id; /* bytes; empty: none */
};

/* Lists what is loaded, at most `max`, and returns the number. */
size_t loaded_code_list(struct loaded_code *code_out, size_t max, struct arena *arena);

struct symbol {
    uint64_t start, end; /* addresses in the file */
    const char *name;
    uint32_t rank;   /* of several with one address, the lowest is chosen */
    uint64_t number; /* of the caller; 0 at first */
};

struct symbol_table {
    void *elf; /* of libelf; holds the names */
    int file;
    struct symbol *symbols;
    size_t count, capacity;
};

/* Reads the names of the functions. The table is empty if there are none. */
void symbol_table_open(struct symbol_table *table, const struct loaded_code *code);
void symbol_table_close(struct symbol_table *table);
/* Returns the function at an address of the file, or NULL. */
struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address);

#endif
