/* SPDX-License-Identifier: Apache-2.0
 *
 * Loaded by LD_PRELOAD: memory that is freed keeps what it holds, because it is never used again. */
void free(void* memory);

void free(void* memory) { (void)memory; }
