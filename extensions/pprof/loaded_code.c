#include "extensions/pprof/loaded_code.h"

#include "core/base/memory.h"
#include "core/base/text.h"

#include <fcntl.h>
#include <gelf.h>
#include <link.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

/* ---- what is loaded ---- */

struct listing {
    struct loaded_code *code;
    size_t count, max;
    struct arena *arena;
};

/* Copies the bytes of the note NT_GNU_BUILD_ID among these notes, if it is there. */
static struct slice find_build_id(const uint8_t *notes, size_t size, struct arena *arena)
{
    const size_t padding = 3;
    while (size >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, notes, sizeof note);
        size_t name = (note.n_namesz + padding) & ~padding;
        size_t whole = sizeof note + name + ((note.n_descsz + padding) & ~padding);
        if (whole > size)
            break;
        const uint8_t *text = notes + sizeof note;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == sizeof "GNU" &&
            memcmp(text, "GNU", sizeof "GNU") == 0)
            return arena_copy(arena, slice_of(text + name, note.n_descsz));
        notes += whole;
        size -= whole;
    }
    return (struct slice){NULL, 0};
}

static struct slice build_id_of(const struct dl_phdr_info *info, struct arena *arena)
{
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type != PT_NOTE)
            continue;
        struct slice id = find_build_id((const uint8_t *)(info->dlpi_addr + header->p_vaddr),
                                        header->p_memsz, arena);
        if (id.size > 0)
            return id;
    }
    return (struct slice){NULL, 0};
}

static const char *path_of(const struct dl_phdr_info *info, struct arena *arena)
{
    char path[4096];
    ssize_t size = -1;
    if (info->dlpi_name[0] != '\0')
        return arena_printf(arena, "%s", info->dlpi_name);
    size = readlink("/proc/self/exe", path, sizeof path - 1);
    return arena_printf(arena, "%.*s", size > 0 ? (int)size : 0, path);
}

static void list_segment(struct listing *listing, const struct dl_phdr_info *info,
                         const ElfW(Phdr) * header, bool is_program)
{
    uint64_t start = info->dlpi_addr + header->p_vaddr;
    bool is_vdso = info->dlpi_addr == getauxval(AT_SYSINFO_EHDR);
    listing->code[listing->count++] = (struct loaded_code){
        .base = info->dlpi_addr,
        .start = start,
        .limit = start + header->p_memsz,
        .file_offset = header->p_offset,
        .path = path_of(info, listing->arena),
        .is_program = is_program,
        .image = is_vdso ? (const void *)getauxval(AT_SYSINFO_EHDR) : NULL,
        .build_id = build_id_of(info, listing->arena),
    };
}

/* The program is the first object. */
static int on_object(struct dl_phdr_info *info, size_t size, void *context)
{
    struct listing *listing = context;
    bool is_program = listing->count == 0;
    (void)size;
    for (size_t i = 0; i < info->dlpi_phnum && listing->count < listing->max; i++) {
        const ElfW(Phdr) *header = &info->dlpi_phdr[i];
        if (header->p_type == PT_LOAD && header->p_flags & PF_X)
            list_segment(listing, info, header, is_program);
    }
    return 0;
}

size_t loaded_code_list(struct loaded_code *code_out, size_t max, struct arena *arena)
{
    struct listing listing = {.code = code_out, .max = max, .arena = arena};
    dl_iterate_phdr(on_object, &listing);
    return listing.count;
}

/* ---- names ---- */

/* Of several names the exported one without underscores is what people call the function. */
static uint32_t rank_of(const GElf_Sym *symbol, const char *name)
{
    uint32_t underscores = (uint32_t)strspn(name, "_");
    return (GELF_ST_BIND(symbol->st_info) == STB_GLOBAL ? 0 : 16) +
           (underscores < 15 ? underscores : 15);
}

static void add_symbol(struct symbol_table *table, const GElf_Sym *symbol, const char *name)
{
    int type = GELF_ST_TYPE(symbol->st_info);
    if (!name || name[0] == '\0' || type != STT_FUNC || symbol->st_shndx == SHN_UNDEF)
        return;
    if (table->count == table->capacity) {
        table->capacity = table->capacity ? 2 * table->capacity : 1024;
        table->symbols = memory_grow(table->symbols, table->capacity, sizeof *table->symbols);
    }
    table->symbols[table->count++] = (struct symbol){.start = symbol->st_value,
                                                     .end = symbol->st_value + symbol->st_size,
                                                     .name = name,
                                                     .rank = rank_of(symbol, name)};
}

static void read_section(struct symbol_table *table, Elf_Scn *section, const GElf_Shdr *header)
{
    Elf_Data *data = elf_getdata(section, NULL);
    GElf_Sym symbol;
    for (int i = 0; data && gelf_getsym(data, i, &symbol); i++)
        add_symbol(table, &symbol, elf_strptr(table->elf, header->sh_link, symbol.st_name));
}

static void read_sections(struct symbol_table *table, uint32_t type)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while ((section = elf_nextscn(table->elf, section)))
        if (gelf_getshdr(section, &header) && header.sh_type == type)
            read_section(table, section, &header);
}

static int compare(const void *a, const void *b)
{
    const struct symbol *left = a, *right = b;
    if (left->start != right->start)
        return left->start < right->start ? -1 : 1;
    return left->rank < right->rank ? -1 : left->rank > right->rank;
}

/* Keeps one symbol of each address. One without a size, of assembler code, ends where the next one
 * begins. */
static void sort_symbols(struct symbol_table *table)
{
    size_t kept = 0;
    if (table->count > 0)
        qsort(table->symbols, table->count, sizeof *table->symbols, compare);
    for (size_t i = 0; i < table->count; i++)
        if (kept == 0 || table->symbols[kept - 1].start != table->symbols[i].start)
            table->symbols[kept++] = table->symbols[i];
    table->count = kept;
    for (size_t i = 0; i + 1 < kept; i++)
        if (table->symbols[i].end == table->symbols[i].start)
            table->symbols[i].end = table->symbols[i + 1].start;
}

/* Whether the file is the one that is loaded. */
static bool is_same_file(Elf *elf, struct slice build_id, struct arena *arena)
{
    Elf_Scn *section = NULL;
    GElf_Shdr header;
    while ((section = elf_nextscn(elf, section))) {
        const Elf_Data *data;
        if (!gelf_getshdr(section, &header) || header.sh_type != SHT_NOTE ||
            !(data = elf_getdata(section, NULL)))
            continue;
        struct slice found = find_build_id(data->d_buf, data->d_size, arena);
        if (found.size > 0)
            return slice_equal(found, build_id);
    }
    return build_id.size == 0;
}

/* The size of an image whose section headers come last, as the linker writes it. */
static size_t image_size(const void *image)
{
    const ElfW(Ehdr) *header = image;
    return header->e_shoff + (size_t)header->e_shnum * header->e_shentsize;
}

static Elf *open_elf(struct symbol_table *table, const struct loaded_code *code, const char *path)
{
    if (elf_version(EV_CURRENT) == EV_NONE)
        return NULL;
    if (code->image) /* libelf does not write to it */
        return elf_memory((char *)(uintptr_t)code->image, image_size(code->image));
    table->file = open(path, O_RDONLY | O_CLOEXEC);
    return table->file >= 0 ? elf_begin(table->file, ELF_C_READ_MMAP, NULL) : NULL;
}

/* Reads the sections of this type. Returns whether there were names; otherwise the table is as it
 * was. */
static bool read_file(struct symbol_table *table, const struct loaded_code *code, const char *path,
                      uint32_t section_type)
{
    struct arena arena;
    table->elf = open_elf(table, code, path);
    arena_init(&arena, NULL);
    if (table->elf && is_same_file(table->elf, code->build_id, &arena))
        read_sections(table, section_type);
    arena_deinit(&arena);
    if (table->count > 0)
        return true;
    symbol_table_close(table);
    return false;
}

/* Where distributions install the symbols that they strip: "/usr/lib/debug/.build-id/ab/cd.debug".
 */
static const char *debug_path(const struct loaded_code *code, struct arena *arena)
{
    struct text id = {0};
    text_append_hex(&id, code->build_id);
    const char *path = id.size > 2 ? arena_printf(arena, "/usr/lib/debug/.build-id/%.2s/%s.debug",
                                                  id.data, id.data + 2)
                                   : "";
    text_deinit(&id);
    return path;
}

void symbol_table_open(struct symbol_table *table, const struct loaded_code *code)
{
    struct arena arena;
    const char *path = code->is_program ? "/proc/self/exe" : code->path;
    *table = (struct symbol_table){.file = -1};
    arena_init(&arena, NULL);
    if (read_file(table, code, path, SHT_SYMTAB) ||
        read_file(table, code, debug_path(code, &arena), SHT_SYMTAB) ||
        read_file(table, code, path, SHT_DYNSYM))
        sort_symbols(table);
    arena_deinit(&arena);
}

void symbol_table_close(struct symbol_table *table)
{
    free(table->symbols);
    table->symbols = NULL;
    table->count = table->capacity = 0;
    if (table->elf)
        elf_end(table->elf);
    if (table->file >= 0)
        close(table->file);
    table->elf = NULL;
    table->file = -1;
}

struct symbol *symbol_table_find(const struct symbol_table *table, uint64_t address)
{
    size_t low = 0,
           high = table->count; /* the last one that starts at or before it is below high */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (table->symbols[middle].start <= address)
            low = middle + 1;
        else
            high = middle;
    }
    return low > 0 && address < table->symbols[low - 1].end ? &table->symbols[low - 1] : NULL;
}
