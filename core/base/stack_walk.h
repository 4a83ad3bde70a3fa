/*
 * stack_walk: finds the return addresses on a thread's stack, by frame pointers.
 *
 * The program is built with frame pointers; libraries of the distribution may not be. Where the
 * chain breaks, the walk ends. The stack is read with a system call (process_vm_readv) that fails
 * where nothing is mapped, so a wrong frame pointer cannot crash the process. Where the call is
 * forbidden, a stack has one frame.
 *
 * Owner: the caller's memory.
 *
 * Thread: any; async-signal-safe. Allocates nothing and takes no lock.
 */
#ifndef PROFCOL_CORE_BASE_STACK_WALK_H
#define PROFCOL_CORE_BASE_STACK_WALK_H

#include <stddef.h>
#include <stdint.h>

enum { STACK_FRAMES_MAX = 64 };

/* Where a walk begins: the address of an instruction, the stack and frame pointers there. */
struct stack_registers {
    uint64_t pc, sp, fp;
};

/* Returns the registers of an interrupted thread, from the third argument of a signal handler. */
struct stack_registers stack_registers_of(const void *signal_context);

/* The registers of the caller of the function that evaluates it, which must have a frame. The pc
 * lies in the call. */
#define stack_registers_of_caller()                                                                \
    ((struct stack_registers){                                                                     \
        .pc = (uint64_t)(uintptr_t)__builtin_return_address(0) - 1,                                \
        .sp = (uint64_t)(uintptr_t)__builtin_frame_address(0) + 16,                                \
        .fp = *(const uint64_t *)__builtin_frame_address(0),                                       \
    })

/* Writes the addresses, innermost first, the pc included. Return addresses are lowered by one, so
 * that they lie in the call. Returns their number, at least 1. */
size_t stack_walk(const struct stack_registers *from, uint64_t addresses_out[STACK_FRAMES_MAX]);

#endif
