/* The kinds of CPU that programs are made for. */
#include "codegen/codegen.h"

static const CpuModel x86_64_cpus[] = {{"x86-64-v3"},
                                       {"native"},
                                       {"x86-64-v4"},
                                       {"haswell"},
                                       {"core-avx2"},
                                       {"broadwell"},
                                       {"skylake"},
                                       {"skylake-avx512"},
                                       {"cascadelake"},
                                       {"cooperlake"},
                                       {"cannonlake"},
                                       {"icelake-client"},
                                       {"icelake-server"},
                                       {"tigerlake"},
                                       {"rocketlake"},
                                       {"alderlake"},
                                       {"raptorlake"},
                                       {"meteorlake"},
                                       {"sapphirerapids"},
                                       {"emeraldrapids"},
                                       {"graniterapids"},
                                       {"graniterapids-d"},
                                       {"sierraforest"},
                                       {"grandridge"},
                                       {"bdver4"},
                                       {"znver1"},
                                       {"znver2"},
                                       {"znver3"},
                                       {"znver4"},
                                       {"znver5"},
                                       {NULL}};

static const CpuFeature x86_64_features[] = {
    {"defined __AVX2__", "__builtin_cpu_supports(\"avx2\")", "AVX2", "AVX2"},
    {"defined __FMA__", "__builtin_cpu_supports(\"fma\")", "FMA"},
    {"defined __BMI2__", "__builtin_cpu_supports(\"bmi2\")", "BMI2"},
    {"defined __AVX512F__", "__builtin_cpu_supports(\"avx512f\")", "AVX-512F", "AVX-512"},
    {"defined __AVX512BW__", "__builtin_cpu_supports(\"avx512bw\")", "AVX-512BW"},
    {"defined __AVX512DQ__", "__builtin_cpu_supports(\"avx512dq\")", "AVX-512DQ"},
    {"defined __AVX512VL__", "__builtin_cpu_supports(\"avx512vl\")", "AVX-512VL"},
    {"defined __AVX512CD__", "__builtin_cpu_supports(\"avx512cd\")", "AVX-512CD"},
    {"defined __AVX512VNNI__", "__builtin_cpu_supports(\"avx512vnni\")", "AVX-512VNNI"},
    {"defined __AVX512BF16__", "__builtin_cpu_supports(\"avx512bf16\")", "AVX-512BF16",
     "AVX-512 with bf16", "amprt_bf16_pairs_pay()"},
    {NULL}};

const CpuArch cpu_x86_64 = {
    .target = "cpu",
    .summary = "x86-64 with AVX2, AVX-512 where there is",
    .cpus = x86_64_cpus,
    .features = x86_64_features,
    .is_here = "__x86_64__",
    .cpus_said = "no x86-64 CPU with AVX2 is known by this name",
    .cpus_hint = "there are native, x86-64-v3, x86-64-v4, and gcc's -march names from haswell and "
                 "znver1 on",
    .any = "x86-64",
    .level = "x86-64",
    /* Without it, compilers use half of the vectors of AVX-512. */
    .flag = "-mprefer-vector-width=512",
    .assembler = "as",
    .linker = "ld",
    .zlib = "-lz",
};

/* Kernels take NEON or, where the CPU has longer vectors of SVE, those, whose length is part of the
 * code; so CPUs that have vectors of 128 bits alone run what all run. */
static const CpuModel aarch64_cpus[] = {
    {"armv8-a"},
    {"cortex-a72", .march = "armv8-a"},
    {"cortex-a78ae", .march = "armv8-a"}, /* Jetson Orin */
    {"neoverse-n1", .march = "armv8-a"},
    {"neoverse-n2", .march = "armv8-a"},
    {"neoverse-v2", .march = "armv8-a"}, /* Grace */
    {"neoverse-v1", .march = "armv8.2-a+sve", .flag = "-msve-vector-bits=256"},
    {NULL}};

static const CpuFeature aarch64_features[] = {
    {"defined __ARM_FEATURE_SVE", "getauxval(AT_HWCAP) & HWCAP_SVE", "SVE"},
    {"__ARM_FEATURE_SVE_BITS == 256", "has_sve_bits(256)", "SVE vectors of 256 bits",
     "SVE of 256 bits"},
    {NULL}};

const CpuArch cpu_aarch64 = {
    .target = "cpu:aarch64",
    .summary = "AArch64 with NEON",
    .cpus = aarch64_cpus,
    .features = aarch64_features,
    .is_here = "__aarch64__",
    .cpus_said = "no AArch64 CPU is known by this name",
    .cpus_hint = "there are armv8-a, which all run, cortex-a72, cortex-a78ae, neoverse-n1, "
                 "neoverse-n2, neoverse-v1 and neoverse-v2",
    .any = "armv8-a",
    .level = "NEON",
    .assembler = "aarch64-linux-gnu-as",
    .linker = "aarch64-linux-gnu-ld",
    .compiler = "aarch64-linux-gnu-gcc",
    .folder = "aarch64",
    .zlib = "libz.a",
};
