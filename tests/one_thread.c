/*
 * one_thread: makes it an error that a test starts a thread.
 *
 * It replaces pthread_create, for libraries too. Every test is linked with it that the thread
 * sanitizer does not run, so that none is left out that could show a race.
 *
 * Owner, thread: no state.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*run)(void *),
                   void *argument)
{
    (void)thread, (void)attributes, (void)run, (void)argument;
    fputs("This test starts a thread: name it in tests_with_threads of tests/CMakeLists.txt, so "
          "that the thread sanitizer runs it.\n",
          stderr);
    abort();
}
