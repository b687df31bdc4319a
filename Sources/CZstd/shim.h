/* SPDX-License-Identifier: Apache-2.0 */
/* The system's zstd, found by pkg-config; built with the trait Zstd only. */
#ifndef CZSTD_SHIM_H
#define CZSTD_SHIM_H
#include <zstd.h>
#endif
