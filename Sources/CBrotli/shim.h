/* SPDX-License-Identifier: Apache-2.0 */
/* The system's brotli decoder, found by pkg-config; built with the trait Brotli only. */
#ifndef CBROTLI_SHIM_H
#define CBROTLI_SHIM_H
#include <brotli/decode.h>
#endif
