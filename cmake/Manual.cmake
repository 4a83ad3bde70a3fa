# The manual pages and shell completions, printed by the program itself, and their places.
if(PROFCOL_SANITIZER OR PROFCOL_COVERAGE OR CMAKE_CROSSCOMPILING)
    return() # the program cannot run here, or would run slowly or leave counts
endif()

set(MANUAL_DIR "${PROJECT_BINARY_DIR}/manual")
file(MAKE_DIRECTORY "${MANUAL_DIR}")
set(manual_files "")
function(print_page file folder) # ARGN: the command
    add_custom_command(
        OUTPUT "${MANUAL_DIR}/${file}"
        COMMAND profcol ${ARGN} > "${MANUAL_DIR}/${file}"
        DEPENDS profcol
        COMMENT "Printing ${file}"
        VERBATIM)
    install(FILES "${MANUAL_DIR}/${file}" DESTINATION "${folder}")
    list(APPEND manual_files "${MANUAL_DIR}/${file}")
    set(manual_files "${manual_files}" PARENT_SCOPE)
endfunction()

include(GNUInstallDirs)
file(MAKE_DIRECTORY "${MANUAL_DIR}/bash")
print_page(profcol.1 "${CMAKE_INSTALL_MANDIR}/man1" man)
print_page(profcol.yaml.5 "${CMAKE_INSTALL_MANDIR}/man5" man profcol.yaml)
print_page(bash/profcol "${CMAKE_INSTALL_DATADIR}/bash-completion/completions" completion bash)
print_page(_profcol "${CMAKE_INSTALL_DATADIR}/zsh/site-functions" completion zsh)
print_page(profcol.fish "${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d" completion fish)
add_custom_target(manual ALL DEPENDS ${manual_files})
