#include "core/base/stack_walk.h"

#include <stdbool.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

/* Frames farther from the first one than a stack is large are none. */
enum { WINDOW_BYTES = 4096, PAGE_BYTES = 4096, STACK_BYTES_MAX = 8 * 1024 * 1024 };

/* A copy of a part of the stack. */
struct window {
    uint64_t start;
    size_t size;
    unsigned char bytes[WINDOW_BYTES];
};

/* What the frame pointer points to. */
struct frame {
    uint64_t outer, return_address;
};

struct stack_registers stack_registers_of(const void *signal_context)
{
    const ucontext_t *context = signal_context;
#if defined(__x86_64__)
    const greg_t *registers = context->uc_mcontext.gregs;
    return (struct stack_registers){.pc = (uint64_t)registers[REG_RIP],
                                    .sp = (uint64_t)registers[REG_RSP],
                                    .fp = (uint64_t)registers[REG_RBP]};
#elif defined(__aarch64__)
    return (struct stack_registers){.pc = context->uc_mcontext.pc,
                                    .sp = context->uc_mcontext.sp,
                                    .fp = context->uc_mcontext.regs[29]};
#else
    (void)context;
    return (struct stack_registers){0};
#endif
}

/* Copies the bytes from `start` on, up to the first page that is not mapped. The call copies whole
 * pieces, so none crosses a page. */
static void window_move(struct window *window, uint64_t start)
{
    uint64_t second = (start | (PAGE_BYTES - 1)) + 1;
    const struct iovec to = {.iov_base = window->bytes, .iov_len = WINDOW_BYTES};
    const struct iovec from[] = {
        {(void *)(uintptr_t)start, second - start},
        {(void *)(uintptr_t)second, WINDOW_BYTES - (second - start)},
    };
    long got = syscall(SYS_process_vm_readv, getpid(), &to, 1UL, from, 2UL, 0UL);
    window->start = start;
    window->size = got > 0 ? (size_t)got : 0;
}

static bool window_has(const struct window *window, uint64_t address)
{
    return address >= window->start &&
           address - window->start + sizeof(struct frame) <= window->size;
}

static bool read_frame(struct window *window, uint64_t address, struct frame *frame_out)
{
    if (!window_has(window, address))
        window_move(window, address);
    if (!window_has(window, address))
        return false;
    memcpy(frame_out, window->bytes + (address - window->start), sizeof *frame_out);
    return frame_out->return_address >= PAGE_BYTES;
}

size_t stack_walk(const struct stack_registers *from, uint64_t addresses_out[STACK_FRAMES_MAX])
{
    struct window window = {.size = 0};
    struct frame frame;
    size_t count = 0;
    addresses_out[count++] = from->pc;
    uint64_t lowest = from->sp;
    for (uint64_t at = from->fp; count < STACK_FRAMES_MAX; at = frame.outer) {
        if (at < lowest || at % sizeof at != 0 || at - from->sp > STACK_BYTES_MAX ||
            !read_frame(&window, at, &frame))
            break;
        addresses_out[count++] = frame.return_address - 1;
        lowest = at + sizeof frame;
    }
    return count;
}
