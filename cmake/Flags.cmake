# Language, warnings, hardening, sanitizers.
include(CheckCCompilerFlag)

set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
add_compile_definitions(_GNU_SOURCE)

if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Debug or RelWithDebInfo" FORCE)
endif()
# CMake's own values carry -DNDEBUG. Asserts stay on in what users run.
set(CMAKE_C_FLAGS_RELEASE "-O2")
set(CMAKE_C_FLAGS_RELWITHDEBINFO "-O2 -g")
set(CMAKE_C_FLAGS_MINSIZEREL "-Os")

find_program(CCACHE ccache)
if(CCACHE AND NOT CMAKE_C_COMPILER_LAUNCHER)
    set(CMAKE_C_COMPILER_LAUNCHER "${CCACHE}")
endif()

# Errors with the compiler we test with; a newer one may know new warnings, and those should not
# keep anybody from building.
if(CMAKE_C_COMPILER_ID STREQUAL "GNU" AND CMAKE_C_COMPILER_VERSION MATCHES "^12\\.")
    set(werror_default ON)
else()
    set(werror_default OFF)
endif()
option(PROFCOL_WERROR "Treat warnings as errors" ${werror_default})
# Added to our targets only, not to generated code.
set(PROFCOL_WARNINGS -Wall -Wextra -Wconversion -Wshadow)
if(PROFCOL_WERROR)
    list(APPEND PROFCOL_WARNINGS -Werror)
endif()

set(PROFCOL_SANITIZER "" CACHE STRING "Empty, asan (with ubsan), tsan, fuzz or fuzz-cost (clang)")
option(PROFCOL_COVERAGE "Count which lines and branches are executed (make coverage)" OFF)
set(sanitizer_flags_asan -fsanitize=address,undefined -fno-sanitize-recover=all)
set(sanitizer_flags_tsan -fsanitize=thread)
set(sanitizer_flags_fuzz
    -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all)
# Edges are counted by a call each (tests/fuzz/cost/meter.h).
set(sanitizer_flags_fuzz-cost -fsanitize=fuzzer-no-link)
if(PROFCOL_SANITIZER)
    if(NOT DEFINED sanitizer_flags_${PROFCOL_SANITIZER})
        message(FATAL_ERROR "PROFCOL_SANITIZER is \"${PROFCOL_SANITIZER}\"; "
                            "known are asan, tsan, fuzz and fuzz-cost")
    endif()
    if(PROFCOL_SANITIZER MATCHES "^fuzz" AND NOT CMAKE_C_COMPILER_ID MATCHES "Clang")
        message(FATAL_ERROR "PROFCOL_SANITIZER=${PROFCOL_SANITIZER} needs clang: "
                            "use `cmake --preset ${PROFCOL_SANITIZER}`")
    endif()
    set(CMAKE_C_FLAGS_DEBUG "-O1 -g")
    add_compile_options(${sanitizer_flags_${PROFCOL_SANITIZER}} -fno-omit-frame-pointer)
    add_link_options(${sanitizer_flags_${PROFCOL_SANITIZER}})
    if(PROFCOL_SANITIZER STREQUAL "fuzz-cost")
        add_compile_options(-fsanitize-coverage=trace-pc-guard)
    endif()
    # What is read before it was written is no harmless rest of another call then.
    check_c_compiler_flag(-ftrivial-auto-var-init=pattern HAVE_PATTERN_INIT)
    if(HAVE_PATTERN_INIT)
        add_compile_options(-ftrivial-auto-var-init=pattern)
    endif()
elseif(PROFCOL_COVERAGE)
    add_compile_options(--coverage -fprofile-update=atomic)
    add_link_options(--coverage)
elseif(NOT CMAKE_BUILD_TYPE STREQUAL "Debug")
    # Some distributions set it already, hence the -U.
    add_compile_options(-U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()

add_compile_options(-fPIE -fstack-protector-strong)
# The stacks of the extension pprof, and of perf, are chains of frame pointers. docs/profiling.md says
# what they cost.
add_compile_options(-fno-omit-frame-pointer)
foreach(flag -fstack-clash-protection -fcf-protection) # not on every processor
    string(MAKE_C_IDENTIFIER "HAVE_FLAG${flag}" result)
    check_c_compiler_flag(${flag} ${result})
    if(${result})
        add_compile_options(${flag})
    endif()
endforeach()
add_link_options(-pie -Wl,-z,relro,-z,now)
