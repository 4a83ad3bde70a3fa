# cmake -DSOURCE=... -DOUTPUT=... -DCOMMIT=... -P Commit.cmake
#
# Writes the header with the commit, at every build; an unchanged header is not written again.
# COMMIT is for source archives without git: -DPROFCOL_COMMIT=... at configuration.
cmake_minimum_required(VERSION 3.22)
if(NOT COMMIT AND EXISTS "${SOURCE}/.git")
    set(ENV{GIT_OPTIONAL_LOCKS} 0)
    execute_process(
        COMMAND git describe --always --dirty --abbrev=12 --exclude=*
        WORKING_DIRECTORY "${SOURCE}"
        OUTPUT_VARIABLE COMMIT OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT COMMIT)
    set(COMMIT unknown)
endif()
file(CONFIGURE OUTPUT "${OUTPUT}" CONTENT "#define PROFCOL_COMMIT \"@COMMIT@\"\n" @ONLY)
