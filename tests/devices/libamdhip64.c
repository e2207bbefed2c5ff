/* A stand-in for AMD's HIP runtime and its run-time compiler: as much of their interface as mmaprobe
 * uses, on the host's memory.
 *
 * It is no model of a GPU: a launch answers D = C, which is what every instruction computes where A is
 * zero. What it tests is the way to the runtime: compiling, the order of calls, the arguments of a
 * launch, buffers and parts, and what happens when calls fail.
 *
 * MOCK_HIP says how it behaves: "fault" fails the first launch, "hang" never ends one, "memory" has none,
 * "picky" refuses all but 16x16x16, "none" sees no GPU, "unheard" answers with a code of its own.
 * It prints groups and mode of each launch to the file that MOCK_HIP_LOG names. With OLD_PROPERTIES its
 * device properties are those of ROCm 5, else those of ROCm 6 and 7. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int mode(const char *name) {
    const char *value = getenv("MOCK_HIP");
    return value && strcmp(value, name) == 0;
}
static int counted, current = -1, faulted, allocations, streams, events;
static int ready(void) { return !counted ? 3 : current != 0 ? 101 : faulted ? 719 : 0; }

int hipGetDeviceCount(int *count) {
    counted = *count = !mode("none");
    return mode("none") ? 100 : mode("unheard") ? 4321 : 0;
}
int hipRuntimeGetVersion(int *version) { *version = 60443484; return 0; }
int hipDriverGetVersion(int *version) { *version = 60443484; return 0; }
int hipDeviceGetName(char *name, int length, int device) {
    snprintf(name, length, "AMD Instinct MI250X / MI250");
    return device ? 101 : 0;
}
int hipDeviceTotalMem(size_t *bytes, int device) { *bytes = (size_t)64 << 30; return device ? 101 : 0; }
int hipDeviceGetAttribute(int *value, int attribute, int device) {
    *value = 104;
    return device ? 101 : attribute != 63; /* compute units */
}
#ifdef OLD_PROPERTIES
int hipGetDeviceProperties(char *properties, int device) {
    strcpy(properties + 396, "gfx90a:sramecc+:xnack-");
    return device ? 101 : 0;
}
#else
int hipGetDevicePropertiesR0600(char *properties, int device) {
    strcpy(properties + 1160, "gfx90a:sramecc+:xnack-");
    return device ? 101 : 0;
}
/* What programs of ROCm 5 call, with the layout that they expect: not what is to be called. */
int hipGetDeviceProperties(char *properties, int device) {
    strcpy(properties + 396, "gfx000");
    return device ? 101 : 0;
}
#endif
int hipSetDevice(int device) { current = device; return device ? 101 : 0; }
const char *hipGetErrorName(int error) {
    switch (error) {
    case 1: return "hipErrorInvalidValue";
    case 719: return "hipErrorLaunchFailure";
    default: return "hipErrorUnknown";
    }
}

/* A program of hiprtc, and the code that it becomes: how many bytes D of a group has. */
struct program { char *source, log[80]; unsigned bytes; };
int hiprtcCreateProgram(struct program **program, const char *source, const char *name, int headers,
                        const char **contents, const char **names) {
    *program = calloc(1, sizeof **program);
    (*program)->source = strdup(source);
    return headers || contents || names || strcmp(name, "mfma.hip");
}
int hiprtcCompileProgram(struct program *program, int count, const char **options) {
    if (count != 1 || strcmp(options[0], "--gpu-architecture=gfx90a:sramecc+:xnack-")) return 5;
    const char *registers = strstr(program->source, "#define D_REGISTERS ");
    unsigned number;
    if (!registers || sscanf(registers, "#define D_REGISTERS %u", &number) != 1) return 6;
    program->bytes = number * 4 * 64;
    if (mode("picky") && !strstr(program->source, "16x16x16")) {
        strcpy(program->log, "mfma.hip:9:1: warning: what\nmfma.hip:9:2: error: needs target feature x\n");
        return 6;
    }
    return 0;
}
int hiprtcGetCodeSize(struct program *program, size_t *size) { *size = sizeof program->bytes; return !program; }
int hiprtcGetCode(struct program *program, char *code) { memcpy(code, &program->bytes, 4); return 0; }
int hiprtcGetProgramLogSize(struct program *program, size_t *size) { *size = strlen(program->log) + 1; return 0; }
int hiprtcGetProgramLog(struct program *program, char *log) { strcpy(log, program->log); return 0; }
int hiprtcDestroyProgram(struct program **program) {
    free((*program)->source);
    free(*program);
    *program = 0;
    return 0;
}

int hipModuleLoadData(void **module, const void *code) {
    if (ready()) return ready();
    *module = malloc(4);
    memcpy(*module, code, 4);
    return 0;
}
int hipModuleGetFunction(void **function, void *module, const char *name) {
    *function = module;
    return strcmp(name, "mmaprobe") ? 500 : 0;
}
int hipStreamCreateWithFlags(void **stream, unsigned flags) { *stream = malloc(1); streams++; return flags == 1 ? ready() : 1; }
int hipStreamDestroy(void *stream) { free(stream); streams--; return 0; }
int hipStreamSynchronize(void *stream) { return stream ? 0 : 1; }
int hipEventCreateWithFlags(void **event, unsigned flags) { *event = malloc(1); events++; return flags == 2 ? ready() : 1; }
int hipEventDestroy(void *event) {
    free(event);
    events--;
    return 0;
}
int hipEventRecord(void *event, void *stream) { return event && stream ? ready() : 1; }
int hipEventQuery(void *event) { return mode("hang") ? 600 : event ? ready() : 1; }
int hipMemGetInfo(size_t *free_bytes, size_t *total) {
    const char *limit = getenv("MOCK_HIP_FREE");
    *free_bytes = limit ? strtoull(limit, 0, 10) : (size_t)8 << 30;
    *total = (size_t)64 << 30;
    return ready();
}
int hipHostMalloc(void **memory, size_t size, unsigned flags) {
    *memory = malloc(size);
    memset(*memory, 0xEE, size);
    allocations++;
    return flags ? 1 : 0;
}
int hipHostFree(void *memory) { free(memory); allocations--; return 0; }
int hipMalloc(void **memory, size_t size) {
    if (mode("memory")) return 2;
    allocations++;
    *memory = aligned_alloc(256, (size + 255) / 256 * 256);
    memset(*memory, 0xDD, size);
    return 0;
}
int hipFree(void *memory) { free(memory); allocations--; return 0; }
int hipMemcpyHtoDAsync(void *to, const void *from, size_t size, void *stream) {
    memcpy(to, from, size);
    return stream ? ready() : 1;
}
int hipMemcpyDtoHAsync(void *to, const void *from, size_t size, void *stream) {
    memcpy(to, from, size);
    return stream ? ready() : 1;
}
int hipModuleLaunchKernel(void *function, unsigned x, unsigned y, unsigned z, unsigned bx, unsigned by,
                          unsigned bz, unsigned shared, void *stream, void **parameters, void **extra) {
    if (ready()) return ready();
    unsigned bytes;
    memcpy(&bytes, function, 4);
    if (y != 1 || z != 1 || bx != 256 || by != 1 || bz != 1 || shared || !stream || extra) return 1;
    void *c = *(void **)parameters[2], *d = *(void **)parameters[5];
    unsigned groups = *(unsigned *)parameters[6], setting = *(unsigned *)parameters[7];
    /* As many blocks as there is work for, and not more than are useful. */
    unsigned needed = (groups + 3) / 4;
    if (!groups || x != (needed < 104 * 32 ? needed : 104 * 32)) return 1;
    const char *log = getenv("MOCK_HIP_LOG");
    if (log) {
        FILE *file = fopen(log, "a");
        fprintf(file, "%u %u\n", groups, setting);
        fclose(file);
    }
    if (mode("fault")) { faulted = 1; return 0; }
    memcpy(d, c, (size_t)groups * bytes);
    return 0;
}

/* Whoever ends well has to leave nothing behind. */
__attribute__((destructor)) static void end(void) {
    if (!faulted && !mode("hang") && !mode("memory") && (allocations || streams || events)) abort();
}
