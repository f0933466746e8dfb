// Functions that exist once for every generation of vector instructions; the one to run is chosen at start-up.
#pragma once

// The choice is made before a sanitizer is ready, so its builds go without.
#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__) && \
    !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define TREELM_CLONES __attribute__((target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")))
#else
#define TREELM_CLONES
#endif
