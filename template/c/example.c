/*
 * Every instruction on pseudorandom bit patterns, and a checksum (FNV-1a) of what it computes.
 *
 *     cargo build --release
 *     cc c/example.c -Ic/include -o example target/release/libgenerated_model_c.a -lpthread -ldl -lm
 *     ./example
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "generated_model.h"

static uint64_t state = 1;

/* Bytes from xorshift64*. */
static void *pseudorandom(size_t bytes) {
    unsigned char *array = malloc(bytes ? bytes : 1);
    if (!array) {
        exit(EXIT_FAILURE);
    }
    for (size_t i = 0; i < bytes; i++) {
        state ^= state >> 12;
        state ^= state << 25;
        state ^= state >> 27;
        array[i] = (unsigned char)((state * UINT64_C(0x2545f4914f6cdd1d)) >> 56);
    }
    return array;
}

int main(void) {
    for (size_t index = 0; index < generated_model_count(); index++) {
        generated_model_description i;
        if (generated_model_describe(index, &i) != GENERATED_MODEL_OK) {
            return EXIT_FAILURE;
        }
        size_t scales = i.block ? i.k / i.block : 0;
        void *a = pseudorandom(i.m * i.k * i.a_bytes);
        void *b = pseudorandom(i.n * i.k * i.b_bytes);
        void *c = pseudorandom(i.m * i.n * i.c_bytes);
        void *sa = pseudorandom(i.m * scales * i.scale_bytes);
        void *sb = pseudorandom(i.n * scales * i.scale_bytes);
        size_t bytes = i.m * i.n * i.d_bytes;
        unsigned char *d = pseudorandom(bytes);
        if (generated_model_execute(index, 1, a, b, c, sa, sb, d) != GENERATED_MODEL_OK) {
            return EXIT_FAILURE;
        }
        uint64_t checksum = UINT64_C(0xcbf29ce484222325);
        for (size_t byte = 0; byte < bytes; byte++) {
            checksum = (checksum ^ d[byte]) * UINT64_C(0x100000001b3);
        }
        printf("%s/%s %016" PRIx64 "\n", i.sheet, i.name, checksum);
        free(a), free(b), free(c), free(sa), free(sb), free(d);
    }
    return EXIT_SUCCESS;
}
