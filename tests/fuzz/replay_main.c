/*
 * Replaces libFuzzer: calls LLVMFuzzerTestOneInput with each file on the command line, and each
 * file in the folders there; without arguments, with one empty input.
 */
#include <errno.h>
#include <fts.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/types.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay_file(const char *path, size_t size_bytes)
{
    FILE *file = fopen(path, "rb");
    if (file == NULL) {
        fprintf(stderr, "%s: %s\n", path, strerror(errno));
        return -1;
    }
    /* Exactly as large as the file, so that a sanitizer detects a read past its end. */
    uint8_t *data = malloc(size_bytes != 0 ? size_bytes : 1);
    if (data == NULL) {
        abort();
    }
    size_t got = fread(data, 1, size_bytes, file);
    fclose(file);
    if (got == size_bytes) {
        LLVMFuzzerTestOneInput(data, size_bytes);
    } else {
        fprintf(stderr, "%s: short read\n", path);
    }
    free(data);
    return got == size_bytes ? 0 : -1;
}

static int compare_names(const FTSENT **a, const FTSENT **b)
{
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        LLVMFuzzerTestOneInput((const uint8_t *)"", 0);
        return 0;
    }
    FTS *tree = fts_open(argv + 1, FTS_LOGICAL | FTS_NOCHDIR, compare_names);
    if (tree == NULL) {
        perror("fts_open");
        return 1;
    }
    unsigned long replayed = 0;
    unsigned long failed = 0;
    FTSENT *entry;
    while ((entry = fts_read(tree)) != NULL) {
        if (entry->fts_info == FTS_F) {
            failed += replay_file(entry->fts_path, (size_t)entry->fts_statp->st_size) != 0;
            replayed++;
        } else if (entry->fts_info == FTS_ERR || entry->fts_info == FTS_NS ||
                   entry->fts_info == FTS_DNR) {
            fprintf(stderr, "%s: %s\n", entry->fts_path, strerror(entry->fts_errno));
            failed++;
        }
    }
    fts_close(tree);
    printf("%lu inputs replayed, %lu unreadable\n", replayed, failed);
    return failed != 0;
}
