#include "core/base/got_hook.h"

#include <assert.h>
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The relocations that fill a pointer with the address of a function. */
#if defined(__x86_64__)
enum { JUMP_SLOT = R_X86_64_JUMP_SLOT, GLOBAL_DATA = R_X86_64_GLOB_DAT, ABSOLUTE = R_X86_64_64 };
#elif defined(__aarch64__)
enum {
    JUMP_SLOT = R_AARCH64_JUMP_SLOT,
    GLOBAL_DATA = R_AARCH64_GLOB_DAT,
    ABSOLUTE = R_AARCH64_ABS64
};
#elif defined(__riscv) && __riscv_xlen == 64
enum { JUMP_SLOT = R_RISCV_JUMP_SLOT, GLOBAL_DATA = R_RISCV_64, ABSOLUTE = R_RISCV_64 };
#else
#define NOT_ON_THIS_PROCESSOR
enum { JUMP_SLOT = -1, GLOBAL_DATA = -1, ABSOLUTE = -1 };
#endif

/* A loaded program or library. */
struct object {
    uintptr_t base;
    uintptr_t protected_start, protected_end; /* pages that are read-only since the start (RELRO) */
    const ElfW(Sym) * symbols;
    const char *names;
    const ElfW(Rela) * tables[2]; /* relocations of calls, and others */
    size_t sizes[2];              /* their numbers */
};

struct change {
    const struct got_hook *hooks;
    got_function *functions[GOT_HOOKS_MAX]; /* what the pointers become */
    size_t count;
    int error;      /* errno of what failed; 0: nothing */
    uintptr_t page; /* size */
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

/* ---- reading an object ---- */

/* glibc has made addresses of most offsets in the dynamic section, other linkers have not. */
static const void *in_object(const struct object *object, ElfW(Addr) value)
{
    return (const void *)(value < object->base ? object->base + value : value);
}

static void read_dynamic(struct object *object, const ElfW(Dyn) * entry)
{
    for (; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_SYMTAB)
            object->symbols = in_object(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_STRTAB)
            object->names = in_object(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_JMPREL)
            object->tables[0] = in_object(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_PLTRELSZ)
            object->sizes[0] = entry->d_un.d_val / sizeof(ElfW(Rela));
        else if (entry->d_tag == DT_RELA)
            object->tables[1] = in_object(object, entry->d_un.d_ptr);
        else if (entry->d_tag == DT_RELASZ)
            object->sizes[1] = entry->d_un.d_val / sizeof(ElfW(Rela));
    }
}

static bool read_object(struct object *object, const struct dl_phdr_info *info, uintptr_t page)
{
    const ElfW(Dyn) *dynamic = NULL;
    *object = (struct object){.base = info->dlpi_addr};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + header->p_vaddr;
        if (header->p_type == PT_DYNAMIC)
            dynamic = (const ElfW(Dyn) *)start;
        if (header->p_type == PT_GNU_RELRO) { /* only whole pages are protected */
            object->protected_start = start & ~(page - 1);
            object->protected_end = (start + header->p_memsz) & ~(page - 1);
        }
    }
    if (dynamic)
        read_dynamic(object, dynamic);
    return object->symbols && object->names;
}

/* ---- changing it ---- */

static got_function *find_function(const struct change *change, const char *name)
{
    for (size_t i = 0; i < change->count; i++)
        if (strcmp(change->hooks[i].name, name) == 0)
            return change->functions[i];
    return NULL;
}

static void write_pointer(const struct object *object, struct change *change, uintptr_t address,
                          got_function *function)
{
    void *page = (void *)(address & ~(change->page - 1));
    bool is_protected = address >= object->protected_start && address < object->protected_end;
    if (is_protected && mprotect(page, change->page, PROT_READ | PROT_WRITE) != 0) {
        change->error = errno;
        return;
    }
    __atomic_store_n((got_function **)address, function, __ATOMIC_RELEASE);
    if (is_protected && mprotect(page, change->page, PROT_READ) != 0)
        change->error = errno;
}

static bool is_pointer(const ElfW(Rela) * relocation)
{
    uint64_t type = ELF64_R_TYPE(relocation->r_info);
    return (type == JUMP_SLOT || type == GLOBAL_DATA || type == ABSOLUTE) &&
           relocation->r_addend == 0;
}

static void change_table(const struct object *object, struct change *change, int table)
{
    for (size_t i = 0; object->tables[table] && i < object->sizes[table]; i++) {
        const ElfW(Rela) *relocation = &object->tables[table][i];
        if (!is_pointer(relocation))
            continue;
        const ElfW(Sym) *symbol = &object->symbols[ELF64_R_SYM(relocation->r_info)];
        got_function *function = find_function(change, object->names + symbol->st_name);
        if (function)
            write_pointer(object, change, object->base + relocation->r_offset, function);
    }
}

/* A sanitizer's own calls are none of the program's. The C library allocates for threads that the
 * thread sanitizer does not know yet, where our instrumented functions must not run. */
static bool is_left_alone(const char *path)
{
#ifdef __SANITIZE_THREAD__
    if (strstr(path, "/libc.so"))
        return true;
#endif
    return strstr(path, "/libasan.so") || strstr(path, "/libtsan.so") ||
           strstr(path, "/libubsan.so");
}

static int on_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct change *change = context;
    struct object object;
    (void)size;
    if (is_left_alone(info->dlpi_name) || !read_object(&object, info, change->page))
        return 0;
    for (int table = 0; table < 2; table++)
        change_table(&object, change, table);
    return 0;
}

/* Functions are looked up before dl_iterate_phdr takes the loader's lock. */
static int apply(const struct got_hook *hooks, size_t count, bool is_set)
{
    struct change change = {
        .hooks = hooks, .count = count, .page = (uintptr_t)sysconf(_SC_PAGESIZE)};
    assert(count <= GOT_HOOKS_MAX);
    for (size_t i = 0; i < count; i++)
        change.functions[i] = is_set ? hooks[i].replacement : got_function_named(hooks[i].name);
    pthread_mutex_lock(&lock);
    dl_iterate_phdr(on_object, &change);
    pthread_mutex_unlock(&lock);
    return change.error;
}

/* ---- for callers ---- */

got_function *got_function_named(const char *name)
{
    got_function *function;
    void *address = dlsym(RTLD_DEFAULT, name);
    assert(address);
    memcpy(&function, &address, sizeof function);
    return function;
}

bool got_hook_set(const struct got_hook *hooks, size_t count, struct error *err)
{
#ifdef NOT_ON_THIS_PROCESSOR
    return error_set(err, "not supported on this processor");
#endif
    int failed = apply(hooks, count, true);
    if (failed == 0)
        return true;
    got_hook_clear(hooks, count);
    error_set_system(err, failed);
    return error_prefix(err, "cannot change the global offset tables");
}

void got_hook_clear(const struct got_hook *hooks, size_t count)
{
    apply(hooks, count, false);
}
