/* A stand-in for NVIDIA's driver: as much of its interface as mmaprobe uses, on the host's memory.
 *
 * It is no model of a GPU: a launch answers D = C, which is what every instruction computes where A is
 * zero, and only for C and D with the same layout. What it tests is the way to the driver: loading,
 * the order of calls, the arguments of a launch, buffers and parts, and what happens when calls fail.
 *
 * MOCK_CUDA says how it behaves: "fault" fails the first launch, "hang" never ends one, "memory" has
 * none, "old" is too old for the PTX, "picky" refuses all but mma.m16n8k16, "none" sees no GPU.
 * It prints a line for each launch to the file that MOCK_CUDA_LOG names. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mode(const char *name) {
    const char *value = getenv("MOCK_CUDA");
    return value && strcmp(value, name) == 0;
}
static void *current;
static int faulted, allocations, streams, events;
/* Bytes that C and D of a group take, by the text of the kernel that was loaded last: a module. */
struct module { unsigned bytes; unsigned per_cta; };

int cuInit(unsigned flags) { return mode("none") ? 100 : flags; }
int cuDeviceGetCount(int *count) { *count = 1; return 0; }
int cuDriverGetVersion(int *version) { *version = 13000; return 0; }
int cuDeviceGet(int *device, int ordinal) { *device = ordinal + 40; return ordinal ? 101 : 0; }
int cuDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "NVIDIA A100-SXM4-40GB");
    return device == 40 ? 0 : 101;
}
int cuDeviceTotalMem_v2(size_t *bytes, int device) { *bytes = (size_t)40 << 30; return device == 40 ? 0 : 101; }
int cuDeviceGetAttribute(int *value, int attribute, int device) {
    switch (attribute) {
    case 75: *value = 8; break;  /* compute capability, major */
    case 76: *value = 0; break;  /* and minor */
    case 16: *value = 3; break;  /* multiprocessors */
    default: return 1;
    }
    return device == 40 ? 0 : 101;
}
int cuDevicePrimaryCtxRetain(void **context, int device) { *context = (void *)(intptr_t)(device + 1); return 0; }
int cuDevicePrimaryCtxRelease_v2(int device) {
    /* Whoever leaves has to leave nothing behind. */
    if (allocations || streams || events) abort();
    return device == 40 ? 0 : 101;
}
int cuCtxSetCurrent(void *context) { current = context; return context == (void *)41 ? 0 : 201; }
static int ready(void) { return current == (void *)41 ? (faulted ? 719 : 0) : 201; }

int cuModuleLoadDataEx(void **module, const char *ptx, unsigned count, int *options, void **values) {
    if (ready()) return ready();
    if (count != 2 || options[0] != 5 || options[1] != 6) return 1;
    if (mode("old")) return 222;
    if (!strstr(ptx, ".version") || !strstr(ptx, ".target sm_80")) return 218;
    if (mode("picky") && !strstr(ptx, "m16n8k16")) {
        snprintf(values[0], (size_t)values[1], "ptxas fatal   : not supported on this target\n");
        return 218;
    }
    struct module *made = malloc(sizeof *made);
    /* Where D goes: the last line of its kind says the bytes of a group. */
    const char *where = strstr(ptx, "%at_d, %group, ");
    if (!where || sscanf(where, "%%at_d, %%group, %u", &made->bytes) != 1) return 300;
    made->per_cta = 4;
    *module = made;
    return 0;
}
int cuModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "mmaprobe") ? 500 : 0;
}
int cuStreamCreate(void **stream, unsigned flags) { *stream = malloc(1); streams++; return flags == 1 ? ready() : 1; }
int cuStreamDestroy_v2(void *stream) { free(stream); streams--; return 0; }
int cuStreamSynchronize(void *stream) { return stream ? 0 : 1; }
int cuEventCreate(void **event, unsigned flags) { *event = malloc(1); events++; return flags == 2 ? ready() : 1; }
int cuEventDestroy_v2(void *event) { free(event); events--; return 0; }
int cuEventRecord(void *event, void *stream) { return event && stream ? ready() : 1; }
int cuEventQuery(void *event) { return mode("hang") ? 600 : event ? ready() : 1; }
int cuMemGetInfo_v2(size_t *free_bytes, size_t *total) {
    const char *limit = getenv("MOCK_CUDA_FREE");
    *free_bytes = limit ? strtoull(limit, 0, 10) : (size_t)8 << 30;
    *total = (size_t)40 << 30;
    return ready();
}
int cuMemHostAlloc(void **memory, size_t size, unsigned flags) {
    *memory = malloc(size);
    memset(*memory, 0xEE, size);
    allocations++;
    return flags ? 1 : 0;
}
int cuMemFreeHost(void *memory) { free(memory); allocations--; return 0; }
int cuMemAlloc_v2(uint64_t *memory, size_t size) {
    if (mode("memory")) return 2;
    allocations++;
    *memory = (uint64_t)(uintptr_t)aligned_alloc(256, (size + 255) / 256 * 256);
    memset((void *)(uintptr_t)*memory, 0xDD, size);
    return 0;
}
int cuMemFree_v2(uint64_t memory) { free((void *)(uintptr_t)memory); allocations--; return 0; }
int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t size, void *stream) {
    memcpy((void *)(uintptr_t)to, from, size);
    return stream ? ready() : 1;
}
int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t size, void *stream) {
    memcpy(to, (void *)(uintptr_t)from, size);
    return stream ? ready() : 1;
}
int cuLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by, unsigned bz,
                   unsigned shared, void *stream, void **parameters, void **extra) {
    if (ready()) return ready();
    const struct module *kernel = function;
    if (y != 1 || z != 1 || bx != 128 || by != 1 || bz != 1 || shared || !stream || extra) return 1;
    uint64_t c = *(uint64_t *)parameters[2], d = *(uint64_t *)parameters[5];
    unsigned groups = *(unsigned *)parameters[6];
    /* As many CTAs as there is work for, and not more than are useful. */
    unsigned needed = (groups + kernel->per_cta - 1) / kernel->per_cta;
    if (!groups || x != (needed < 3 * 32 ? needed : 3 * 32)) return 1;
    const char *log = getenv("MOCK_CUDA_LOG");
    if (log) {
        FILE *file = fopen(log, "a");
        fprintf(file, "%u\n", groups);
        fclose(file);
    }
    if (mode("fault")) { faulted = 1; return 0; }
    memcpy((void *)(uintptr_t)d, (void *)(uintptr_t)c, (size_t)groups * kernel->bytes);
    return 0;
}
